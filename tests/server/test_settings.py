import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from segue.model.agents import AgentConfiguration
from segue.model.bounds import LONGEST, MOST
from segue.model.errors import BadSettings
from segue.model.status import Permissions
from segue.model.work_settings import WorkSettings
from segue.server.rules import rules_of
from segue.settings import BUILT_IN_AGENTS, Settings, load
from segue.settings.fields import SHARES, TOKENS
from segue.settings.page import describe, sentences
from segue.settings.readers import AGENT_READERS, READERS, WORK_READERS

DEFAULT = Settings()
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


def test_an_agent_can_be_described_in_full(file: Path) -> None:
    file.write_text("""
        [agents.mine]
        command = ["my-agent", "--acp"]
        driver = "acp"
        environment = ["MINE_*"]
        native_resume = false
        history = false
        compacts = true
        modes = { ask = "default", read-only = "plan" }
        capacity = { fork = 0.5, refresh_every = 10000, stable_window = 0 }
        model_capacity = { "big-1.5" = { pause = 0, known_window = 200000 } }
        serves = ["files", "terminals"]
        install = "npm install -g my-agent"
        login = "my-agent login"
    """)
    assert load(file, {}).agents["mine"] == AgentConfiguration(
        name="mine",
        command=("my-agent", "--acp"),
        environment=("MINE_*",),
        native_resume=False,
        history=False,
        compacts=True,
        modes={Permissions.ASK: "default", Permissions.READ_ONLY: "plan"},
        capacity={"fork": 0.5, "refresh_every": 10_000, "stable_window": 0},
        model_capacity={"big-1.5": {"pause": 0, "known_window": 200_000}},
        serves=frozenset({"files", "terminals"}),
        install="npm install -g my-agent",
        login="my-agent login",
    )


def test_what_an_entry_leaves_out_stays_as_it_is_built_in(file: Path) -> None:
    file.write_text('[agents.gemini]\ncommand = ["/opt/gemini", "--acp"]\n')
    assert load(file, {}).agents["gemini"] == replace(BUILT_IN_AGENTS["gemini"], command=("/opt/gemini", "--acp"))
    assert not BUILT_IN_AGENTS["gemini"].native_resume


OURS = {"rehearsal", "api", "langgraph"}
"""Agents that come with Segue."""


def test_the_agents_of_vendors_compact_by_themselves() -> None:
    assert {name for name, agent in BUILT_IN_AGENTS.items() if not agent.compacts} == OURS


def test_every_agent_of_a_vendor_says_how_it_is_installed_and_logged_in() -> None:
    vendors = {name: agent for name, agent in BUILT_IN_AGENTS.items() if name not in OURS}
    ways = ("npm install -g ", "pip install ")
    assert all(agent.install.startswith(ways) and agent.login for agent in vendors.values())


def test_every_key_of_an_agent_has_a_reader_and_a_sentence() -> None:
    names = [field.name for field in fields(AgentConfiguration) if field.name != "name"]
    assert list(AGENT_READERS) == names
    assert list(sentences(AgentConfiguration)) == names


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
        ("agents_at_once = 0", "agents_at_once must be a whole number, at least 1, not 0"),
        ("session_ttl = 3153600001", "session_ttl must be 3153600000 seconds at most"),
        ('extraction = "magic"', "extraction must be one of rules, agent, model, not 'magic'"),
        ('extraction_model = "gpt-5-mini"', "extraction_model must be written as provider:name"),
        ("extraction_timeout = 0", "extraction_timeout must be more than 0 seconds"),
        ('extraction_base_url = "localhost"', "extraction_base_url must begin with http:// or https://"),
        ('recovery = "hope"', "recovery must be one of settle, continue, not 'hope'"),
        ('agent = "nobody"', "names 'nobody', which is not among the agents"),
        ("agents = 1", "agents must be a table"),
        ("agents.mine = 1", "agents.mine must be a table"),
        ('agents."" = {command = ["x"]}', "must have a name without /"),
        ('agents."a/b" = {command = ["x"]}', "agents.a/b must have a name without /"),
        ('agents.mine.driver = "acp"', "agents.mine has no command"),
        ('agents.mine.command = "my-agent"', "agents.mine.command must be a list of texts"),
        ("agents.mine.command = [1]", "agents.mine.command must be a list of texts"),
        ('agents.mine.comand = ["x"]', "agents.mine has an unknown key: comand"),
        ('agents.mine = {command = ["x"], modes = {some = "x"}}', "agents.mine.modes has an unknown key: some"),
        ('agents.mine = {command = ["x"], modes = {ask = 1}}', "agents.mine.modes.ask must be a text"),
        ('agents.mine = {command = ["x"], modes = "plan"}', "agents.mine.modes must be a table"),
        ('agents.mine = {command = ["x"], serves = ["tea"]}', "serves names 'tea', which is none of files, terminals"),
        ('agents.mine = {command = ["x"], capacity = {fork = 2}}', "agents.mine.capacity.fork must be a share"),
        ('agents.mine = {command = ["x"], capacity = {jump = 0.5}}', "agents.mine.capacity has an unknown key: jump"),
        ('capacity = {"" = 0.5}', "capacity has an unknown key:  (known: "),
        ("capacity = {refresh_every = 0.5}", "capacity.refresh_every must be a whole number of tokens, at least 0"),
        (
            'agents.mine = {command = ["x"], model_capacity = {big = 1}}',
            'agents.mine.model_capacity."big" must be a table',
        ),
        ("retry_first = 1e15", "retry_first must be 3153600000 seconds at most, not 1000000000000000.0"),
        ("max_time = 1e300", "max_time must be 3153600000 at most"),
        ("max_time = nan", "max_time must be a number, not nan"),
        ("max_tokens = 1000000000001", "max_tokens must be 1000000000000 at most"),
        ("max_cost = 1e13", "max_cost must be 1000000000000 at most"),
        ("messages_waiting = 0", "messages_waiting must be a whole number, at least 1"),
        ('agents.mine = {command = ["x"], history = 1}', "agents.mine.history must be true or false"),
        ('agents.mine = {command = ["x"], install = 1}', "agents.mine.install must be a text"),
        ("port =", "is not TOML"),
    ],
)
def test_a_bad_setting_is_refused_by_name(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    with pytest.raises(BadSettings, match=re.escape(words)) as refused:
        load(file, {})
    assert str(file) in refused.value.message or "agents" in refused.value.message


def test_a_model_that_reads_along_has_to_be_named(file: Path) -> None:
    file.write_text('extraction = "model"')
    with pytest.raises(BadSettings, match="extraction_model is not set"):
        load(file, {})
    chosen = load(file, {"SEGUE_EXTRACTION_MODEL": "openai:gpt-5-mini", "SEGUE_EXTRACTION_TIMEOUT": "5"})
    assert (chosen.extraction, chosen.extraction_model, chosen.extraction_timeout) == ("model", "openai:gpt-5-mini", 5)


@pytest.mark.parametrize("address", ["https://me:hunter2@models.test/v1", "https://models.test/v1?key=hunter2"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(file: Path, address: str) -> None:
    with pytest.raises(BadSettings, match="hold no password and no query") as refused:
        load(file, {"SEGUE_EXTRACTION_BASE_URL": address})
    assert "hunter2" not in refused.value.message


def test_each_number_of_the_capacity_ladder_has_a_variable_of_its_own_which_wins(file: Path) -> None:
    file.write_text("capacity = {fork = 0.5, warn = 0.6}")
    spoken = {"SEGUE_CAPACITY_FORK": "0.7", "SEGUE_CAPACITY_PAUSE": "0.9", "SEGUE_CAPACITY_REFRESH_EVERY": "10000"}
    assert load(file, spoken).capacity == {"fork": 0.7, "warn": 0.6, "pause": 0.9, "refresh_every": 10_000}
    assert load(file, {"SEGUE_CAPACITY_WARN": ""}).capacity == {"fork": 0.5, "warn": 0.6}


@pytest.mark.parametrize("name", [*SHARES, *TOKENS])
@pytest.mark.parametrize("number", ["nan", "-1", "1e300", "most"])
def test_a_bad_number_of_the_ladder_is_refused_by_its_variable(file: Path, name: str, number: str) -> None:
    variable = f"SEGUE_CAPACITY_{name.upper()}"
    with pytest.raises(BadSettings, match=f"In the environment, {variable} must be"):
        load(file, {variable: number})


def test_a_bad_variable_is_refused_by_name(file: Path) -> None:
    with pytest.raises(BadSettings, match="In the environment, SEGUE_PORT must be a number, not 'many'"):
        load(file, {"SEGUE_PORT": "many"})


NUMBERS_OF_OURS = [
    *(field.name for field in fields(Settings) if type(getattr(DEFAULT, field.name)) in (int, float)),
    *("test_timeout", "review_passes", "pause_after", "max_time", "max_tokens", "max_cost"),
]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e300", "-1", "1" + "0" * 400])
@pytest.mark.parametrize("name", NUMBERS_OF_OURS)
def test_numbers_that_are_nan_or_infinite_are_refused_everywhere(file: Path, name: str, number: str) -> None:
    with pytest.raises(BadSettings, match=f"SEGUE_{name.upper()} must"):
        load(file, {f"SEGUE_{name.upper()}": number})
    file.write_text(f"{name} = {number}")
    with pytest.raises(BadSettings, match=f"{name} must"):
        load(file, {})


@pytest.mark.parametrize("name", NUMBERS_OF_OURS)
def test_with_the_largest_number_that_may_be_set_the_rules_can_be_made(file: Path, name: str) -> None:
    for number in (LONGEST, MOST, 65535, 300):
        try:
            chosen = load(file, {f"SEGUE_{name.upper()}": str(number)})
        except BadSettings:
            continue
        rules_of(chosen)
        break
    else:
        pytest.fail("none of them may be set")


def test_a_number_that_python_itself_does_not_read_is_refused(file: Path) -> None:
    file.write_text(f"port = {'9' * 5000}")
    with pytest.raises(BadSettings, match="is not TOML"):
        load(file, {})


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    file.mkdir()
    with pytest.raises(BadSettings, match=re.escape(str(file))):
        load(file, {})


def test_every_setting_has_a_reader_and_a_sentence() -> None:
    told = {**sentences(Settings), **sentences(WorkSettings)}
    assert set(READERS) == {field.name for field in fields(Settings)} == set(told)
    assert list(sentences(WorkSettings)) == list(WORK_READERS)
    assert all(sentence.endswith(".") for sentence in told.values())


NUMBERS = {
    "pause at": (SHARES["pause"], 0.85),
    "soft cap": (SHARES["fork"], 0.80),
    "refresh": (TOKENS["refresh_every"], 50_000),
    "force a pause": (Settings().pause_force_after, 5 * 60),
    "wait for an agent that is brought back": (Settings().delivery_wait, 90),
    "an agent is ready": (Settings().handshake_timeout, 60),
    "idle": (Settings().session_idle, 30 * 60),
    "silence": (Settings().stall_notice, 5 * 60),
    "look for silence": (Settings().stall_look, 60),
    "fixer": (Settings().fixer_time, 10 * 60),
    "attempts": (Settings().retry_attempts, 3),
    "shortest wait": (Settings().retry_first, 1),
    "longest wait": (Settings().retry_longest, 60),
    "messages that are read for decisions": (Settings().extraction_messages, 50),
    "characters of a message": (Settings().history_message, 2000),
    "characters of a result": (Settings().history_result, 500),
    "comments of a review": (Settings().context_comments, 3),
    "messages that wait": (Settings().messages_waiting, 10),
}
"""The others are listed in docs/decisions/2026-11-18-specification-numbers-that-are-not-settings.md."""


@pytest.mark.parametrize(("ours", "specified"), NUMBERS.values(), ids=NUMBERS.keys())
def test_the_numbers_of_the_specification_are_the_defaults(ours: float, specified: float) -> None:
    assert ours == specified


def test_the_sweep_comes_every_five_minutes_at_least(file: Path) -> None:
    assert Settings().sweep_interval <= 300
    file.write_text("sweep_interval = 301")
    with pytest.raises(BadSettings, match="300 seconds at most"):
        load(file, {})


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == describe(), "make format writes it"
