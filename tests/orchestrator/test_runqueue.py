"""Conformance of the queues of runs: the rows of `runs` on SQLite, Procrastinate on PostgreSQL."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from segue.journal import Journal, Transaction, open_journal
from segue.journal.rows import RunRow
from segue.model.errors import WrongState
from segue.model.events import AgentMessage, RunEnded, RunQueued, Warned
from segue.model.ids import BootId, SessionId, WorkflowId, new_attempt_id
from segue.model.status import RunStatus, Way
from segue.orchestrator.runtime.run_queue import RunId, RunQueue, open_queue
from tests.journal.statements import execute
from tests.journal.workflows import BOOT, TickingClock, new_workflow

pytestmark = pytest.mark.anyio

EARLIER = BootId("boot-before")
Body = Callable[[SessionId, int], Awaitable[None]]


class Bench:
    """A queue whose bodies do what the test says."""

    def __init__(self, journal: Journal, boot: BootId = BOOT) -> None:
        self.journal = journal
        self.boot = boot
        self.queue: RunQueue
        self.started: list[RunId] = []
        self.news = anyio.Event()
        self.bodies: dict[RunId, Callable[[], Awaitable[None]]] = {}

    async def body(self, session_id: SessionId, number: int) -> None:
        self.started.append((session_id, number))
        self.news.set()
        self.news = anyio.Event()
        if (does := self.bodies.get((session_id, number))) is not None:
            await does()

    async def until_started(self, runs: int) -> None:
        with anyio.fail_after(20):
            while len(self.started) < runs:
                await self.news.wait()

    def add(self, t: Transaction, session_id: SessionId) -> int:
        number = t.runs.queue(session_id, RunQueued(way=Way.FIRST, reason="new"), self.boot)
        self.queue.enqueue(t, session_id, number)
        return number

    async def begin(self, name: str = "work", then: Callable[[Transaction], None] | None = None) -> RunId:
        """A workflow with one queued run."""
        new = replace(new_workflow(), id=WorkflowId(f"w-{name}"), slug=name, worktree=f"/trees/{name}")
        session_id = SessionId(f"s-{name}")

        def write(t: Transaction) -> int:
            t.sessions.create(session_id, "rehearsal")
            number = self.add(t, session_id)
            if then is not None:
                then(t)
            return number

        return session_id, await self.journal.create(new, write)

    async def row(self, run: RunId) -> RunRow:
        return await self.journal.runs.get(*run)


def workflow_of(run: RunId) -> WorkflowId:
    return WorkflowId(run[0].replace("s-", "w-", 1))


@asynccontextmanager
async def opened(url: str, clock: TickingClock, boot: BootId = BOOT) -> AsyncIterator[Bench]:
    async with open_journal(url, clock) as journal:
        bench = Bench(journal, boot)
        async with open_queue(journal, boot, bench.body) as bench.queue:
            yield bench


@pytest.fixture
async def bench(database_url: str, clock: TickingClock) -> AsyncIterator[Bench]:
    async with opened(database_url, clock) as bench:
        yield bench


async def forever() -> None:
    await anyio.Event().wait()


async def test_a_run_starts_when_its_transaction_has_committed(bench: Bench) -> None:
    run = await bench.begin()
    with anyio.fail_after(1):
        await bench.until_started(1)
    assert bench.started == [run]


async def test_a_run_whose_transaction_is_rolled_back_is_never_started(bench: Bench) -> None:
    def refuse(_t: Transaction) -> None:
        raise WrongState("changed my mind")

    with pytest.raises(WrongState):
        await bench.begin("first", refuse)
    second = await bench.begin("second")
    await bench.until_started(1)
    assert bench.started == [second]
    assert await _jobs(bench) <= 1


async def _jobs(bench: Bench) -> int:
    if bench.journal.is_embedded:
        return 0
    [(count,)] = await execute(bench.journal, "SELECT count(*) FROM procrastinate_jobs")
    return count


async def test_runs_of_many_workflows_are_executed_side_by_side(bench: Bench) -> None:
    for n in range(20):
        bench.bodies[SessionId(f"s-{n}"), 1] = forever
        await bench.begin(str(n))
    await bench.until_started(20)
    assert len(set(bench.started)) == 20


async def test_the_next_run_of_a_workflow_starts_after_the_last_body(bench: Bench) -> None:
    let_go = anyio.Event()
    bench.bodies[SessionId("s-work"), 1] = let_go.wait
    first = await bench.begin()
    await bench.until_started(1)
    second = await follow(bench, first)
    other = await bench.begin("other")
    await bench.until_started(2)
    assert bench.started == [first, other]
    assert await bench.queue.knows(await bench.row(second))
    let_go.set()
    await bench.until_started(3)
    assert bench.started == [first, other, second]


async def test_a_run_that_was_forgotten_does_not_block_the_next_one(bench: Bench) -> None:
    bench.bodies[SessionId("s-work"), 1] = forever
    first = await bench.begin()
    await bench.until_started(1)
    second = await follow(bench, first)
    bench.queue.forget(*first)
    await bench.until_started(2)
    assert bench.started == [first, second]


async def follow(bench: Bench, first: RunId) -> RunId:
    """End a run in the journal, and queue the session's next one."""

    def write(t: Transaction) -> int:
        t.runs.end(*first, RunEnded(outcome="paused", reason="enough"))
        return bench.add(t, first[0])

    return first[0], await bench.journal.transact(workflow_of(first), write)


async def test_runs_that_an_earlier_boot_left_are_never_started(database_url: str, clock: TickingClock) -> None:
    async with opened(database_url, clock, EARLIER) as bench:
        bench.bodies[SessionId("s-active"), 1] = forever
        active = await bench.begin("active")
        await bench.until_started(1)
        await bench.journal.transact(workflow_of(active), lambda t: t.runs.claim(*active, new_attempt_id(), EARLIER))
    # As a server leaves it that is killed between its commit and the start.
    async with open_journal(database_url, clock) as journal:
        bench = Bench(journal, EARLIER)
        bench.queue = _Silent() if journal.is_embedded else await _deferring(journal)
        left = await bench.begin("left")
    async with opened(database_url, clock) as bench:
        assert await _jobs(bench) == 0
        assert [await bench.queue.knows(await bench.row(active))] == [False]
        new = await bench.begin("new")
        await bench.until_started(1)
        assert bench.started == [new]
        assert (await bench.row(left)).status is RunStatus.QUEUED


class _Silent:
    """Stand-in for the table's queue in a process that is killed at once."""

    def enqueue(self, t: Transaction, session_id: SessionId, number: int) -> None: ...

    async def knows(self, run: RunRow) -> bool:
        raise NotImplementedError

    def forget(self, session_id: SessionId, number: int) -> None: ...


async def _deferring(journal: Journal) -> RunQueue:
    """The distributed queue without a worker."""
    from procrastinate import App, PsycopgConnector

    from segue.orchestrator.runtime.procrastinate_queue import DistributedQueue
    from segue.orchestrator.runtime.run_queue import Executions

    app = App(connector=PsycopgConnector(conninfo=journal.address))
    return DistributedQueue(app, Executions(_not_called, anyio.create_task_group()))


async def _not_called(_session: SessionId, _number: int) -> None:
    raise AssertionError("there is no worker")


async def test_failed_bodies_end_alone(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise WrongState("it fails")

    bench.bodies[SessionId("s-work"), 1] = fail
    run = await bench.begin()
    await bench.until_started(1)
    other = await bench.begin("other")
    await bench.until_started(2)
    assert bench.started == [run, other]
    with anyio.fail_after(10):
        while await bench.queue.knows(await bench.row(run)):
            await anyio.lowlevel.checkpoint()
    assert "ended with an error" in caplog.text


async def test_a_hung_body_does_not_keep_the_queue_open(database_url: str, clock: TickingClock) -> None:
    cancelled = anyio.Event()

    async def hang() -> None:
        try:
            await anyio.Event().wait()
        finally:
            cancelled.set()

    with anyio.fail_after(20):
        async with opened(database_url, clock) as bench:
            bench.bodies[SessionId("s-work"), 1] = hang
            await bench.begin()
            await bench.until_started(1)
    assert cancelled.is_set()


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_only_ids_are_written_to_a_queue_of_its_own(bench: Bench) -> None:
    bench.bodies[SessionId("s-work"), 1] = forever
    await bench.begin()
    await bench.until_started(1)
    [(arguments,)] = await execute(bench.journal, "SELECT args FROM procrastinate_jobs")
    assert arguments == {"workflow_id": "w-work", "session_id": "s-work", "number": 1}


async def test_transactions_of_a_run_and_group_commits_keep_one_chain(bench: Bench) -> None:
    workflow_id, done = WorkflowId("w-work"), anyio.Event()

    async def write() -> None:
        for n in range(30):
            await bench.journal.transact(workflow_id, lambda t, n=n: t.append(Warned(code="step", message=str(n))))
        done.set()

    async def append(name: int) -> None:
        for n in range(30):
            await bench.journal.append(workflow_id, AgentMessage(text=f"{name} {n}"))

    bench.bodies[SessionId("s-work"), 1] = write
    await bench.begin()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in range(5):
                group.start_soon(append, name)
        await done.wait()
    verdict = await bench.journal.verify(workflow_id)
    assert verdict.problem is None
    assert verdict.events == 3 + 30 + 150


async def test_a_refused_transaction_writes_nothing(bench: Bench) -> None:
    def refuse(t: Transaction) -> None:
        t.append(Warned(code="half", message="written"))
        raise WrongState("refused")

    run = await bench.begin()
    with pytest.raises(WrongState, match="refused"):
        await bench.journal.transact(workflow_of(run), refuse)
    assert await bench.journal.head(workflow_of(run)) == 3
