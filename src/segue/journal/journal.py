"""The journal: one object for everything that is written and read."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from segue.journal import reading, rows
from segue.journal.chain import Entry, append_all_in
from segue.journal.transaction import NewWorkflowRow, Transaction
from segue.model.checkpoint import Checkpoint
from segue.model.clock import Clock
from segue.model.crash import crash_point
from segue.model.errors import DatabaseUnusable
from segue.model.events import Event, Record, Stretch
from segue.model.ids import NOTHING_SEEN, AttemptId, BootId, Seq, SessionId, WorkflowId
from segue.model.status import WorkflowStatus
from segue.state.fold import WorkflowState, fold
from segue.store.engines import Engines, open_engines
from segue.store.exclusive import Hold, hold_database
from segue.store.migrate import migrate
from segue.store.writer import GroupWriter, Outcome

T = TypeVar("T")

PAGE = 500

_ALONE = {
    "sqlite": text("BEGIN IMMEDIATE"),
    # Any number does but that of the server's own lock.
    "postgresql": text("SELECT pg_advisory_xact_lock(386063)"),
}
"""How a transaction gets the lock that `Journal.write` holds from its beginning."""


@dataclass(slots=True)
class _Append:
    workflow_id: WorkflowId
    entries: Sequence[Entry]
    answer: asyncio.Future[Seq]


def _write_group(connection: Connection, appends: Sequence[_Append]) -> Sequence[Seq]:
    """Appends to the same workflow become one; each is answered with the head after it."""
    by_workflow: dict[WorkflowId, list[Entry]] = {}
    for append in appends:
        by_workflow.setdefault(append.workflow_id, []).extend(append.entries)
    heads = append_all_in(connection, by_workflow)
    crash_point("writer.before_commit")
    return [heads[append.workflow_id] for append in appends]


@dataclass(slots=True)
class _News:
    """Wakes those who wait for a workflow's next event."""

    waiting: dict[WorkflowId, anyio.Event] = field(default_factory=dict[WorkflowId, anyio.Event])

    def next(self, workflow_id: WorkflowId) -> anyio.Event:
        return self.waiting.setdefault(workflow_id, anyio.Event())

    def announce(self, workflow_id: WorkflowId) -> None:
        if (event := self.waiting.pop(workflow_id, None)) is not None:
            event.set()


class Journal:
    """Made by `open_journal`. Reads and transactions run in threads; the caller's loop never waits for a disk."""

    def __init__(self, engines: Engines, clock: Clock, hold: Hold) -> None:
        self.engines = engines
        self.clock = clock
        self._hold = hold
        self._loop = asyncio.get_running_loop()
        self._writer: GroupWriter[_Append, Seq] = GroupWriter(engines, _write_group, self._deliver)
        self._news = _News()
        self._states: dict[WorkflowId, WorkflowState] = {}

    @property
    def is_embedded(self) -> bool:
        """Return whether the database is a file that only this process uses."""
        return self.engines.is_sqlite

    @property
    def address(self) -> str:
        """Return the URL of a PostgreSQL database as its own tools read it, password included."""
        return self.engines.url.set(drivername="postgresql").render_as_string(hide_password=False)

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────

    async def append(
        self,
        workflow_id: WorkflowId,
        *events: Event,
        session_id: SessionId | None = None,
        run: int | None = None,
        attempt: AttemptId | None = None,
    ) -> Seq:
        """Returns when the events are on disk; many callers share one commit.

        With `attempt`, they are written only while that physical try owns its run; late ones are dropped and counted.
        """
        now = self.clock.now()
        entries = [Entry(event, now, session_id, run, attempt) for event in events]
        answer = self._loop.create_future()
        # What is submitted will be written, whether or not the caller still waits for it.
        self._writer.submit(_Append(workflow_id, entries, answer))
        return await answer

    def _deliver(self, outcomes: Sequence[Outcome[_Append, Seq]]) -> None:
        """Called by the writer's thread after each commit."""
        with suppress(RuntimeError):  # the loop is closed, so nobody waits any more
            self._loop.call_soon_threadsafe(self._tell, outcomes)

    def _tell(self, outcomes: Sequence[Outcome[_Append, Seq]]) -> None:
        for outcome in outcomes:
            answer = outcome.item.answer
            if answer.done():
                continue
            if outcome.error is not None:
                answer.set_exception(outcome.error)
            elif outcome.result is not None:
                answer.set_result(outcome.result)
        for workflow_id in {outcome.item.workflow_id for outcome in outcomes}:
            self.announce(workflow_id)

    async def create(self, new: NewWorkflowRow, then: Callable[[Transaction], T]) -> T:
        """Create a workflow, and do `then` in the same transaction."""
        now = self.clock.now()
        return await self._commit(new.id, lambda connection: Transaction.create(connection, new, now), then)

    async def transact(self, workflow_id: WorkflowId, work: Callable[[Transaction], T]) -> T:
        """Run `work` under the workflow's lock; everything it does commits together or not at all."""
        now = self.clock.now()
        return await self._commit(workflow_id, lambda connection: Transaction(connection, workflow_id, now), work)

    async def _commit(
        self, workflow_id: WorkflowId, begin: Callable[[Connection], Transaction], work: Callable[[Transaction], T]
    ) -> T:
        """Commit what `work` does, make the calls that it asked for, and wake the followers."""

        def run(connection: Connection) -> tuple[T, Transaction]:
            transaction = begin(connection)
            return work(transaction), transaction

        def commit() -> T:
            result, transaction = self.engines.transact(run)
            # From this thread: a caller that is cancelled meanwhile does not undo the commit.
            for call in transaction.calls_when_committed:
                self._loop.call_soon_threadsafe(call)
            return result

        result = await run_sync(commit)
        self.announce(workflow_id)
        return result

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run one of the functions of `search`, `memories` or `kept`: what is written there is no event of a workflow.

        One at a time, so that what `work` reads stays true until it commits.
        """

        def alone(connection: Connection) -> T:
            connection.execute(_ALONE[connection.dialect.name])
            return work(connection)

        return await run_sync(lambda: self.engines.transact(alone))

    async def keep_hold(self) -> None:
        """Make sure that the database is still ours; raises when another server has taken it."""
        await run_sync(self._hold.keep)

    def announce(self, workflow_id: WorkflowId) -> None:
        """Something was committed: wake the followers."""
        self._news.announce(workflow_id)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run one of the functions of `rows`."""

        def run() -> T:
            try:
                with self.engines.plain.connect() as connection:
                    return query(connection)
            except SQLAlchemyError as error:
                raise DatabaseUnusable(f"The database could not be read: {getattr(error, 'orig', error)}.") from error

        return await run_sync(run)

    async def queued_runs(self, boot: BootId) -> list[rows.RunRow]:
        return await self.read(lambda c: rows.queued_runs(c, boot))

    async def workflow(self, name: str) -> rows.WorkflowRow:
        return await self.read(lambda c: rows.workflow_named(c, name))

    async def workflows(self, statuses: Collection[WorkflowStatus] = ()) -> list[rows.WorkflowRow]:
        return await self.read(lambda c: rows.all_workflows(c, statuses))

    async def records(self, workflow_id: WorkflowId, after: Seq = NOTHING_SEEN, limit: int = PAGE) -> list[Record]:
        return await self.read(lambda c: reading.records_after(c, workflow_id, after, limit))

    async def last_records(
        self,
        workflow_id: WorkflowId,
        kinds: Collection[str],
        *,
        limit: int = PAGE,
        within: Stretch | None = None,
        aside: Collection[SessionId] = (),
    ) -> list[Record]:
        """Newest first, without those of the sessions that are left aside."""
        return await self.read(lambda c: reading.last_records(c, workflow_id, kinds, limit, within, aside))

    async def head(self, workflow_id: WorkflowId) -> Seq:
        return await self.read(lambda c: rows.head_of(c, workflow_id))

    async def last_event_at(self, workflow_id: WorkflowId) -> datetime | None:
        return await self.read(lambda c: rows.last_event_at(c, workflow_id))

    async def wait(self, workflow_id: WorkflowId, after: Seq, limit: int = PAGE) -> list[Record]:
        """Like `records`, but waits until there is something."""
        while True:
            # Asked for before reading, so that what comes in between is not missed.
            news = self._news.next(workflow_id)
            if found := await self.records(workflow_id, after, limit):
                return found
            await news.wait()

    async def follow(self, workflow_id: WorkflowId, after: Seq = NOTHING_SEEN) -> AsyncIterator[Record]:
        """Every event after `after`, for ever, without gap or duplicate."""
        while True:
            for record in await self.wait(workflow_id, after):
                after = record.seq
                yield record

    async def state(self, workflow_id: WorkflowId) -> WorkflowState:
        """The folded state; only what is new since the last time is read."""
        return await self._folded(workflow_id)

    async def present(self, name: str) -> tuple[rows.WorkflowRow, WorkflowState]:
        """A workflow and its state after one and the same event, so that whoever waits for the next one misses none."""
        while True:
            row, head = await self.read(lambda c: rows.workflow_at_head(c, name))
            state = await self._folded(row.id, head)
            if state.seq <= head:
                return row, state

    async def _folded(self, workflow_id: WorkflowId, head: float = inf) -> WorkflowState:
        """Up to the head, or further if somebody else has read on already."""
        while (state := self._states.get(workflow_id, WorkflowState())).seq < head:
            most = int(min(PAGE, head - state.seq))
            page = await self.records(workflow_id, state.seq, most)
            self._states[workflow_id] = state = fold(page, state)
            if len(page) < most:
                break
        return state

    def forget(self, workflow_id: WorkflowId) -> None:
        """Free the memory that a workflow's state takes; whoever asks for it next has it read anew."""
        self._states.pop(workflow_id, None)

    async def checkpoint(self, workflow_id: WorkflowId, name: str) -> Checkpoint:
        return await self.read(lambda c: reading.checkpoint_named(c, workflow_id, name))

    async def standing(self, workflow_id: WorkflowId, state: WorkflowState) -> Checkpoint | None:
        """The checkpoint that the work goes on from: the newest snapshot, or the one that it was taken back to."""
        return await self.checkpoint(workflow_id, state.last_snapshot) if state.last_snapshot else None

    async def snapshots(self, workflow_id: WorkflowId, limit: int | None = None) -> list[Checkpoint]:
        """Newest first."""
        return await self.read(lambda c: reading.snapshots_of(c, workflow_id, limit))

    async def verify(self, workflow_id: WorkflowId) -> reading.Verdict:
        return await self.read(lambda c: reading.verify_chain(c, workflow_id))

    # ── opening and closing ─────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        self._writer.start()

    async def close(self) -> None:
        """Writes what was submitted."""
        with anyio.CancelScope(shield=True):
            await run_sync(self._writer.close)


@asynccontextmanager
async def open_journal(database_url: str, clock: Clock) -> AsyncGenerator[Journal]:
    """Open the database for this process alone, bring it to the present schema, and close it at the end."""
    engines = open_engines(database_url)
    try:
        with hold_database(engines) as hold:
            await run_sync(migrate, engines.plain)
            journal = Journal(engines, clock, hold)
            journal.start()
            try:
                yield journal
            finally:
                await journal.close()
    finally:
        engines.close()
