"""A fork that begins with a copy of the agent's own conversation, and what happens where it cannot."""

from typing import Any

import pytest

from segue.journal import Transaction
from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.status import Carrying, SessionStatus, Way, WorkflowStatus
from segue.model.views import Resumed
from tests.orchestrator.test_forking import FORK, fork
from tests.orchestrator.test_resuming import session_of
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

SCRIPT = """
turns:
  - match: Task 2 of 2
    do: [{recall: true}, {run: "pwd > where.txt"}]
  - match: Task 1 of 2
    do: [{usage: {used: 5000, size: 100000}}, {say: I like alpacas.}]
  - match: ""
    do: [{recall: true}]
"""


@pytest.fixture
def theatre(theatre: Theatre) -> Theatre:
    theatre.native_fork = True
    theatre.choices = Choices(limits=Limits(tasks=1))
    return theatre


async def after_one_task(theatre: Theatre, script: str = SCRIPT) -> str:
    """The token of a conversation that has done the first of two tasks."""
    await theatre.begin(script)
    await theatre.until("build-it", "paused")
    await theatre.event("build-it", e.SnapshotStudied)
    (session,) = await theatre.orchestrator.sessions("build-it")
    assert session.token is not None
    return session.token


@pytest.fixture
async def after_one(opened: Theatre) -> Theatre:
    """Workflow `build-it` that is paused after the first of its two tasks."""
    await after_one_task(opened)
    return opened


def ways(resumed: Resumed) -> dict[Way, Any]:
    return {price.way: price.tokens if price.possible else price.note for price in resumed.prices}


async def test_a_fork_begins_with_a_copy_that_remembers_and_the_original_does_not_move(on_each: Theatre) -> None:
    token = await after_one_task(on_each)
    await on_each.until_studied()
    before = await on_each.orchestrator.workflow("build-it")
    await fork(on_each)
    resumed = await on_each.resume(FORK)
    assert (resumed.way, resumed.session_number, ways(resumed)[Way.FORK]) == (Way.FORK, 1, 5000)
    await on_each.until(FORK, "completed")
    (session,) = await on_each.orchestrator.sessions(FORK)
    assert session.token not in (None, token) and session.carrying is Carrying.NOTHING
    (queued,) = await on_each.events(FORK, e.RunQueued)
    assert (queued.way, queued.reason) == (Way.FORK, resumed.reason)
    assert not await on_each.events(FORK, e.WayChanged)
    (recalled,) = await on_each.events(FORK, e.AgentMessage)
    assert "Task 1 of 2: Do A" in recalled.text
    assert (worktree_of(on_each, FORK) / "where.txt").read_text().strip() == str(worktree_of(on_each, FORK))
    assert (await on_each.orchestrator.workflow("build-it")).head == before.head
    assert (await on_each.resume("build-it")).way is Way.NATIVE
    await on_each.until("build-it", "completed")
    (copied,) = on_each.diary("forked")
    told = on_each.diary("prompt")[1]["text"]
    assert (copied["of"], copied["prompts"]) == (token, 1)
    assert f"You are in {worktree_of(on_each, FORK)} now" in told and f"Leave {worktree_of(on_each)} alone" in told
    assert [entry["session"] for entry in on_each.diary("prompt")] == [token, session.token, token]


async def test_a_fork_that_is_talked_to_first_is_told_where_it_is(after_one: Theatre) -> None:
    await fork(after_one)
    said = await after_one.prompt(FORK, "What do you remember?")
    assert (said.status, said.way) == ("sent", Way.FORK)
    assert "Task 1 of 2: Do A" in (await after_one.first(FORK, e.AgentMessage)).text
    assert f"You are in {worktree_of(after_one, FORK)} now" in after_one.diary("prompt")[1]["text"]


async def test_an_agent_that_refuses_to_copy_begins_anew_with_a_compiled_context(on_each: Theatre) -> None:
    await after_one_task(on_each)
    await fork(on_each)
    on_each.script.write_text(SCRIPT + "on_load: {reject: true}\n")
    assert (await on_each.resume(FORK)).way is Way.FORK
    await on_each.until(FORK, "completed")
    (changed,) = await on_each.events(FORK, e.WayChanged)
    assert (changed.before, changed.after) == (Way.FORK, Way.CONTEXT) and "Session not found" in changed.reason
    (carried,) = await on_each.events(FORK, e.ContextCarried)
    assert carried.way is Way.CONTEXT and "alpacas" in carried.text
    (session,) = await on_each.orchestrator.sessions(FORK)
    assert (session.carrying, session.refused_tokens) == (Carrying.DONE, ())
    (original,) = await on_each.orchestrator.sessions("build-it")
    assert (original.status, original.refused_tokens) == (SessionStatus.SUSPENDED, ())
    assert "This conversation is a copy" not in on_each.diary("prompt")[1]["text"]


async def test_a_conversation_that_has_gone_beyond_the_snapshot_is_not_copied(after_one: Theatre) -> None:
    await fork(after_one)
    await after_one.resume_until("build-it", "completed")
    resumed = await after_one.resume(FORK)
    assert resumed.way is Way.CONTEXT
    assert ways(resumed)[Way.FORK] == "the original's conversation has gone beyond the snapshot"
    assert (await after_one.until(FORK, "completed")).status is WorkflowStatus.COMPLETED


async def test_a_conversation_that_goes_on_while_it_is_copied_is_not_used(after_one: Theatre) -> None:
    view = (await fork(after_one)).workflow
    await after_one.resume_until("build-it", "completed")

    def as_planned_before(t: Transaction) -> None:
        t.sessions.set_carrying(t.sessions.current().id, Carrying.NOTHING)
        t.move_workflow(WorkflowStatus.IN_PROGRESS, reason="resumed")
        after_one.queue_fork(t, "the original stood still then")

    await after_one.services.journal.transact(view.id, as_planned_before)
    await after_one.until(FORK, "completed")
    (changed,) = await after_one.events(FORK, e.WayChanged)
    assert changed.reason == "The original's conversation went on before it was copied."
    assert [carried.way for carried in await after_one.events(FORK, e.ContextCarried)] == [Way.CONTEXT]


@pytest.mark.parametrize(
    ("script", "agent", "why"),
    [
        ("capabilities: {fork: false}\n", None, "rehearsal does not say that it can copy a conversation"),
        ("", "understudy", "understudy cannot copy a conversation of rehearsal"),
    ],
)
async def test_the_reason_for_no_copy_is_said(opened: Theatre, script: str, agent: str | None, why: str) -> None:
    await after_one_task(opened, SCRIPT + script)
    await fork(opened, await session_of(opened), agent=agent)
    resumed = await opened.resume(FORK)
    assert (resumed.way, ways(resumed)[Way.FORK]) == (Way.CONTEXT, why)
    assert why in resumed.reason
    await opened.until(FORK, "completed")


async def test_copying_is_off_for_an_agent_that_was_not_seen_to_do_it_well(theatre: Theatre) -> None:
    theatre.native_fork = False
    async with theatre.open():
        await after_one_task(theatre)
        await fork(theatre)
        resumed = await theatre.resume(FORK)
        assert resumed.way is Way.CONTEXT
        assert ways(resumed)[Way.FORK] == "copying a conversation of rehearsal is switched off"
        await theatre.until(FORK, "completed")


async def test_the_compiled_context_can_be_asked_for_in_place_of_the_copy(after_one: Theatre) -> None:
    await fork(after_one)
    resumed = await after_one.resume(FORK, way=Way.CONTEXT)
    assert (resumed.way, ways(resumed)[Way.FORK]) == (Way.CONTEXT, 5000)
    await after_one.until(FORK, "completed")
    (session,) = await after_one.orchestrator.sessions(FORK)
    assert session.carrying is Carrying.DONE
    assert not after_one.diary("forked")
