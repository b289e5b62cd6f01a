import re
from dataclasses import fields
from pathlib import Path

import pytest

from segue import settings
from segue.model.errors import BadSettings
from segue.settings import BUILT_IN_AGENTS, READERS, Settings, describe, load, sentences

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "segue.toml"


def test_without_a_file_every_setting_has_its_default(file: Path) -> None:
    assert load(file, {}) == Settings()


def test_the_file_is_read_and_the_environment_wins(file: Path) -> None:
    file.write_text('port = 7000\nsetup = "make ready"\npause_force_after = 10\nallow_remote = true\n')
    chosen = load(file, {"SEGUE_PORT": "8000", "SEGUE_HOME": "/data", "SEGUE_REHEARSAL_SCRIPT": "x", "SEGUE_AGENT": ""})
    assert chosen == Settings(port=8000, setup="make ready", pause_force_after=10.0, allow_remote=True)


def test_an_agent_of_ones_own_joins_the_built_in_ones(file: Path) -> None:
    file.write_text('agent = "mine"\n[agents.mine]\ncommand = ["my-agent"]\n[agents.claude]\nenvironment = ["AWS_*"]\n')
    chosen = load(file, {})
    assert set(chosen.agents) == {*BUILT_IN_AGENTS, "mine"}
    assert (chosen.agents["mine"].command, chosen.agents["mine"].driver) == (("my-agent",), "acp")
    assert chosen.agents["claude"].command == ("claude-agent-acp",)
    assert chosen.agents["claude"].environment == ("AWS_*",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 1", "unknown key: prot"),
        ("port = 70000", "port must be a whole number from 0 to 65535, not 70000"),
        ("port = 1.5", "port must be a whole number"),
        ("port = true", "port must be a number"),
        ('host = ""', "host must be a text"),
        ("setup = 1", "setup must be a text"),
        ("allow_remote = 1", "allow_remote must be true or false"),
        ("pause_force_after = 0", "pause_force_after must be more than 0 seconds"),
        ("pause_force_after = inf", "pause_force_after must be a number"),
        ("sweep_interval = 301", "sweep_interval must be 300 seconds at most"),
        ('recovery = "continue"', "recovery must be 'settle'"),
        ('agent = "nobody"', "names 'nobody', which is not among the agents"),
        ("agents = 1", "agents must be a table"),
        ("agents.mine = 1", "agents.mine must be a table"),
        ('agents.mine.driver = "acp"', "agents.mine has no command"),
        ('agents.mine.command = "my-agent"', "agents.mine.command must be a list of texts"),
        ("agents.mine.command = [1]", "agents.mine.command must be a list of texts"),
        ('agents.mine.comand = ["x"]', "agents.mine has an unknown key: comand"),
        ("port =", "is not TOML"),
    ],
)
def test_a_bad_setting_is_refused_by_name(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    with pytest.raises(BadSettings, match=re.escape(words)) as refused:
        load(file, {})
    assert str(file) in refused.value.message or "agents" in refused.value.message


def test_a_bad_variable_is_refused_by_name(file: Path) -> None:
    with pytest.raises(BadSettings, match="In the environment, SEGUE_PORT must be a number, not 'many'"):
        load(file, {"SEGUE_PORT": "many"})


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    file.mkdir()
    with pytest.raises(BadSettings, match=re.escape(str(file))):
        load(file, {})


def test_every_setting_has_a_reader_and_a_sentence() -> None:
    names = [field.name for field in fields(Settings)]
    assert sorted(READERS) == sorted(names)
    assert list(sentences()) == names
    assert all(sentence.endswith(".") for sentence in sentences().values())


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == describe(), f"python -m {settings.__name__} > docs/reference/settings.md"
