"""How many agents are up at once, and in which order the others follow."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import anyio
import pytest
from anyio.lowlevel import checkpoint

from segue.model import events as e
from segue.model.ids import WorkflowId
from segue.model.status import SessionStatus, WorkflowStatus
from segue.orchestrator.runtime.slots import Slots
from tests.journal.statements import execute
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

QUICK = "turns: [{do: [{say: Done.}]}]"
HOLDS = "turns: [{match: Hold the place, do: [{say: At it.}, {wait_for: go}]}]"
MORNING = datetime(2026, 1, 1, tzinfo=UTC)


# ── the line ────────────────────────────────────────────────────────────────────────────────────────


async def served(places: Slots, hours: Sequence[int], *, gives_up: int | None = None) -> list[int]:
    """In which order those get a place who stand in line since these hours, while somebody else has the only one."""
    order: list[int] = []

    async def wait(hour: int, scope: anyio.CancelScope) -> None:
        with scope:
            async with places.one(MORNING + timedelta(hours=hour)) as place:
                if place:
                    order.append(hour)

    async with anyio.create_task_group() as group, places.one(MORNING):
        for hour in hours:
            scope = anyio.CancelScope()
            group.start_soon(wait, hour, scope)
            await checkpoint()
            if hour == gives_up:
                scope.cancel()
        await checkpoint()
        assert order == []
    return order


async def test_whoever_waits_longest_is_next() -> None:
    assert await served(Slots(1), [5, 2, 4, 3]) == [2, 3, 4, 5]


async def test_whoever_gives_up_takes_no_place_from_the_others() -> None:
    assert await served(Slots(1), [1, 2, 3], gives_up=2) == [1, 3]


async def test_whoever_waits_when_the_places_are_closed_is_sent_away() -> None:
    places = Slots(1)
    got: list[bool] = []

    async def wait() -> None:
        async with places.one(MORNING) as place:
            got.append(place)

    async with places.one(MORNING), anyio.create_task_group() as group:
        group.start_soon(wait)
        await checkpoint()
        places.close()
    await wait()
    assert got == [False, False]


# ── the line, with the queue and agents ────────────────────────────────────────────────────────────


async def claims(theatre: Theatre) -> list[tuple[str, str]]:
    """Which runs were started and ended, of all workflows, in the order of the commits."""
    query = "SELECT workflow_id, kind FROM events WHERE kind IN ('run.started', 'run.ended') ORDER BY rowid"
    return [(row.workflow_id, row.kind) for row in (await execute(theatre.services.journal, query))]


async def test_twelve_workflows_on_two_places_all_finish_about_in_order(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=2):
        queued = list[WorkflowId]()
        for n in range(12):
            queued.append((await theatre.begin(QUICK, plan=None, title=f"Number {n}")).id)
            await theatre.clock.advance(1)
        with anyio.fail_after(120):
            for workflow_id in queued:
                await theatre.until(workflow_id, "completed")
        told = await claims(theatre)
    at_once = list(accumulate(1 if kind == "run.started" else -1 for _, kind in told))
    assert (max(at_once), at_once[-1]) == (2, 0)
    started = [workflow_id for workflow_id, kind in told if kind == "run.started"]
    assert sorted(started) == sorted(queued)
    # Two that get their places together may change theirs.
    assert max(abs(started.index(each) - queued.index(each)) for each in queued) <= 2


async def test_work_that_waits_is_queued_and_not_late(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1, setup_watchdog=60.0, start_watchdog=60.0):
        await theatre.begin(HOLDS, plan=None, title="Hold the place")
        await theatre.event("hold-the-place", e.PromptAcknowledged)
        waiting = await theatre.begin(HOLDS, plan=None, title="Wait for it")
        await theatre.clock.advance(300)
        await theatre.sweep()
        view = await theatre.orchestrator.workflow(waiting.id)
        assert (view.status, view.session and view.session.status) == (WorkflowStatus.PENDING, SessionStatus.CREATED)
        (worktree_of(theatre, "hold-the-place") / "go").touch()
        await theatre.until("hold-the-place", "completed")
        await theatre.until(waiting.id, "completed")


async def test_work_that_is_paused_in_line_can_go_on_and_stands_there_once(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1):
        await theatre.begin(HOLDS, plan=None, title="Hold the place")
        await theatre.event("hold-the-place", e.PromptAcknowledged)
        first = await theatre.begin(HOLDS, plan=None, title="Come first")
        second = await theatre.begin(HOLDS, plan=None, title="Come second")
        assert (await theatre.pause(first.id, "not now", wait=True)).status == "paused"
        assert (await theatre.cancel(second.id, "never")).status == "cancelled"
        assert (await theatre.resume(first.id)).run == 2
        (worktree_of(theatre, "hold-the-place") / "go").touch()
        view = await theatre.until(first.id, "completed")
        assert (view.runs, view.tasks_done) == (2, 1)
        assert [event.outcome for event in await theatre.events(second.id, e.RunEnded)] == ["not_started"]
        assert theatre.services.environments == {}
    assert len(theatre.diary("started")) == 2


async def test_a_server_that_stops_starts_nobody_who_stood_in_line(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1):
        await theatre.begin(HOLDS, plan=None, title="Hold the place")
        await theatre.event("hold-the-place", e.PromptAcknowledged)
        waiting = await theatre.begin(HOLDS, plan=None, title="Wait for it")
    assert len(theatre.diary("started")) == 1
    async with theatre.open(agents_at_once=1):
        assert (await theatre.orchestrator.workflow(waiting.id)).status is WorkflowStatus.PENDING
        await theatre.resume(waiting.id)
        await theatre.until(waiting.id, "completed")
