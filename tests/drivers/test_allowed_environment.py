from segue.drivers.environment import allowed


def test_an_agent_gets_what_every_program_needs_and_nothing_else() -> None:
    shell = {
        "HOME": "/home/u",
        "LC_CTYPE": "C.UTF-8",
        "https_proxy": "http://proxy",
        "XDG_RUNTIME_DIR": "/run",
        "SSL_CERT_FILE": "/ca.pem",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "ANTHROPIC_API_KEY": "secret",
        "LANGUAGE_MODEL_KEY": "secret",
        "MY_HOME": "/",
    }
    assert sorted(allowed(shell)) == ["HOME", "LC_CTYPE", "SSL_CERT_FILE", "XDG_RUNTIME_DIR", "https_proxy"]


def test_an_agent_gets_its_own_variables_by_pattern() -> None:
    shell = {"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "b", "OPENAI_API_KEY": "c", "CLAUDE": "d"}
    assert allowed(shell, ["ANTHROPIC_*", "CLAUDE"]) == {
        "ANTHROPIC_API_KEY": "a",
        "ANTHROPIC_BASE_URL": "b",
        "CLAUDE": "d",
    }


def test_patterns_mind_the_case_of_a_name() -> None:
    assert allowed({"anthropic_key": "a", "home": "b"}, ["ANTHROPIC_*"]) == {}
