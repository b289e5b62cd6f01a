"""What a command, the environment, a repository and the user say of the work, and who goes before whom."""

import os
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from segue.model.agents import Choices, CommitPolicy, Limits, Review, Verify
from segue.model.errors import BadSettings
from segue.model.plan import Issue
from segue.model.requests import RunRequest, WorkRequest
from segue.model.work_settings import DEFAULTS, NOTHING_SAID, WorkSettings, choices_of
from segue.protocol.capacity import Ladder
from segue.protocol.retries import RetryPolicy
from segue.resume.handover import Lengths
from segue.resume.history import Cuts
from segue.server.rules import rules_of
from segue.server.work_choices import choices_for
from segue.settings import Settings, load, loading, work_in, work_of_repository
from segue.settings.fields import SHARES, TOKENS
from segue.settings.readers import SERVER_READERS, WORK_READERS

pytestmark = pytest.mark.anyio


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    return repository


class Chosen(NamedTuple):
    agent: str
    choices: Choices


async def begun(repository: Path, own: Settings | None = None, **more: Any) -> Chosen:
    """A workflow as it comes out when everybody was asked."""
    spoken = more.pop("spoken", NOTHING_SAID)
    request = RunRequest(issue=Issue(title="Build it"), repository=repository, **more)
    return Chosen(*await choices_for(request, own or Settings(), spoken))


async def test_where_nobody_says_anything_the_defaults_hold(repository: Path) -> None:
    workflow = await begun(repository)
    assert (workflow.agent, workflow.choices) == ("claude", Choices())


def test_the_defaults_are_those_of_the_choices() -> None:
    assert choices_of(NOTHING_SAID, Choices()) == Choices()
    assert DEFAULTS.review_passes == Review().passes and DEFAULTS.review_personas == Review().personas
    assert DEFAULTS.test_timeout == Verify(command="make test").seconds


async def test_all_that_can_be_said_of_the_work_becomes_the_choices_of_the_workflow(repository: Path) -> None:
    (repository / "segue.toml").write_text("""
        agent = "codex"
        setup = "make ready"
        test_command = "make test"
        test_timeout = 60
        commit = "task"
        review = "claude"
        review_personas = ["security", "tester"]
        review_passes = 3
        fixer = "off"
        wait_for_quota = true
        pause_after = 4
        max_time = 3600
        max_tokens = 100000
        max_cost = 2.5
    """)
    workflow = await begun(repository)
    assert workflow.agent == "codex"
    assert replace(workflow.choices, from_repository=()) == Choices(
        setup="make ready",
        verify=Verify(command="make test", seconds=60),
        commit=CommitPolicy.TASK,
        review=Review(agent="claude", personas=("security", "tester"), passes=3),
        fixer="off",
        wait_for_quota=True,
        limits=Limits(tasks=4, seconds=3600, tokens=100_000, usd=2.5),
    )
    assert {line.split(" = ")[0] for line in workflow.choices.from_repository} == set(WORK_READERS)


async def test_each_goes_before_those_who_are_asked_after_it(repository: Path) -> None:
    (repository / "pyproject.toml").write_text('[tool.segue]\nreview_passes = 4\nfixer = "off"\nagent = "codex"\n')
    said = {
        "own": Settings(review_passes=5, fixer="claude", agent="gemini", commit=CommitPolicy.TASK),
        "spoken": WorkSettings(review_passes=3, fixer="same"),
        "environment": {"SEGUE_REVIEW_PASSES": "2", "SEGUE_REVIEW": "same"},
        "choices": WorkRequest(review_passes=1),
    }
    passes: list[int] = []
    for silent in ("choices", "environment", "spoken", "own"):
        workflow = await begun(repository, **{"environment": {"SEGUE_REVIEW": "same"}, **said})
        assert workflow.choices.review is not None
        passes.append(workflow.choices.review.passes)
        del said[silent]
    assert passes == [1, 2, 3, 4]


async def test_what_a_command_says_is_not_told_as_the_repositorys_word(repository: Path) -> None:
    (repository / "segue.toml").write_text('test_command = "make test"\ncommit = "task"\nwait_for_quota = true\n')
    workflow = await begun(repository, choices=WorkRequest(commit=CommitPolicy.NONE))
    assert workflow.choices.commit is CommitPolicy.NONE
    assert workflow.choices.from_repository == ("test_command = make test", "wait_for_quota = true")


async def test_a_command_can_switch_off_what_the_repository_switched_on(repository: Path) -> None:
    (repository / "segue.toml").write_text('test_command = "make test"\nreview = "same"\nmax_cost = 1\n')
    off = WorkRequest(test_command="", review="off", max_cost=0)
    choices = (await begun(repository, choices=off)).choices
    assert (choices.verify, choices.review, choices.limits.usd) == (None, None, 0)


async def test_what_the_user_wants_for_all_repositories_stands_in_the_data_directory(repository: Path) -> None:
    own = load_text(repository.parent / "home.toml", 'test_command = "make test"\nreview = "same"\n')
    choices = (await begun(repository, own)).choices
    assert (choices.verify, choices.review) == (Verify(command="make test"), Review())
    assert choices.from_repository == ()


def load_text(file: Path, text: str) -> Settings:
    file.write_text(text)
    return load(file, {})


def test_the_settings_of_a_repository_are_found_from_within_it(repository: Path) -> None:
    inside = repository / "src" / "deep"
    inside.mkdir(parents=True)
    (repository / "segue.toml").write_text('commit = "task"\n')
    (inside / "segue.toml").write_text('commit = "none"\n')
    assert work_of_repository(inside) == WorkSettings(commit=CommitPolicy.TASK)


def test_two_places_in_one_repository_are_refused(repository: Path) -> None:
    (repository / "segue.toml").write_text('commit = "task"\n')
    (repository / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert work_of_repository(repository).commit is CommitPolicy.TASK
    (repository / "pyproject.toml").write_text('[tool.segue]\ncommit = "none"\n')
    with pytest.raises(BadSettings, match=re.escape("segue.toml and in [tool.segue] of pyproject.toml")) as refused:
        work_of_repository(repository)
    assert refused.value.hint == "Put all of them into one of the two."


@pytest.mark.parametrize("key", SERVER_READERS)
def test_a_repository_cannot_set_what_is_the_servers(repository: Path, key: str) -> None:
    (repository / "segue.toml").write_text(f"{key} = 1\n")
    with pytest.raises(BadSettings, match=f"sets {key}, which a repository may not set") as refused:
        work_of_repository(repository)
    assert "data directory" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tset_command = 'x'", "unknown key: tset_command"),
        ("test_command = 1", "test_command must be a text"),
        ("test_timeout = 0", "test_timeout must be more than 0 seconds"),
        ("commit = 'always'", "commit must be one of none, task, not 'always'"),
        ("review = ''", "review must be a text"),
        ("review_personas = []", "review_personas must name at least one"),
        ("review_passes = 0", "review_passes must be a whole number, at least 1"),
        ("wait_for_quota = 2", "wait_for_quota must be true or false"),
        ("max_cost = -1", "max_cost must not be less than 0"),
        ("pause_after = 1.5", "pause_after must be a whole number, at least 0"),
        ("commit =", "is not TOML"),
    ],
)
def test_a_bad_setting_of_a_repository_is_refused_by_name(repository: Path, text: str, words: str) -> None:
    (repository / "segue.toml").write_text(text)
    with pytest.raises(BadSettings, match=re.escape(words)) as refused:
        work_of_repository(repository)
    assert str(repository) in refused.value.message


@pytest.mark.parametrize("text", ["[project\nname = 1", "tool = 1", "[tool.ruff]\nline-length = 120"])
def test_a_projects_file_that_does_not_name_us_is_none_of_our_business(repository: Path, text: str) -> None:
    (repository / "pyproject.toml").write_text(text)
    assert work_of_repository(repository) == NOTHING_SAID


@pytest.mark.parametrize("text", ["[tool.segue]\ncommit =", "tool.segue = 1"])
def test_a_projects_file_that_names_us_must_be_readable(repository: Path, text: str) -> None:
    (repository / "pyproject.toml").write_text(text)
    with pytest.raises(BadSettings, match=re.escape(str(repository / "pyproject.toml"))):
        work_of_repository(repository)


@pytest.mark.parametrize("name", ["segue.toml", "pyproject.toml"])
def test_a_repository_cannot_keep_the_server_with_what_has_no_end(repository: Path, name: str) -> None:
    (repository / name).symlink_to("/dev/null")
    with pytest.raises(BadSettings, match="it is not a regular file"):
        work_of_repository(repository)
    (repository / name).unlink()
    os.mkfifo(repository / name)
    with pytest.raises(BadSettings, match="it is not a regular file"):
        work_of_repository(repository)


@pytest.mark.parametrize("name", ["segue.toml", "pyproject.toml"])
def test_a_repositorys_file_is_read_up_to_a_limit(repository: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (repository / "file").write_text("# " + "x" * 98)
    (repository / name).symlink_to("file")
    monkeypatch.setattr(loading, "LARGEST_FILE", 100)
    assert work_of_repository(repository) == NOTHING_SAID
    monkeypatch.setattr(loading, "LARGEST_FILE", 99)
    with pytest.raises(BadSettings, match="is larger than"):
        work_of_repository(repository)


def test_settings_that_are_nested_too_deeply_get_a_sentence(repository: Path) -> None:
    (repository / "segue.toml").write_text(f"a = {'[' * 5_000}")
    with pytest.raises(BadSettings, match="it is nested too deeply"):
        work_of_repository(repository)


def test_variables_say_it_as_text() -> None:
    environment = {"SEGUE_REVIEW_PERSONAS": "security, tester", "SEGUE_WAIT_FOR_QUOTA": "yes", "SEGUE_MAX_COST": "1.5"}
    assert work_in({**environment, "SEGUE_COMMIT": ""}) == WorkSettings(
        review_personas=("security", "tester"), wait_for_quota=True, max_cost=1.5
    )


@pytest.mark.parametrize("setting", ["agent", "review", "fixer"])
def test_an_agent_that_is_not_there_is_refused_when_the_server_starts(tmp_path: Path, setting: str) -> None:
    with pytest.raises(BadSettings, match=f"The setting {setting} names 'nobody', which is not among the agents"):
        load_text(tmp_path / "segue.toml", f'{setting} = "nobody"')
    with pytest.raises(BadSettings, match="names 'nobody'"):
        load(tmp_path / "none.toml", {f"SEGUE_{setting.upper()}": "nobody"})


# ── the numbers of the server ───────────────────────────────────────────────────────────────────────


def test_the_rules_are_those_of_the_thinking_rooms_unless_something_is_set() -> None:
    rules = rules_of(Settings())
    assert (rules.retries, rules.history, rules.lengths) == (RetryPolicy(), Cuts(), Lengths())
    assert asdict(Ladder()) == {**SHARES, **TOKENS}


def test_what_is_set_reaches_the_rules() -> None:
    settings = Settings(setup="make all", retry_attempts=1, history_result=10, extraction_messages=7, stall_notice=1.0)
    rules = rules_of(settings, WorkSettings(setup="make ready"))
    assert (rules.setup, rules.retries.attempts, rules.history.result) == ("make ready", 1, 10)
    assert (rules.extraction.messages, rules.stall_notice) == (7, 1.0)
