"""Bringing an agent back: to work, to be opened, to be talked to; and what it is told then."""

import os
import signal

import anyio
import pytest

from segue.model import events as e
from segue.model.errors import BadInput, WrongState
from segue.model.ids import AttemptId
from segue.model.requests import PromptRequest
from segue.model.status import Carrying, RuntimeStatus, SessionStatus, Way, WorkflowStatus
from segue.model.views import Prompted, Resumed
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

SCRIPT = """
turns:
  - match: Do A
    do: [{write: {path: a.txt, content: "A"}}, {usage: {used: 5000, size: 100000}}, {say: A is done.}, {wait_for: go}]
  - match: What now
    do: [{say: Only B is left.}]
  - match: Do B
    do: [{write: {path: b.txt, content: "B"}}]
"""


async def paused(theatre: Theatre, more: str = "") -> None:
    """A workflow that stands between its two tasks."""
    await theatre.begin_until(e.ToolFinished, SCRIPT + more)
    await theatre.pause("build-it", "lunch")
    await theatre.go_until("build-it", "paused")


async def say(theatre: Theatre, text: str) -> Prompted:
    with anyio.fail_after(30):
        return await theatre.prompt("build-it", text)


async def session_of(theatre: Theatre) -> str:
    view = await theatre.orchestrator.workflow("build-it")
    assert view.session is not None
    return view.session.id


# ── talking ─────────────────────────────────────────────────────────────────────────────────────────


async def standing_still(theatre: Theatre) -> None:
    """Until the workflow is back where it was, with its agent still awake."""
    with anyio.fail_after(30):
        seen = 0
        while (view := await theatre.orchestrator.workflow("build-it")).status is not WorkflowStatus.PAUSED:
            seen = (await theatre.services.journal.wait(view.id, max(seen, view.head)))[-1].seq


async def test_what_somebody_says_wakes_the_agent_and_leaves_the_plan_alone(between: Theatre) -> None:
    said = await say(between, "What now?")
    assert (said.status, said.way) == ("sent", Way.NATIVE)
    await standing_still(between)
    view = await between.orchestrator.workflow("build-it")
    assert view.tasks_done == 1
    assert view.session is not None and view.session.status is SessionStatus.WAITING_FOR_INPUT
    assert "Only B is left." in [event.text for event in await between.events("build-it", e.AgentMessage)]
    assert between.diary("prompt")[1]["text"] == "What now?"


async def test_the_next_word_finds_the_agent_awake(between: Theatre) -> None:
    await say(between, "What now?")
    await standing_still(between)
    again = await say(between, "What now, then?")
    await standing_still(between)
    assert (again.status, again.way) == ("sent", None)
    assert (await between.orchestrator.workflow("build-it")).runs == 2
    assert len(between.diary("prompt")) == 3


async def test_an_agent_that_nobody_talks_to_any_more_is_ended_after_a_while(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=60.0):
        await paused(theatre)
        await say(theatre, "What now?")
        await standing_still(theatre)
        view = await theatre.as_time_goes_by("build-it", "paused")
        assert [event.outcome for event in await theatre.events("build-it", e.RunEnded)] == ["paused", "talked"]
        assert view.session is not None and view.session.status is SessionStatus.WAITING_FOR_INPUT
        detail = await theatre.orchestrator.session(view.session.id)
        assert (detail.runtime.status, detail.runtime.alive) == (RuntimeStatus.ENDED, False)


async def test_resume_puts_an_agent_that_is_awake_to_work(between: Theatre) -> None:
    await say(between, "What now?")
    await standing_still(between)
    resumed = await between.resume("build-it")
    assert (resumed.status, resumed.run) == ("resumed", 2)
    view = await between.until("build-it", "completed")
    assert (view.runs, view.tasks_done) == (2, 2)


async def test_a_word_in_the_middle_of_a_task_waits_for_its_end(opened: Theatre) -> None:
    await opened.begin_until(e.ToolFinished, SCRIPT)
    async with anyio.create_task_group() as both:
        both.start_soon(say, opened, "What now?")
        await opened.event("build-it", e.PromptQueued, after=(await opened.event("build-it", e.ToolFinished)).seq)
        (worktree_of(opened) / "go").touch()
    await opened.until("build-it", "completed")
    assert ["What now" in entry["text"] for entry in opened.diary("prompt")] == [False, True, False]


async def test_a_word_that_no_agent_got_survives_a_crash_and_is_said_once(theatre: Theatre) -> None:
    async with theatre.open():
        await theatre.begin_until(e.ToolFinished, SCRIPT)
        async with anyio.create_task_group() as both:
            both.start_soon(say, theatre, "What now?")
            await theatre.event("build-it", e.PromptQueued, after=(await theatre.event("build-it", e.ToolFinished)).seq)
            both.cancel_scope.cancel()
    async with theatre.open():
        assert (await theatre.orchestrator.workflow("build-it")).waiting_messages == 1
        (worktree_of(theatre) / "go").touch()
        assert (await theatre.resume_until("build-it", "completed")).waiting_messages == 0
    assert sum("What now" in entry["text"] for entry in theatre.diary("prompt")) == 1


async def test_a_word_that_comes_while_the_agent_is_put_away_wakes_it_again(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=60.0):
        await paused(theatre)
        await say(theatre, "What now?")
        await standing_still(theatre)
        session = await session_of(theatre)
        async with anyio.create_task_group() as both:
            both.start_soon(theatre.as_time_goes_by, "build-it", "paused")
            await theatre.event("build-it", e.RunEnded, after=(await theatre.event("build-it", e.RunEnded)).seq)
        assert (await say(theatre, "What now, then?")).status == "sent"
        assert await session_of(theatre) == session


async def test_an_agent_that_goes_away_between_two_words_is_brought_back_for_the_second(between: Theatre) -> None:
    await say(between, "What now?")
    await standing_still(between)
    last = [event.pid for event in await between.events("build-it", e.AgentStarted)][-1]
    os.kill(last, signal.SIGKILL)
    await between.event("build-it", e.AgentExited)
    again = await say(between, "What now, then?")
    await standing_still(between)
    assert again.status == "sent"
    assert (await between.orchestrator.workflow("build-it")).runs == 3
    assert [entry["text"] for entry in between.diary("prompt")][1:] == ["What now?", "What now, then?"]


async def test_an_agent_that_goes_away_while_nobody_speaks_leaves_the_workflow_where_it_was(between: Theatre) -> None:
    await say(between, "What now?")
    await standing_still(between)
    last = [event.pid for event in await between.events("build-it", e.AgentStarted)][-1]
    os.kill(last, signal.SIGKILL)
    view = await between.until("build-it", "paused")
    assert view.session is not None and view.session.status is SessionStatus.WAITING_FOR_INPUT
    assert view.failure is not None and view.failure.failure == "process_exited"


async def test_nothing_is_not_said_and_a_finished_workflow_is_not_talked_to(opened: Theatre) -> None:
    await opened.begin("turns: []")
    await opened.until("build-it", "completed")
    with pytest.raises(BadInput):
        await say(opened, "  ")
    with pytest.raises(WrongState, match="completed"):
        await say(opened, "What now?")


async def test_opening_a_session_brings_its_agent_back_and_asks_nothing_of_it(theatre: Theatre) -> None:
    async with theatre.open():
        await paused(theatre)
        session = await session_of(theatre)
        before = await theatre.orchestrator.session_standing(session)
        assert (before.needs_resume, before.is_agent_running, before.resume_reason) == (
            True,
            False,
            "agent_not_running",
        )
        opened = await theatre.open_session(session)
        started = await theatre.event("build-it", e.RunQueued)
        await theatre.event("build-it", e.AgentStarted, after=started.seq + 10)
        assert opened.way is Way.NATIVE
        assert (await theatre.orchestrator.workflow("build-it")).status is WorkflowStatus.PAUSED
        after = await theatre.orchestrator.session_standing(session)
        assert (after.needs_resume, after.is_agent_running) == (False, True)
        detail = await theatre.orchestrator.session(session)
        assert (detail.runtime.status, detail.runtime.alive) == (RuntimeStatus.LIVE, True)
    assert len(theatre.diary("prompt")) == 1


# ── one path ────────────────────────────────────────────────────────────────────────────────────────


async def test_ten_that_resume_at_once_make_one_launch(between: Theatre) -> None:
    answers: list[Resumed] = []

    async def resume() -> None:
        answers.append(await between.resume("build-it"))

    async with anyio.create_task_group() as all_of_them:
        for _ in range(10):
            all_of_them.start_soon(resume)
    await between.until("build-it", "completed")
    assert {answer.run for answer in answers} == {2}
    assert sorted(answer.status for answer in answers) == ["joined"] * 9 + ["resumed"]
    assert len(await between.events("build-it", e.AgentStarted)) == 2


async def test_all_entry_points_at_once_make_one_launch(between: Theatre) -> None:
    session = await session_of(between)
    async with anyio.create_task_group() as all_of_them:
        all_of_them.start_soon(between.open_session, session)
        all_of_them.start_soon(say, between, "What now?")
        request = PromptRequest(text="What now, then?", environment=between.environment)
        all_of_them.start_soon(between.orchestrator.prompt_session, session, request)
        all_of_them.start_soon(between.resume, "build-it")
    view = await between.until("build-it", "completed")
    assert (view.runs, len(await between.events("build-it", e.AgentStarted))) == (2, 2)
    # Both at once are one prompt, and one after the other are two.
    heard = [
        word for entry in between.diary("prompt") for word in ("What now?", "What now, then?") if word in entry["text"]
    ]
    assert sorted(heard) == ["What now, then?", "What now?"]


# ── what a new conversation is told ─────────────────────────────────────────────────────────────────


async def test_a_lost_conversation_is_told_to_the_next_one_once(opened: Theatre) -> None:
    await paused(opened, "on_load: {reject: true}\n")
    await opened.resume_until("build-it", "review")
    again = await opened.resume("build-it", way=Way.HISTORY)
    assert [price.way for price in again.prices if price.possible] == [Way.CONTEXT, Way.HISTORY, Way.FRESH]
    await opened.until("build-it", "completed")
    (carried,) = await opened.events("build-it", e.ContextCarried)
    assert "[ASSISTANT]: A is done." in carried.text
    assert (await opened.orchestrator.session(await session_of(opened))).carrying is Carrying.DONE
    told = opened.diary("prompt")[1]["text"]
    assert told.startswith("RESUME CONTEXT FOR CONTINUING TASK")
    assert "[TOOL CALL: Write a.txt] {" in told
    assert "=== CURRENT REQUEST ===" in told and "Do B" in told


async def test_a_context_that_did_not_arrive_is_told_again(opened: Theatre) -> None:
    """The agent dies with the prompt that carries it, before it has said a word."""
    dying = "  - match: Session Resume Context\n    do: [{crash: true, once: true}, {say: I know.}]\n"
    script = SCRIPT.replace("turns:\n", f"turns:\n{dying}", 1)
    await opened.begin_until(e.ToolFinished, script + "on_load: {reject: true}\n")
    await opened.pause("build-it")
    await opened.go_until("build-it", "paused")
    await opened.resume_until("build-it", "review")
    await opened.resume_until("build-it", "paused")
    opened.script.write_text(script)
    assert (await opened.resume("build-it")).way is Way.NATIVE
    await opened.until("build-it", "completed")
    assert len(await opened.events("build-it", e.ContextCarried)) == 2
    told = [entry["text"].startswith("## Session Resume Context") for entry in opened.diary("prompt")]
    assert told == [False, True, True]


async def test_fresh_is_fresh_because_somebody_asked_for_it(between: Theatre) -> None:
    resumed = await between.resume("build-it", way=Way.FRESH)
    assert (resumed.way, resumed.session_number) == (Way.FRESH, 2)
    await between.until("build-it", "completed")
    assert await between.events("build-it", e.ContextCarried) == []


async def test_a_refused_conversation_is_tried_again_when_somebody_asks_for_that(opened: Theatre) -> None:
    await paused(opened, "on_load: {reject: true}\n")
    await opened.resume_until("build-it", "review")
    opened.script.write_text(SCRIPT)
    resumed = await opened.resume("build-it", way=Way.NATIVE)
    assert (resumed.way, resumed.session_number) == (Way.NATIVE, 1)
    await opened.until("build-it", "completed")


# ── the runtime record ──────────────────────────────────────────────────────────────────────────────


async def test_what_a_dead_execution_still_says_is_dropped_and_counted(opened: Theatre) -> None:
    view = await opened.begin(SCRIPT)
    started = await opened.first("build-it", e.AgentStarted)
    session = await session_of(opened)
    await opened.event("build-it", e.ToolFinished)
    assert await opened.settle(session, 1, "the server was stopped in the middle of the work")
    late = e.AgentMessage(text="too late")
    await opened.services.journal.append(
        view.id, late, late, session_id=session, run=1, attempt=AttemptId(started.execution)
    )
    assert late not in await opened.events("build-it", e.AgentMessage)
    assert (await opened.orchestrator.session(session)).runtime.dropped_events >= 2
    assert (await opened.orchestrator.verify("build-it")).verified


async def test_only_the_execution_in_charge_may_change_the_token(opened: Theatre) -> None:
    view = await opened.begin_until(e.AgentStarted, SCRIPT)
    session = await session_of(opened)
    with pytest.raises(WrongState, match="another execution"):
        await opened.services.journal.transact(
            view.id, lambda t: t.runtimes.capture_token(session, 1, AttemptId("attempt-of-yesterday"), "other")
        )
    runtime = await opened.services.journal.sessions.runtime(session)
    assert (runtime.token != "other", runtime.generation) == (True, 1)


async def test_a_live_run_shows_that_it_lives(opened: Theatre) -> None:
    await opened.begin_until(e.ToolFinished, SCRIPT)
    session = await session_of(opened)
    before = await opened.services.journal.sessions.runtime(session)
    with anyio.fail_after(30):
        while True:
            await opened.clock.advance(11)
            now = await opened.services.journal.sessions.runtime(session)
            assert before.last_seen_at is not None and now.last_seen_at is not None
            if now.last_seen_at > before.last_seen_at:
                break
    await opened.tear_away("build-it", "the test is over")


# ── the workspace ───────────────────────────────────────────────────────────────────────────────────


async def test_a_worktree_that_is_gone_is_made_again_from_its_branch_without_an_agent(between: Theatre) -> None:
    git(between.repository, "worktree", "remove", "--force", str(worktree_of(between)))
    restored = await between.orchestrator.restore_workspace("build-it")
    assert restored.worktree == str(worktree_of(between)) and worktree_of(between).is_dir()
    assert (await between.orchestrator.workflow("build-it")).runs == 1


async def test_a_worktree_without_a_branch_is_not_replaced_by_another(between: Theatre) -> None:
    git(between.repository, "worktree", "remove", "--force", str(worktree_of(between)))
    git(between.repository, "branch", "-D", "segue/build-it")
    view = await between.resume_until("build-it", "failed")
    assert view.failure is not None and view.failure.failure == "worktree_missing"
    assert not worktree_of(between).exists()
    git(between.repository, "branch", "segue/build-it")
    await between.resume_until("build-it", "completed")


async def test_a_line_of_messages_has_an_end_that_is_said(theatre: Theatre) -> None:
    async with theatre.open(messages_waiting=3):
        await theatre.begin_until(e.ToolFinished, SCRIPT)
        for number in range(3):
            assert (await theatre.prompt("build-it", f"What now? {number}", wait=False)).status == "waiting"
        with pytest.raises(WrongState, match="3 messages wait"):
            await theatre.prompt("build-it", "One too many", wait=False)
        await theatre.go_until("build-it", "completed")
    talked = [entry["text"] for entry in theatre.diary("prompt") if entry["text"].startswith("What now?")]
    assert talked == ["What now? 0\n\nWhat now? 1\n\nWhat now? 2"]


async def test_a_full_line_that_nobody_reads_says_how_it_is_read(theatre: Theatre) -> None:
    async with theatre.open(messages_waiting=1):
        await theatre.begin_until(e.ToolFinished, SCRIPT)
        await theatre.prompt("build-it", "What now?", wait=False)
    async with theatre.open(messages_waiting=1):
        with pytest.raises(WrongState) as refused:
            await theatre.prompt("build-it", "And then?", wait=False)
        assert "segue resume" in refused.value.hint
        assert (await theatre.orchestrator.workflow("build-it")).status == "paused"
