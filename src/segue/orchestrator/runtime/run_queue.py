"""The queue of runs: one entry is one run of a session.

The row that `t.runs.queue` writes is the truth for every implementation: it names the boot that queued the
run, and `t.runs.claim` claims it under the fence. A queue decides when this process calls the body of a
queued run: as soon as the transaction that queued it has committed, and never when it was rolled back. How many
agents are up at once, and in which order, is decided by `slots`.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from segue.journal import Journal, Transaction
from segue.journal.rows import RunRow
from segue.model.errors import DatabaseUnusable
from segue.model.ids import BootId, SessionId, WorkflowId
from segue.model.status import RunStatus
from segue.orchestrator.runtime.concurrency import alongside

log = logging.getLogger("segue")

RunId = tuple[SessionId, int]
Body = Callable[[SessionId, int], Awaitable[None]]

READ_AGAIN = 1.0
"""Seconds until the queue is read again after the database could not be read."""


class RunQueue(Protocol):
    """Queue of the runs of one boot."""

    def enqueue(self, t: Transaction, session_id: SessionId, number: int) -> None:
        """Add a run that `t.runs.queue` wrote; its body is called once `t` has committed."""
        ...

    async def knows(self, run: RunRow) -> bool:
        """Return True if this run waits for its start, or is executed by this process."""
        ...

    def forget(self, session_id: SessionId, number: int) -> None:
        """Let the next run of the workflow start, although the body of this one has not returned."""
        ...


class Executions:
    """Bodies of runs in this process, one at a time for each workflow."""

    def __init__(self, body: Body, group: TaskGroup) -> None:
        self._body = body
        self._group = group
        self._over: dict[RunId, anyio.Event] = {}
        self._last: dict[WorkflowId, anyio.Event] = {}

    def __contains__(self, run: RunId) -> bool:
        return run in self._over

    def start(self, workflow_id: WorkflowId, session_id: SessionId, number: int) -> anyio.Event:
        """Call the body once those of the workflow's earlier runs have returned; the returned event is set when it
        has returned. A known run is not started twice."""
        if (over := self._over.get((session_id, number))) is None:
            before = self._last.get(workflow_id)
            over = self._last[workflow_id] = self._over[session_id, number] = anyio.Event()
            self._group.start_soon(self._execute, workflow_id, session_id, number, before, over)
        return over

    async def _execute(
        self,
        workflow_id: WorkflowId,
        session_id: SessionId,
        number: int,
        before: anyio.Event | None,
        over: anyio.Event,
    ) -> None:
        """Wait for the run before, call the body, log its error, and set the event."""
        try:
            if before is not None:
                await before.wait()
            await self._body(session_id, number)
        except Exception:  # one run must not end the others
            log.exception("run %s/r%s ended with an error; the sweep settles it", session_id, number)
        finally:
            over.set()
            del self._over[session_id, number]
            if self._last.get(workflow_id) is over:
                del self._last[workflow_id]

    def forget(self, session_id: SessionId, number: int) -> None:
        """Set the event of this run, so that the workflow's next run starts; do nothing if it is over."""
        if (over := self._over.get((session_id, number))) is not None:
            over.set()


class TableQueue:
    """Queue of a database that only this process uses: the rows of `runs` are its entries."""

    def __init__(self, journal: Journal, boot: BootId, executions: Executions) -> None:
        """Keep the rows of the `runs` table as the queue; none was started yet."""
        self._journal = journal
        self._boot = boot
        self._executions = executions
        self._committed = anyio.Event()
        self._started: set[RunId] = set()

    def enqueue(self, t: Transaction, session_id: SessionId, number: int) -> None:
        """Wake the starter once the transaction has committed; the row of the run is the entry."""
        t.when_committed(lambda: self._committed.set())

    async def knows(self, run: RunRow) -> bool:
        """Return True if this process executes the run, or it is queued and was not started yet."""
        id = (run.session_id, run.number)
        return id in self._executions or (run.status is RunStatus.QUEUED and id not in self._started)

    def forget(self, session_id: SessionId, number: int) -> None:
        """Let the workflow's next run start, although this one's body has not returned."""
        self._executions.forget(session_id, number)

    async def start_queued(self) -> None:
        """Start each queued run of this boot once, whenever a transaction has queued one."""
        while True:
            await self._committed.wait()
            self._committed = anyio.Event()
            try:
                queued = await self._journal.runs.queued(self._boot)
            except DatabaseUnusable as error:
                log.warning("the queue of runs could not be read, and is read again: %s", error)
                await anyio.sleep(READ_AGAIN)
                self._committed.set()
                continue
            # A run that is not queued any more cannot be read again.
            self._started &= {(run.session_id, run.number) for run in queued}
            for run in queued:
                if (run.session_id, run.number) not in self._started:
                    self._started.add((run.session_id, run.number))
                    self._executions.start(run.workflow_id, run.session_id, run.number)


@asynccontextmanager
async def open_queue(journal: Journal, boot: BootId, body: Body) -> AsyncGenerator[RunQueue]:
    """Open the queue for the journal's database: its own table on SQLite, Procrastinate on PostgreSQL. Runs that
    earlier boots left are never started."""
    async with alongside() as group:
        executions = Executions(body, group)
        if journal.is_embedded:
            queue = TableQueue(journal, boot, executions)
            group.start_soon(queue.start_queued)
            yield queue
        else:
            # Procrastinate is installed by the extra `postgres` alone.
            from segue.orchestrator.runtime.procrastinate_queue import open_distributed_queue

            async with open_distributed_queue(journal, executions) as queue:
                yield queue
