"""What is tried again by itself after an agent failed: when, how often, and who can call it off."""

import os
import signal
from datetime import datetime, timedelta
from functools import partial

import anyio
import pytest

from segue.model import crash
from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.errors import WrongState
from segue.model.status import Failure, SessionStatus, Way, WorkflowStatus
from segue.model.views import Action, Resumed, WorkflowView
from tests.journal.statements import execute
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

CRASHES_ONCE = "turns: [{match: Do A, do: [{write: {path: a.txt, content: A}}, {crash: true, once: true}]}]"
ALWAYS_CRASHES = "turns: [{match: Do A, do: [{say: Now.}, {crash: true}]}]"


@pytest.fixture
def server_settings() -> dict[str, int]:
    return {"retry_attempts": 3}


async def failed(theatre: Theatre, script: str = CRASHES_ONCE) -> WorkflowView:
    """A workflow whose agent has failed, and which is to be tried again."""
    await theatre.begin(script)
    return await theatre.until("build-it", "paused")


@pytest.fixture
async def retrying(opened: Theatre) -> Theatre:
    """Workflow `build-it` whose agent has failed, and which is tried again in a second."""
    await failed(opened)
    return opened


async def retries(theatre: Theatre) -> list[tuple[str, int, int]]:
    found = await theatre.events("build-it", e.RetryScheduled)
    return [(each.step, each.attempt, each.of) for each in found]


async def test_an_agent_that_dies_is_brought_back_by_itself_and_told_what_happened(opened: Theatre) -> None:
    view = await failed(opened)
    assert view.retry is not None and (view.retry.attempt, view.retry.of, view.retry.step) == (2, 3, "a")
    assert view.retry.at == opened.clock.now() + timedelta(seconds=1)
    assert view.failure is not None and view.failure.failure is Failure.PROCESS_EXITED
    await opened.clock.advance(1)
    view = await opened.until("build-it", "completed")
    assert (view.retry, view.sessions, view.runs) == (None, 1, 2)
    prompts = [entry["text"] for entry in opened.diary("prompt")]
    assert len(prompts) == 3
    assert "It goes on now in the same conversation." in prompts[1]
    assert "interrupted in the middle" in prompts[1]


async def test_what_fails_again_and_again_is_left_to_a_person_after_all_attempts(opened: Theatre) -> None:
    opened.choices = Choices(fixer="off")
    await failed(opened, ALWAYS_CRASHES)
    for seconds in (1, 2):
        before = await opened.orchestrator.workflow("build-it")
        assert before.retry is not None
        await opened.clock.advance(seconds)
        await opened.event("build-it", e.RunStarted, after=before.head)
        view = await opened.until("build-it", "paused")
    assert view.retry is None
    assert await retries(opened) == [("a", 2, 3), ("a", 3, 3)]
    assert [each.step for each in await opened.events("build-it", e.StepFailed)] == ["a"] * 3
    assert await opened.services.journal.workflows.scheduled_retries() == []


async def test_a_person_who_resumes_opens_all_attempts_again(theatre: Theatre) -> None:
    theatre.choices = Choices(fixer="off")
    async with theatre.open(retry_attempts=2):
        before = await failed(theatre, ALWAYS_CRASHES)
        await theatre.clock.advance(1)
        await theatre.event("build-it", e.RunStarted, after=before.head)
        assert (await theatre.until("build-it", "paused")).retry is None
        view = await theatre.resume_until("build-it", "paused")
        assert view.retry is not None and view.retry.attempt == 2


@pytest.mark.parametrize(
    ("how", "status", "what"),
    [
        ("{kind: login}", "paused", "login_required"),
        ("'Amp answered for thread T-1, not T-2.'", "review", "other_conversation"),
    ],
)
async def test_what_would_fail_again_is_not_tried_again(opened: Theatre, how: str, status: str, what: str) -> None:
    await opened.begin(f"turns: [{{match: Do A, do: [{{fail: {how}, once: true}}]}}]")
    assert (await opened.until("build-it", status)).retry is None
    (told,) = await opened.events("build-it", e.StepFailed)
    assert (told.step, told.what) == ("a", what)


async def test_a_first_start_that_fails_is_tried_again_in_the_worktree_that_is_there(opened: Theatre) -> None:
    view = await failed(opened, "on_new: {exit: 3}")
    assert view.retry is not None and view.retry.step == "start"
    assert view.worktree is not None and view.session is not None
    assert view.session.status is SessionStatus.FAILED
    opened.script.write_text("turns: []")
    await opened.clock.advance(1)
    view = await opened.until("build-it", "completed")
    assert view.tasks_done == 2


async def test_nothing_is_tried_again_when_a_pause_was_asked_for(opened: Theatre) -> None:
    await opened.begin_until(
        e.PromptAcknowledged, "turns: [{match: Do A, do: [{say: Hm.}, {wait_for: go}, {crash: true, once: true}]}]"
    )
    await opened.pause("build-it", "lunch")
    view = await opened.go_until("build-it", "paused")
    assert view.retry is None and len(await opened.events("build-it", e.StepFailed)) == 1


async def test_an_agent_that_fails_while_people_only_talk_to_it_is_not_tried_again(opened: Theatre) -> None:
    await failed(opened, "turns: [{match: Do A, do: [{fail: {kind: login}, once: true}]}, {do: [{crash: true}]}]")
    await opened.prompt("build-it", "How are you?")
    view = await opened.until("build-it", "paused")
    assert view.runs == 2 and view.retry is None
    assert len(await opened.events("build-it", e.StepFailed)) == 1


# ── calling it off, and being quicker ───────────────────────────────────────────────────────────────


async def test_pause_calls_a_retry_off(retrying: Theatre) -> None:
    answer = await retrying.pause("build-it", "not today", wait=True)
    again = await retrying.pause("build-it", "not today", wait=True)
    assert (answer.status, answer.snapshot_id) == (again.status, again.snapshot_id)
    assert (answer.retry_called_off, again.retry_called_off) == (True, False)
    (cancelled,) = await retrying.events("build-it", e.RetryCancelled)
    assert (cancelled.step, cancelled.reason) == ("a", "not today")
    await retrying.clock.advance(100)
    view = await retrying.orchestrator.workflow("build-it")
    assert (view.status, view.retry, view.runs) == (WorkflowStatus.PAUSED, None, 1)
    assert not retrying.orchestrator.busy


async def test_resume_makes_a_retry_now_and_it_still_counts(opened: Theatre) -> None:
    await failed(opened, ALWAYS_CRASHES)
    view = await opened.resume_until("build-it", "paused")
    assert view.retry is not None and view.retry.attempt == 3
    assert view.runs == 2


async def test_cancel_drops_a_retry(retrying: Theatre) -> None:
    await retrying.cancel("build-it", "never mind")
    await retrying.clock.advance(100)
    view = await retrying.orchestrator.workflow("build-it")
    assert (view.status, view.retry, view.runs) == (WorkflowStatus.CANCELLED, None, 1)


async def test_a_retry_waits_while_people_talk_and_goes_on_with_the_agent_that_is_awake(retrying: Theatre) -> None:
    await retrying.prompt("build-it", "How are you?")
    await retrying.event("build-it", e.TurnEnded)
    view = await retrying.orchestrator.workflow("build-it")
    assert view.retry is not None
    await retrying.clock.advance(1)
    view = await retrying.until("build-it", "completed")
    assert (view.runs, view.retry) == (2, None)
    assert not retrying.orchestrator.busy


async def test_a_pause_and_a_retry_that_is_due_have_one_winner(retrying: Theatre) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(retrying.clock.advance, 1)
        group.start_soon(partial(retrying.pause, "build-it", "not today", wait=True))
    view = await retrying.until("build-it", "paused", "completed")
    assert view.retry is None
    assert view.runs == 2 - len(await retrying.events("build-it", e.RetryCancelled))


async def test_a_resume_and_a_retry_that_is_due_make_one_launch(retrying: Theatre) -> None:
    answers: list[Resumed | None] = []

    async def resume() -> None:
        try:
            answers.append(await retrying.resume("build-it"))
        except WrongState:  # the retry was quicker, and the agent is at work already
            answers.append(None)

    async with anyio.create_task_group() as group:
        group.start_soon(retrying.clock.advance, 1)
        group.start_soon(resume)
        group.start_soon(resume)
    assert ((await retrying.until("build-it", "completed")).runs, len(answers)) == (2, 2)


async def test_a_cancel_and_a_retry_that_is_due_have_one_winner(retrying: Theatre) -> None:
    answers: list[Action] = []

    async def cancel() -> None:
        answers.append(await retrying.cancel("build-it", "never mind"))

    async with anyio.create_task_group() as group:
        group.start_soon(retrying.clock.advance, 1)
        group.start_soon(cancel)
    view = await retrying.until("build-it", "cancelled")
    assert answers and view.retry is None
    assert await retrying.services.journal.workflows.scheduled_retries() == []


async def test_a_retry_that_nobody_was_told_of_is_found_by_the_next_sweep(theatre: Theatre) -> None:
    async with theatre.open(retry_attempts=3, environment=theatre.environment):
        view = await failed(theatre, "turns: [{match: Do A, do: [{fail: {kind: login}, once: true}]}]")
        session = view.session
        assert view.retry is None and session is not None
        retry = e.RetryScheduled(step="a", attempt=2, of=3, at=theatre.clock.now(), reason="it was cut off")
        await theatre.services.journal.transact(view.id, lambda t: t.schedule_retry(retry, session.id, 1))
        await theatre.clock.advance(2)
        assert (await theatre.orchestrator.workflow("build-it")).retry is not None
        await theatre.sweep()
        assert (await theatre.until("build-it", "completed")).runs == 2


# ── one that goes wrong, and the others ─────────────────────────────────────────────────────────────


async def two_that_failed(theatre: Theatre) -> None:
    await failed(theatre)
    theatre.agent_home = theatre.root / "another-agent"
    # So that its retry comes after the first one's.
    await theatre.clock.advance(0.5)
    await theatre.begin(CRASHES_ONCE, title="Another")
    await theatre.until("another", "paused")


async def test_a_retry_that_goes_wrong_inside_segue_is_called_off_and_the_others_are_made(opened: Theatre) -> None:
    def fail_once(name: str) -> None:
        if name == "resume.before":
            crash.arm(None)
            raise RuntimeError("a mistake")

    await two_that_failed(opened)
    crash.arm(fail_once)
    try:
        await opened.clock.advance(1)
        await opened.until("another", "completed")
    finally:
        crash.arm(None)
    view = await opened.orchestrator.workflow("build-it")
    assert (view.status, view.retry) == (WorkflowStatus.PAUSED, None)
    (told,) = await opened.events("build-it", e.RetryCancelled)
    assert told.reason == "something went wrong inside Segue; the server's log has it"


async def test_a_retry_of_a_workflow_that_cannot_even_be_read_lets_the_others_go_first(opened: Theatre) -> None:
    await two_that_failed(opened)
    broken = await opened.orchestrator.workflow("build-it")
    spoil = "UPDATE events SET body = 'spoilt' WHERE workflow_id = :id AND seq = 1"
    await execute(opened.services.journal, spoil, id=broken.id)
    opened.services.journal.forget(broken.id)
    await opened.clock.advance(1)
    await opened.until("another", "completed")


# ── a machine that sleeps ───────────────────────────────────────────────────────────────────────────


async def test_what_a_machine_spends_suspended_counts(opened: Theatre) -> None:
    opened.choices = Choices(wait_for_quota=True)
    reset = opened.clock.now() + timedelta(hours=3)
    await failed(opened, out_of_quota(reset))
    opened.clock.suspend(4 * 3600)
    await opened.clock.advance(60)
    await opened.until("build-it", "completed")


# ── across restarts ─────────────────────────────────────────────────────────────────────────────────


async def test_a_retry_survives_a_restart_and_is_made_with_the_servers_own_variables(theatre: Theatre) -> None:
    async with theatre.open(retry_attempts=3):
        await failed(theatre)
    async with theatre.open(retry_attempts=3, environment=theatre.environment):
        view = await theatre.orchestrator.workflow("build-it")
        assert view.retry is not None and view.retry.attempt == 2
        await theatre.clock.advance(1)
        assert (await theatre.until("build-it", "completed")).runs == 2


async def test_a_retry_that_cannot_be_made_is_called_off_with_the_reason(theatre: Theatre) -> None:
    async with theatre.open(retry_attempts=3):
        await failed(theatre)
    theatre.commands["rehearsal"] = ("no-such-program-anywhere",)
    async with theatre.open(retry_attempts=3, environment=theatre.environment):
        await theatre.clock.advance(1)
        assert "no-such-program-anywhere" in (await theatre.first("build-it", e.RetryCancelled)).reason
        view = await theatre.orchestrator.workflow("build-it")
        assert (view.status, view.retry, view.runs) == (WorkflowStatus.PAUSED, None, 1)


async def test_a_retry_that_was_under_way_when_the_server_ended_is_left_to_a_person(theatre: Theatre) -> None:
    script = "turns: [{match: Do A, do: [{say: Now.}, {crash: true, once: true}, {hang: true}]}]"
    async with theatre.open(retry_attempts=3):
        await failed(theatre, script)
        await theatre.clock.advance(1)
        await theatre.until_prompted(2)
        await theatre.event("build-it", e.PromptAcknowledged, after=(await theatre.event("build-it", e.RunEnded)).seq)
    async with theatre.open(retry_attempts=3, environment=theatre.environment):
        await theatre.clock.advance(1000)
        view = await theatre.orchestrator.workflow("build-it")
        assert (view.status, view.retry, view.runs) == (WorkflowStatus.PAUSED, None, 2)
        assert "server was stopped" in view.reason


# ── quota ───────────────────────────────────────────────────────────────────────────────────────────


def out_of_quota(reset: datetime | None) -> str:
    told = f", reset: '{reset:%Y-%m-%dT%H:%M:%SZ}'" if reset else ""
    return f"turns: [{{match: Do A, do: [{{fail: {{kind: quota{told}}}, once: true}}]}}]"


async def test_a_used_up_quota_is_waited_for_where_that_was_chosen(opened: Theatre) -> None:
    opened.choices = Choices(wait_for_quota=True)
    reset = (opened.clock.now() + timedelta(hours=3)).replace(microsecond=0)
    view = await failed(opened, out_of_quota(reset))
    assert view.retry is not None and view.retry.at == reset
    assert view.session is not None and view.session.status is SessionStatus.SUSPENDED
    await opened.clock.advance(3 * 3600 - 60)
    assert (await opened.orchestrator.workflow("build-it")).runs == 1
    await opened.clock.advance(60)
    await opened.until("build-it", "completed")


async def test_a_quota_that_is_full_again_in_so_many_hours_is_reckoned_by_the_same_clock(theatre: Theatre) -> None:
    theatre.choices = Choices(wait_for_quota=True)
    theatre.clock.suspend(400 * 86400)
    said = "You have reached your usage limit. Try again in 3 hours."
    async with theatre.open(retry_attempts=3):
        view = await failed(theatre, f"turns: [{{match: Do A, do: [{{fail: {said!r}, once: true}}]}}]")
        assert view.retry is not None and view.retry.at == theatre.clock.now() + timedelta(hours=3)


@pytest.mark.parametrize(("chosen", "known"), [(False, True), (True, False)])
async def test_a_used_up_quota_is_otherwise_left_to_a_person(opened: Theatre, chosen: bool, known: bool) -> None:
    opened.choices = Choices(wait_for_quota=chosen)
    reset = opened.clock.now() + timedelta(hours=3)
    view = await failed(opened, out_of_quota(reset if known else None))
    assert view.retry is None and view.status is WorkflowStatus.PAUSED


async def test_whoever_then_asks_to_wait_for_the_quota_waits_and_starts_nobody(theatre: Theatre) -> None:
    reset = (theatre.clock.now() + timedelta(hours=3)).replace(microsecond=0)
    async with theatre.open():
        await failed(theatre, out_of_quota(reset))
        await theatre.orchestrator.limit("build-it", Limits(), wait_for_quota=True)
        for _ in range(2):
            answer = await theatre.resume("build-it", wait_for_quota=True)
            assert answer.status == "waiting" and f"{reset:%H:%M}" in answer.reason
        view = await theatre.orchestrator.workflow("build-it")
        assert view.runs == 1 and view.retry is not None and view.retry.at == reset
        assert len(await theatre.events("build-it", e.RetryScheduled)) == 1
        await theatre.clock.advance(3 * 3600)
        await theatre.until("build-it", "completed")


async def test_a_quota_that_must_be_full_by_now_is_not_waited_for(theatre: Theatre) -> None:
    async with theatre.open():
        await failed(theatre, out_of_quota(theatre.clock.now() + timedelta(hours=3)))
        await theatre.clock.advance(3 * 3600)
        assert (await theatre.resume("build-it", wait_for_quota=True)).status == "resumed"
        await theatre.until("build-it", "completed")


async def test_an_agent_that_is_killed_is_brought_back_by_its_own_conversation(opened: Theatre) -> None:
    script = "turns: [{match: Do A, do: [{say: Working., once: true}, {wait_for: go}]}]"
    await opened.begin(script)
    started = await opened.first("build-it", e.AgentStarted)
    await opened.event("build-it", e.PromptAcknowledged)
    os.kill(started.pid, signal.SIGKILL)
    await opened.until("build-it", "paused")
    (worktree_of(opened) / "go").touch()
    await opened.clock.advance(1)
    await opened.until("build-it", "completed")
    assert [each.way for each in await opened.events("build-it", e.RunQueued)] == [Way.FIRST, Way.NATIVE]
