"""After a task's turn: its tests decide, what fails is given back, what passes is committed, and a person has the
last word."""

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from segue.model import events as e
from segue.model.agents import Choices, CommitPolicy, Limits, Verify
from segue.model.errors import BadInput, NothingToAnswer, SegueError, WrongState
from segue.model.requests import ApproveRequest, PlanText, RejectRequest
from segue.model.status import SessionStatus, WorkflowStatus
from segue.model.views import Resumed
from segue.workspace.processes import marked
from tests.orchestrator.theatre import IDENTITY, Theatre, git

pytestmark = pytest.mark.anyio

ONE_TASK = "[{id: a, title: Do A}]"
TESTS = """
import pathlib, sys
failing = [name for name in ("sum", "total") if not pathlib.Path(f"{name}.txt").exists()]
for name in failing:
    print(f"FAILED tests/test_it.py::test_{name} - AssertionError: no {name}")
print(f"{len(failing)} failed, {2 - len(failing)} passed in 0.1s" if failing else "2 passed in 0.1s")
sys.exit(1 if failing else 0)
"""
BOTH = "{write: {path: sum.txt, content: s}}, {write: {path: total.txt, content: t}}"
THREE_TRIES = {"retry_attempts": 3}


@pytest.fixture
def tests(tmp_path: Path) -> Verify:
    """A command that wants two files."""
    script = tmp_path / "run_tests.py"
    script.write_text(TESTS)
    return Verify(command=f"{sys.executable} {script}", seconds=30.0)


async def answer(theatre: Theatre, name: str, *, allow: bool, reason: str = "") -> Resumed | None:
    given = (ApproveRequest if allow else RejectRequest)(reason=reason, environment=theatre.environment)
    return (await theatre.orchestrator.answer(name, given)).resumed


def prompts(theatre: Theatre) -> list[str]:
    return [str(entry["text"]) for entry in theatre.diary("prompt")]


async def standing(theatre: Theatre, name: str) -> tuple[str, list[str]]:
    view = await theatre.orchestrator.workflow(name)
    return view.status, [task.status for task in view.tasks]


# ── tests ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_task_whose_tests_pass_is_done_in_one_turn(opened: Theatre, tests: Verify) -> None:
    opened.choices = Choices(verify=tests)
    view = await opened.begin(f"turns: [{{match: Task 1, do: [{BOTH}]}}]", plan=ONE_TASK)
    await opened.until(view.id, "completed")
    (ran,) = await opened.events(view.id, e.TestsRan)
    assert (ran.passed, ran.exit_code, ran.tests.phase, ran.tests.passing) == (True, 0, "green", 2)
    assert len(prompts(opened)) == 1


async def test_failing_tests_give_the_task_back_with_names_and_output(theatre: Theatre, tests: Verify) -> None:
    theatre.choices = Choices(verify=tests)
    async with theatre.open(**THREE_TRIES):
        view = await theatre.begin(
            """
            turns:
              - {match: Task 1, do: [write: {path: sum.txt, content: s}]}
              - {match: not done yet, do: [write: {path: total.txt, content: t}]}
            """,
            plan=ONE_TASK,
        )
        await theatre.until(view.id, "completed")
        first, second = await theatre.events(view.id, e.TestsRan)
        assert (first.passed, first.unexpected) == (False, ("tests/test_it.py::test_total",))
        assert second.passed
        (failed,) = await theatre.events(view.id, e.StepFailed)
        assert (failed.step, failed.what) == ("a", "tests_failed")
        again = prompts(theatre)[1]
        assert "- tests/test_it.py::test_total" in again and "AssertionError: no total" in again
        assert len(await theatre.events(view.id, e.TaskCompleted)) == len(await theatre.events(view.id, e.TaskStarted))


async def test_after_the_last_try_a_person_is_asked_and_the_files_stay(theatre: Theatre, tests: Verify) -> None:
    theatre.choices = Choices(verify=tests, fixer="off")
    async with theatre.open(**THREE_TRIES):
        view = await theatre.begin("turns: [{match: Task 1, do: [write: {path: sum.txt, content: s}]}]", plan=ONE_TASK)
        asked = await theatre.until(view.id, "review")
        assert "does not pass its tests" in asked.reason and "test_total" in asked.reason
        assert [task.status for task in asked.tasks] == ["pending"]
        assert asked.session is not None and asked.session.status is SessionStatus.SUSPENDED
        assert len(await theatre.events(view.id, e.StepFailed)) == 3
        (ended,) = await theatre.events(view.id, e.RunEnded)
        assert ended.outcome == "asked"
        snapshot = (await theatre.orchestrator.snapshots(view.id))[0].checkpoint
        assert (snapshot.type, snapshot.trigger, snapshot.next_task) == ("review", "pause", "a")
        assert (theatre.root / "worktrees" / view.slug / "sum.txt").exists()


async def test_tests_that_take_too_long_are_ended_with_everything_they_started(opened: Theatre) -> None:
    opened.choices = Choices(verify=Verify(command="echo begun; sleep 600 & sleep 600", seconds=60), fixer="off")
    view = await opened.begin("turns: []", plan=ONE_TASK)
    await opened.as_time_goes_by(view.id, "review")
    (ran,) = await opened.events(view.id, e.TestsRan)
    assert (ran.passed, ran.exit_code) == (False, None)
    assert marked((await opened.first(view.id, e.RunStarted)).attempt) == []


async def test_what_nobody_can_run_is_refused_before_anything_is_written(opened: Theatre) -> None:
    opened.choices = Choices(verify=Verify(command="  "))
    with pytest.raises(BadInput, match="tests is empty"):
        await opened.begin("turns: []")
    assert await opened.orchestrator.workflows(None, []) == []


# ── test-driven ─────────────────────────────────────────────────────────────────────────────────────────


TEST_FIRST = """
- {id: red, title: Write the test, expected_failures: [test_total]}
- {id: green, title: Make it pass, depends_on: [red]}
"""


async def test_tdd_state_is_preserved_across_sessions(theatre: Theatre, tests: Verify) -> None:
    theatre.choices = Choices(verify=tests, limits=Limits(tasks=1))
    async with theatre.open():
        view = await theatre.begin(
            """
            turns:
              - {match: Task 1, do: [write: {path: sum.txt, content: s}]}
              - {match: Task 2, do: [write: {path: total.txt, content: t}]}
            """,
            plan=TEST_FIRST,
        )
        paused = await theatre.until(view.id, "paused")
        assert await standing(theatre, view.id) == ("paused", ["completed", "pending"])
        assert paused.last_snapshot is not None
        snapshot = await theatre.orchestrator.snapshot(view.id, paused.last_snapshot)
        assert snapshot.findings is not None and snapshot.findings.tests is not None
        tested = snapshot.findings.tests
        assert (tested.phase, tested.expected_failures) == ("red", ("test_total",))
        assert tested.failing_tests == ("tests/test_it.py::test_total",)
        context = await theatre.orchestrator.context(view.id, None)
        assert "- Phase: red" in context.context and "tests/test_it.py::test_total" in context.context
    async with theatre.open():
        await theatre.resume(view.id)
        await theatre.until(view.id, "completed")
        assert "These tests fail now, as it was planned:\n- tests/test_it.py::test_total" in prompts(theatre)[-1]
        assert [ran.tests.phase for ran in await theatre.events(view.id, e.TestsRan)] == ["red", "green"]


async def test_the_prompt_of_a_task_names_the_tests_that_may_fail_then(opened: Theatre, tests: Verify) -> None:
    opened.choices = Choices(verify=tests)
    view = await opened.begin(f"turns: [{{match: Task, do: [{BOTH}]}}]", plan=TEST_FIRST)
    await opened.until(view.id, "completed")
    first, second = prompts(opened)
    assert "may fail when this task is done; all others have to pass:\n- test_total" in first
    assert "may fail" not in second


async def test_an_expected_failure_excuses_no_other(opened: Theatre, tests: Verify) -> None:
    opened.choices = Choices(verify=tests, fixer="off")
    view = await opened.begin("turns: []", plan="[{id: a, title: Do A, expected_failures: [test_total]}]")
    await opened.until(view.id, "review")
    (ran,) = await opened.events(view.id, e.TestsRan)
    assert (ran.passed, ran.tests.phase, ran.unexpected) == (False, "unknown", ("tests/test_it.py::test_sum",))


# ── a person ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def asked(theatre: Theatre, tests: Verify) -> Any:
    """A workflow that waits for a word on its first task."""
    theatre.choices = Choices(verify=tests, fixer="off")
    async with theatre.open():
        script = f"""
            turns:
              - {{match: give me both, do: [{BOTH}]}}
              - {{match: Task 1, once: true, do: [write: {{path: sum.txt, content: s}}]}}
              - {{match: Task, do: [{BOTH}]}}
            """
        yield await theatre.until((await theatre.begin(script)).id, "review")


async def test_a_person_who_approves_takes_the_task_as_done_and_the_work_goes_on(theatre: Theatre, asked: Any) -> None:
    assert await answer(theatre, asked.id, allow=True) is not None
    await theatre.until(asked.id, "completed")
    (answered,) = await theatre.events(asked.id, e.PersonAnswered)
    assert (answered.task_id, answered.approved) == ("a", True)
    assert [done.task_id for done in await theatre.events(asked.id, e.TaskCompleted)] == ["a", "b"]
    marks = [mark.type for mark in await theatre.events(asked.id, e.CheckpointCreated)]
    assert marks == ["start", "review", "task_complete", "task_complete", "session_end"]
    with pytest.raises(NothingToAnswer):
        await answer(theatre, asked.id, allow=True)


async def test_a_plan_is_no_answer_to_a_question_about_a_task(theatre: Theatre, asked: Any) -> None:
    plan = PlanText(format="markdown", text="- [ ] Another\n")
    with pytest.raises(NothingToAnswer, match="No plan waits for a word; the open question is about a task") as refused:
        await theatre.orchestrator.answer(asked.id, ApproveRequest(plan=plan))
    assert refused.value.hint == "Leave --plan out."
    assert (await theatre.services.journal.state(asked.id)).asked is not None


async def test_a_person_who_rejects_gives_the_task_back_with_the_reason(theatre: Theatre, asked: Any) -> None:
    with pytest.raises(BadInput, match="with a reason"):
        await answer(theatre, asked.id, allow=False)
    await answer(theatre, asked.id, allow=False, reason="No: give me both files.")
    await theatre.until(asked.id, "completed")
    assert "From user (high):\n- No: give me both files." in prompts(theatre)[1]
    assert await theatre.events(asked.id, e.FeedbackAddressed) == []


async def test_a_person_who_resumes_has_the_task_tried_again(theatre: Theatre, asked: Any) -> None:
    await theatre.resume(asked.id)
    await theatre.until(asked.id, "completed")
    (answered,) = await theatre.events(asked.id, e.PersonAnswered)
    assert (answered.approved, answered.reason) == (False, "")
    assert (await theatre.services.journal.state(asked.id)).asked is None


async def test_a_talk_about_a_task_that_waits_leaves_the_question_open(theatre: Theatre, asked: Any) -> None:
    await theatre.prompt(asked.id, "Why is that so?")
    await theatre.as_time_goes_by(asked.id, "review")
    assert (await theatre.services.journal.state(asked.id)).asked is not None
    await answer(theatre, asked.id, allow=True)
    await theatre.until(asked.id, "completed")


async def test_of_two_who_answer_at_once_the_first_counts(theatre: Theatre, asked: Any) -> None:
    outcomes: list[str] = []

    async def say(allow: bool) -> None:
        try:
            given = await answer(theatre, asked.id, allow=allow, reason="because")
            outcomes.append(given.status if given else "")
        except WrongState:
            outcomes.append("refused")

    async with anyio.create_task_group() as group:
        group.start_soon(say, True)
        group.start_soon(say, False)
    await theatre.until(asked.id, "completed")
    assert outcomes.count("resumed") == 1
    assert len(await theatre.events(asked.id, e.PersonAnswered)) == 1


# ── pauses and crashes ──────────────────────────────────────────────────────────────────────────────────


async def test_a_pause_waits_for_the_end_of_the_tests(opened: Theatre, tmp_path: Path) -> None:
    go = tmp_path / "go"
    opened.choices = Choices(verify=Verify(command=f"touch {go}.asked; until [ -e {go} ]; do sleep 0.05; done"))
    view = await opened.begin("turns: []")
    await opened.until_there(Path(f"{go}.asked"))
    assert (await opened.pause(view.id, "a break")).status == "pause_requested"
    go.touch()
    await opened.until(view.id, "paused")
    assert await standing(opened, view.id) == ("paused", ["completed", "pending"])


async def test_a_pause_is_forced_in_the_middle_of_the_tests(theatre: Theatre, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    theatre.choices = Choices(verify=Verify(command=f"touch {begun}; sleep 600"))
    async with theatre.open(pause_force_after=60.0):
        view = await theatre.begin("turns: []")
        await theatre.until_there(begun)
        await theatre.pause(view.id, "a break")
        await theatre.as_time_goes_by(view.id, "paused")
        assert await standing(theatre, view.id) == ("paused", ["pending", "pending"])
        assert marked((await theatre.first(view.id, e.RunStarted)).attempt) == []
        assert (await theatre.orchestrator.workflow(view.id)).status is WorkflowStatus.PAUSED


async def test_tests_may_be_silent_for_longer_than_an_agent(theatre: Theatre, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    theatre.choices = Choices(
        verify=Verify(command=f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done", seconds=60)
    )
    async with theatre.open(silence_watchdog=10.0):
        view = await theatre.begin("turns: []", plan=ONE_TASK)
        await theatre.until_there(begun)
        await theatre.clock.advance(30)
        await theatre.sweep()
        go.touch()
        await theatre.until(view.id, "completed")


# ── commits ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def named(theatre: Theatre) -> None:
    for key in ("name", "email"):
        git(theatre.repository, "config", f"user.{key}", "ada@example.org")


@pytest.mark.usefixtures("named")
async def test_each_task_becomes_a_commit_of_the_user_without_secret_files(opened: Theatre) -> None:
    opened.choices = Choices(commit=CommitPolicy.TASK)
    view = await opened.begin(
        """
        turns:
          - match: Task 1
            do: [write: {path: a.txt, content: a}, write: {path: .env, content: "X=1"}, run: git add .env]
          - {match: Task 2, do: [say: There is nothing to do.]}
        """,
        title="Build it",
    )
    await opened.until(view.id, "completed")
    (committed,) = await opened.events(view.id, e.WorkCommitted)
    worktree = opened.root / "worktrees" / view.slug
    assert (
        git(worktree, "log", "-1", "--format=%H %an %s / %b") == f"{committed.commit} ada@example.org Do A / Build it"
    )
    assert git(worktree, "show", "--name-only", "--format=") == "a.txt"
    assert (worktree / ".env").exists() and committed.files == 1
    assert git(worktree, "status", "--porcelain") == "?? .env"


@pytest.mark.usefixtures("named")
async def test_the_prompt_reports_the_acceptance_and_no_change_by_segue(opened: Theatre, tests: Verify) -> None:
    opened.choices = Choices(verify=tests, fixer="off", commit=CommitPolicy.TASK)
    script = f"""
        turns:
          - {{match: Task 1, do: [write: {{path: sum.txt, content: s}}]}}
          - {{match: Task 2, do: [{BOTH}]}}
        """
    view = await opened.begin(script)
    asked = await opened.until(view.id, "review")
    (opened.root / "worktrees" / view.slug / "mine.txt").write_text("by a person")
    given = ApproveRequest(reason="Later.", environment=opened.environment)
    answered = await opened.orchestrator.answer(view.id, given)
    assert (answered.title, answered.resumed and answered.resumed.divergence) == (
        "Do A",
        ("The file mine.txt appeared.",),
    )
    await opened.until(view.id, "completed")
    accepted = [each for each in await opened.events(view.id, e.CheckpointCreated) if each.snapshot][1]
    (answer_given,) = await opened.events(view.id, e.PersonAnswered)
    told = prompts(opened)[1]
    assert "HEAD moved" not in told and "The file mine.txt appeared." in told
    assert told.startswith(
        "The work stood still for a person's word: “Do A” does not pass its tests: "
        "tests fail: tests/test_it.py::test_total; a person has taken it as done all the same: Later. "
    )
    assert asked.asks.endswith(": tests fail: tests/test_it.py::test_total. Is it done all the same?")
    assert (accepted.type, answer_given.reason) == ("task_complete", "Later.")


async def test_without_a_git_identity_the_task_is_still_done(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    theatre.choices = Choices(commit=CommitPolicy.TASK)
    for name in (*IDENTITY, "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(theatre.root))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    async with theatre.open():
        view = await theatre.begin("turns: [{match: Task, do: [write: {path: a.txt, content: a}]}]", plan=ONE_TASK)
        await theatre.until(view.id, "completed")
        (warning,) = await theatre.events(view.id, e.Warned)
        assert warning.code == "not_committed" and "in whose name" in warning.message
        assert await theatre.events(view.id, e.WorkCommitted) == []


@pytest.mark.usefixtures("named")
async def test_a_hook_of_the_repository_may_refuse_a_commit(opened: Theatre) -> None:
    hook = opened.repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho the linter says no\nexit 1\n")
    hook.chmod(0o755)
    opened.choices = Choices(commit=CommitPolicy.TASK)
    view = await opened.begin("turns: [{match: Task, do: [write: {path: a.txt, content: a}]}]", plan=ONE_TASK)
    await opened.until(view.id, "completed")
    (warning,) = await opened.events(view.id, e.Warned)
    assert "the linter says no" in warning.message


@pytest.mark.usefixtures("named")
async def test_a_word_counts_though_the_budget_is_used_up(opened: Theatre, tests: Verify) -> None:
    opened.choices = Choices(verify=tests, fixer="off", commit=CommitPolicy.TASK, limits=Limits(usd=1.0))
    spends = "{usage: {used: 10, size: 100, cost: 2.0}}"
    script = f"turns: [{{match: Task, do: [{{write: {{path: sum.txt, content: s}}}}, {spends}]}}]"
    view = await opened.begin(script)
    await opened.until(view.id, "review")
    resumed = await answer(opened, view.id, allow=True)
    assert resumed is not None and resumed.status == "paused"
    view = await opened.until(view.id, "paused")
    assert (view.tasks_done, "$2.00" in view.reason) == (1, True)
    assert len(await opened.events(view.id, e.WorkCommitted)) == 1
    assert len(await opened.events(view.id, e.RunQueued)) == 1


@pytest.mark.usefixtures("named")
async def test_an_answer_refused_because_the_agent_is_missing_commits_nothing(opened: Theatre, tests: Verify) -> None:
    opened.choices = Choices(verify=tests, fixer="off", commit=CommitPolicy.TASK)
    script = f"""
        turns:
          - {{match: Task 1, do: [write: {{path: sum.txt, content: s}}]}}
          - {{match: Task 2, do: [{BOTH}]}}
        """
    view = await opened.begin(script)
    await opened.until(view.id, "review")
    agents = opened.services.agents
    gone = replace(agents["rehearsal"], command=("no-such-program-anywhere",))
    opened.services.agents = {**agents, "rehearsal": gone}
    with pytest.raises(SegueError, match="no-such-program-anywhere"):
        await answer(opened, view.id, allow=True)
    assert git(opened.repository, "log", "--format=%s", f"main..{view.branch}") == ""
    opened.services.agents = agents
    await answer(opened, view.id, allow=True)
    await opened.until(view.id, "completed")
    assert len(await opened.events(view.id, e.WorkCommitted)) == 2


@pytest.mark.usefixtures("named")
async def test_whoever_loses_to_another_word_commits_nothing(opened: Theatre, tests: Verify) -> None:
    opened.choices = Choices(verify=tests, fixer="off", commit=CommitPolicy.TASK)
    script = f"""
        turns:
          - {{match: Task 1, once: true, do: [write: {{path: sum.txt, content: s}}]}}
          - {{match: Task, do: [{BOTH}]}}
        """
    view = await opened.begin(script)
    await opened.until(view.id, "review")

    async def say(allow: bool) -> None:
        with suppress(WrongState, NothingToAnswer):
            await answer(opened, view.id, allow=allow, reason="" if allow else "not good enough")

    async with anyio.create_task_group() as both:
        both.start_soon(say, False)
        both.start_soon(say, True)
    await opened.until(view.id, "completed")
    answers = await opened.events(view.id, e.PersonAnswered)
    commits = await opened.events(view.id, e.WorkCommitted)
    assert len(answers) == 1
    titles = git(opened.repository, "log", "--format=%s", f"main..{view.branch}").splitlines()
    assert len(titles) == len(commits)
