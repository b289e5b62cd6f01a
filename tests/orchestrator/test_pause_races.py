"""A pause, and whoever else decides at the same moment: one wins, and the journal tells one story."""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import pytest

from segue.model import events as e
from segue.model.errors import WrongState
from segue.model.status import Trigger
from segue.model.views import Action
from segue.state.fold import fold
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

HELD = """
turns:
  - match: Do A
    do: [{say: A begins.}, {wait_for: go}, {say: A is there.}]
  - match: Do B
    do: [{say: B is there.}]
"""
LAST = """
turns:
  - match: Do A
    do: [{say: A is there.}]
  - match: Do B
    do: [{say: B begins.}, {wait_for: go}, {say: B is there.}]
"""


async def at_once(*calls: Callable[[], Awaitable[Action]]) -> list[Action | WrongState]:
    """All of them together; a refusal is an answer too."""
    answers: list[Action | WrongState] = []

    async def ask(call: Callable[[], Awaitable[Action]]) -> None:
        try:
            answers.append(await call())
        except WrongState as refused:
            answers.append(refused)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as together:
            for call in calls:
                together.start_soon(ask, call)
    return answers


def pausing(theatre: Theatre) -> Callable[[], Awaitable[Action]]:
    return partial(theatre.pause, "build-it", "for tonight", wait=True)


def cancelling(theatre: Theatre) -> Callable[[], Awaitable[Action]]:
    return partial(theatre.cancel, "build-it", "not wanted any more")


def go(theatre: Theatre) -> None:
    (theatre.root / "worktrees" / "build-it" / "go").touch()


async def let_go(theatre: Theatre) -> Action:
    """The task comes to its end at the same moment."""
    go(theatre)
    return Action(status="pause_requested", workflow_id=(await theatre.orchestrator.workflow("build-it")).id)


async def told_as_it_is(theatre: Theatre) -> list[e.WorkflowMoved]:
    """The journal's story is the one that the tables have; what it says of the workflow's moves."""
    view = await theatre.orchestrator.workflow("build-it")
    records = await theatre.services.journal.records(view.id, limit=10_000)
    assert fold(records).status is view.status
    assert (await theatre.orchestrator.verify("build-it")).verified
    return [record.event for record in records if isinstance(record.event, e.WorkflowMoved)]


async def test_ten_pauses_at_once_give_one_snapshot(opened: Theatre) -> None:
    await opened.begin(HELD)
    await opened.until_prompted(1)
    answers = await at_once(*[pausing(opened)] * 10, partial(let_go, opened))
    await opened.until("build-it", "paused")
    snapshots = {answer.snapshot_id for answer in answers if isinstance(answer, Action) and answer.snapshot_id}
    moves = await told_as_it_is(opened)
    made = [event for event in await opened.events("build-it", e.CheckpointCreated) if event.snapshot]
    assert len(snapshots) == len(made) == 1
    assert [move.after for move in moves] == ["in_progress", "paused"]
    assert moves[-1].trigger is Trigger.PAUSE


async def test_a_pause_that_races_with_the_last_task_ends_in_one_of_the_two(opened: Theatre) -> None:
    await opened.begin(LAST)
    await opened.until_prompted(2)
    (answer,) = [each for each in await at_once(pausing(opened), partial(let_go, opened)) if not _asked(each)]
    view = await opened.until("build-it", "paused", "completed")
    assert len(await told_as_it_is(opened)) == 2
    # With nothing left to do there is nothing to pause, and that is what the answer says.
    assert (view.status == "paused") == isinstance(answer, Action)


async def test_a_pause_and_a_cancel_at_once_end_in_a_cancelled_workflow(opened: Theatre) -> None:
    await opened.begin(HELD)
    await opened.until_prompted(1)
    answers = await at_once(pausing(opened), cancelling(opened), pausing(opened))
    view = await opened.until("build-it", "cancelled")
    assert (await told_as_it_is(opened))[-1].after == view.status == "cancelled"
    assert [each.status for each in answers if isinstance(each, Action)].count("cancelled") == 1
    assert opened.services.live == {}


async def test_a_cancel_that_races_with_the_last_task_ends_in_one_of_the_two(opened: Theatre) -> None:
    await opened.begin(LAST)
    await opened.until_prompted(2)
    await at_once(cancelling(opened), partial(let_go, opened))
    view = await opened.until("build-it", "cancelled", "completed")
    assert [move.after for move in (await told_as_it_is(opened))] == ["in_progress", view.status]


async def test_a_resume_that_races_with_a_cancel_leaves_nobody_at_work(opened: Theatre) -> None:
    await opened.begin(HELD)
    await opened.until_prompted(1)
    go(opened)
    await opened.pause("build-it", wait=True)
    await opened.until("build-it", "paused")

    async def resume() -> Action:
        return Action(status="pause_requested", workflow_id=(await opened.resume("build-it")).workflow_id)

    await at_once(resume, cancelling(opened))
    await opened.until("build-it", "cancelled")
    await told_as_it_is(opened)
    assert (opened.services.live, opened.services.environments) == ({}, {})


def _asked(answer: Action | WrongState) -> bool:
    return isinstance(answer, Action) and answer.status == "pause_requested"
