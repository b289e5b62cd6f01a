"""What somebody wants heard now: the agent is interrupted, hears it, and goes on with its task."""

from pathlib import Path

import anyio
import pytest

from segue.model import events as e
from segue.model.agents import Choices, Verify
from segue.model.views import Prompted
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

ONE_TASK = "[{id: a, title: Do A}]"

SCRIPT = """
turns:
  - match: somebody had something to say
    do: [{write: {path: after.txt, content: "A"}}, {say: Gone on.}]
  - match: Do A
    do: [{write: {path: a.txt, content: "A"}}, {wait_for: never}]
  - match: Use tabs
    do: [{say: Tabs it is.}]
"""
DEAF = SCRIPT.replace("{wait_for: never}", "{hang: true, deaf: true, once: true}")


async def at_work(theatre: Theatre, script: str = SCRIPT, permissions: str = "all") -> None:
    await theatre.begin_until(e.ToolFinished, script, permissions=permissions)


async def say_now(theatre: Theatre, text: str = "Use tabs.", wait: bool = True) -> Prompted:
    with anyio.fail_after(30):
        return await theatre.prompt("build-it", text, wait=wait, now=True)


def prompts(theatre: Theatre) -> list[str]:
    return [entry["text"] for entry in theatre.diary("prompt")]


async def test_the_agent_is_interrupted_told_and_goes_on_with_its_task(opened: Theatre) -> None:
    await at_work(opened)
    said = await say_now(opened)
    assert (said.status, said.interrupted) == ("sent", True)
    view = await opened.until("build-it", "completed")
    assert (view.runs, view.tasks_done) == (1, 2)
    assert len(await opened.events("build-it", e.TaskStarted)) == 2
    assert await opened.events("build-it", e.TaskFailed) == []
    assert await opened.events("build-it", e.TaskInterrupted) == []
    reasons = [each.reason for each in await opened.events("build-it", e.TurnEnded)]
    assert reasons == ["cancelled", "end_turn", "end_turn", "end_turn"]
    first, word, again, _ = prompts(opened)
    assert word == "Use tabs."
    assert "interrupted in the middle of your work" in again and again.endswith(first)
    assert (worktree_of(opened) / "after.txt").exists()


async def test_what_was_said_before_comes_before_it(opened: Theatre) -> None:
    await at_work(opened)
    await opened.prompt("build-it", "Use tabs, please.", wait=False)
    await say_now(opened, "Use tabs now.")
    await opened.until("build-it", "completed")
    assert prompts(opened)[1] == "Use tabs, please.\n\nUse tabs now."


async def test_between_two_turns_there_is_nothing_to_interrupt(opened: Theatre) -> None:
    await at_work(opened, SCRIPT.replace("{wait_for: never}", "{wait_for: go}"))
    await opened.pause("build-it", "lunch")
    await opened.go_until("build-it", "paused")
    said = await say_now(opened)
    assert (said.status, said.interrupted) == ("sent", False)
    await opened.event("build-it", e.TurnEnded, after=(await opened.event("build-it", e.RunEnded)).seq)
    reasons = [each.reason for each in await opened.events("build-it", e.TurnEnded)]
    assert reasons == ["end_turn", "end_turn"]


async def test_a_pause_that_was_asked_for_comes_first(opened: Theatre) -> None:
    await at_work(opened, SCRIPT.replace("{wait_for: never}", "{wait_for: go}"))
    await opened.pause("build-it", "lunch")
    async with anyio.create_task_group() as group:
        group.start_soon(say_now, opened, "Use tabs.", False)
        await opened.event("build-it", e.PromptQueued, after=(await opened.event("build-it", e.PromptSent)).seq)
        (worktree_of(opened) / "go").touch()
    view = await opened.until("build-it", "paused")
    assert (view.waiting_messages, view.tasks_done) == (1, 1)


async def test_an_agent_that_does_not_stop_has_failed_and_gets_the_message_next(theatre: Theatre) -> None:
    async with theatre.open(retry_attempts=3):
        await at_work(theatre, DEAF)
        await say_now(theatre, wait=False)
        assert (await theatre.as_time_goes_by("build-it", "completed")).runs == 2
        (failed,) = await theatre.events("build-it", e.StepFailed)
        assert "asked to stop" in failed.reason
    assert prompts(theatre)[1] == "Use tabs."


async def test_a_question_that_was_open_is_taken_back(opened: Theatre) -> None:
    script = SCRIPT.replace("{wait_for: never}", "{run: echo hello, ask: true}")
    await opened.begin_until(e.PermissionRequested, script, permissions="edits")
    assert (await say_now(opened)).status == "sent"
    view = await opened.until("build-it", "completed")
    outcomes = [each.outcome for each in await opened.events("build-it", e.PermissionAnswered)]
    assert outcomes[0] == "interrupted" and view.question is None


def verified_by(go: Path) -> Choices:
    """Tests that are under way when the file `begun` is there, and pass when they may go on."""
    return Choices(verify=Verify(command=f"touch {go}.begun; until [ -e {go} ]; do sleep 0.05; done"))


async def test_a_message_during_the_tests_is_delivered_before_the_task_ends(opened: Theatre, tmp_path: Path) -> None:
    go = tmp_path / "go"
    opened.choices = verified_by(go)
    await opened.begin("turns: [{match: Use tabs, do: [{write: {path: tabs.txt, content: t}}]}]", plan=ONE_TASK)
    await opened.until_there(Path(f"{go}.begun"))
    said = await say_now(opened, wait=False)
    assert (said.status, said.interrupted) == ("waiting", False)
    assert said.reason == "The agent is between two turns, and gets it before the next one."
    go.touch()
    await opened.until("build-it", "completed")
    workflow_id = (await opened.orchestrator.workflow("build-it")).id
    kinds = [record.event.kind for record in await opened.services.journal.records(workflow_id)]
    assert prompts(opened)[1:] == ["Use tabs."]
    milestones = [kind for kind in kinds if kind in ("tests.ran", "turn.ended", "task.completed")]
    assert milestones == ["turn.ended", "tests.ran", "turn.ended", "tests.ran", "task.completed"]


async def test_what_changes_no_file_is_not_tested_again(opened: Theatre, tmp_path: Path) -> None:
    go = tmp_path / "go"
    opened.choices = verified_by(go)
    await opened.begin("turns: []", plan=ONE_TASK)
    await opened.until_there(Path(f"{go}.begun"))
    await say_now(opened, "Why?", wait=False)
    go.touch()
    await opened.until("build-it", "completed")
    assert len(await opened.events("build-it", e.TestsRan)) == 1
    assert prompts(opened)[1:] == ["Why?"]


async def test_before_another_try_people_are_heard(theatre: Theatre, tmp_path: Path) -> None:
    go = tmp_path / "go"
    theatre.choices = Choices(
        verify=Verify(command=f"touch {go}.begun; until [ -e {go} ]; do sleep 0.05; done; test -e b")
    )
    script = "turns: [{match: not done yet, do: [{write: {path: b, content: b}}]}]"
    async with theatre.open(retry_attempts=3):
        await theatre.begin(script, plan=ONE_TASK)
        await theatre.until_there(Path(f"{go}.begun"))
        await say_now(theatre, wait=False)
        go.touch()
        await theatre.until("build-it", "completed")
    assert [text.split(":")[0] for text in prompts(theatre)[1:]] == ["Use tabs.", "The task is not done yet"]


async def test_a_pause_that_comes_first_is_said(opened: Theatre, tmp_path: Path) -> None:
    go = tmp_path / "go"
    opened.choices = verified_by(go)
    await opened.begin("turns: []", plan=ONE_TASK)
    await opened.until_there(Path(f"{go}.begun"))
    await opened.pause("build-it", "lunch")
    said = await say_now(opened, wait=False)
    assert (said.interrupted, said.reason) == (
        False,
        "A pause was asked for, and comes first; the agent gets it when the work goes on.",
    )
    go.touch()
    await opened.until("build-it", "paused", "completed")


async def test_an_agent_that_does_not_listen_yet_is_not_waited_for_longer_than_any_other(theatre: Theatre) -> None:
    async with theatre.open(handshake_timeout=3600.0, start_watchdog=3600.0, delivery_wait=90.0):
        await theatre.begin_until(e.RunStarted, "on_initialize: {hang: true}")
        answers: list[Prompted] = []

        async def say() -> None:
            answers.append(await say_now(theatre))

        async with anyio.create_task_group() as group:
            group.start_soon(say)
            await theatre.event("build-it", e.PromptQueued)
            with anyio.fail_after(30):
                while not answers:
                    await theatre.clock.advance(10)
        (said,) = answers
        assert (said.status, said.interrupted) == ("waiting", False)
        assert said.reason == "The agent does not listen yet, and gets it first when it does."
