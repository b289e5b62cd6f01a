import json

import pytest

from segue.journal.redaction import PATTERNS, redact, redact_text

PLANTED = {
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc/def==\n-----END RSA PRIVATE KEY-----",
    "aws-key": "AKIA" + "Q3EGRL5KXZ7W2MNP",
    "github-token": "ghp_" + "A1b2C3d4" * 5,
    "gitlab-token": "glpat-" + "x9Y8z7W6v5U4t3S2r1Q0",
    "anthropic-key": "sk-ant-api03-" + "Zx9" * 10,
    "openai-key": "sk-proj-" + "aB3dE6gH" * 4,
    "slack-token": "xoxb-" + "1234567890-abcdefghij",
    "slack-webhook": "hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "google-key": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"[:35],
    "stripe-key": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "npm-token": "npm_" + "a1B2c3D4e5F6" * 3,
    "pypi-token": "pypi-AgEIcHlwaS5vcmc" + "Ab1" * 20,
    "hugging-face-token": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ123456",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "authorization": "Authorization: Bearer 0123456789abcdefABCDEF",
    "url-password": "postgres://app:correcthorse@db.example/app",
    "api-key-header": "X-Api-Key: 0123456789abcdef",
    "secret-variable": "DEPLOY_API_KEY=0f1e2d3c4b5a6978",
}

VARIABLES = [
    'export API_TOKEN="s3cr3tvalue12345"',
    "MY_SECRET='abcdefghijkl'",
    "AWS_SECRET_ACCESS_KEY = wJalrXUtnFEMIbPxRfiCY",
    '{"API_KEY": "abcdef0123456789"}',
    "DB_PASSWORD=p@ss!word-9",
    "PASSWORD: hunter2hunter2",
]

SURROUNDINGS = ["{}", "before {} after", "line\n{}\nline", "\x1b[31m{}\x1b[0m", 'x="{}"', "C:\\new\\{}", "\t{}"]


def test_every_pattern_has_a_planted_secret() -> None:
    assert set(PLANTED) == {name.partition("/")[0] for name in PATTERNS}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_TOKEN", "abcdefgh12345"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIbPxRfiCY"),
        ("Authorization", "Bearer 0123456789abcdefABCDEF"),
        ("x-api-key", "0123456789abcdef"),
        ("PASSWORD", 1234567890),
        ("DB_PASSWORD", 12345678.25),
    ],
)
@pytest.mark.parametrize("spaces", [None, (",", ":")])
def test_a_named_secret_is_replaced_inside_valid_json(name: str, value: object, spaces: tuple[str, str] | None) -> None:
    document = {"input": {"env": {name: value, "HOME": "/root"}, "list": [name, 1]}, "after": "it"}
    read = json.loads(redact(json.dumps(document, separators=spaces).encode()))
    assert "[redacted:" in str(read["input"]["env"][name]) and str(value) not in str(read)
    assert (read["after"], read["input"]["env"]["HOME"], read["input"]["list"]) == ("it", "/root", [name, 1])


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "API_KEY"])
def test_a_name_that_stands_for_a_secret_is_left_alone(name: str) -> None:
    document = json.dumps({"env": {name: f"${{{name}}}"}}).encode()
    assert redact(document) == document


@pytest.mark.parametrize("around", SURROUNDINGS)
@pytest.mark.parametrize("name", PLANTED)
def test_a_secret_is_found_wherever_it_stands_and_the_json_stays_whole(name: str, around: str) -> None:
    text = json.loads(redact(json.dumps({"text": around.format(PLANTED[name])}).encode()))["text"]
    assert f"[redacted:{name}]" in text
    assert PLANTED[name] not in text


@pytest.mark.parametrize("line", VARIABLES)
@pytest.mark.parametrize("around", SURROUNDINGS)
def test_a_variable_is_found_however_it_is_set(line: str, around: str) -> None:
    document = json.dumps({"text": around.format(line)}).encode()
    assert "[redacted:secret-variable]" in json.loads(redact(document))["text"]


@pytest.mark.parametrize(
    "harmless",
    [
        "TOKEN = os.environ['X']",
        "API_KEY=$API_KEY",
        "SECRET = load(path)",
        "MAX_TOKENS: int = 4096",
        "task-0123456789abcdef0123456789abcdef01234567",
        "password = getpass.getpass()",
        "def token(self) -> str: ...",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "https://example.org/path?query=1#fragment",
        "MAX_TOKENS=4096",
        "the secret of good code",
        "risk-free disk-based",
    ],
)
def test_ordinary_text_is_left_alone(harmless: str) -> None:
    assert redact_text(harmless) == harmless


def test_redacting_twice_changes_nothing() -> None:
    once = redact_text(" ".join(PLANTED.values()))
    assert redact_text(once) == once
