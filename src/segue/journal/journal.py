"""Journal: one object for all writes and reads."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync
from sqlalchemy import Connection

from segue.journal import records
from segue.journal.chain import Entry, append_all_in
from segue.journal.checkpoints import CheckpointReads
from segue.journal.conversations import ConversationStore
from segue.journal.database import Database
from segue.journal.memories import MemoryStore
from segue.journal.prompts import PromptReads
from segue.journal.questions import QuestionReads
from segue.journal.records import ChainCheck
from segue.journal.rows import WorkflowRow
from segue.journal.runs import RunReads
from segue.journal.sessions import SessionReads
from segue.journal.transaction import Transaction
from segue.journal.workflows import NewWorkflowRow, WorkflowReads
from segue.model.clock import Clock
from segue.model.crash import crash_point
from segue.model.events import Event, Record, Stretch
from segue.model.ids import NOTHING_SEEN, AttemptId, Seq, SessionId, TaskId, WorkflowId
from segue.state.fold import WorkflowState, fold
from segue.store.database_lock import DatabaseLock, lock_database
from segue.store.engines import Engines, open_engines
from segue.store.migrate import migrate
from segue.store.writer import GroupWriter, Outcome

T = TypeVar("T")

PAGE = 500


@dataclass(slots=True)
class _Append:
    workflow_id: WorkflowId
    entries: Sequence[Entry]
    answer: asyncio.Future[Seq]


def _write_group(connection: Connection, appends: Sequence[_Append]) -> Sequence[Seq]:
    """Write appends of many callers in one transaction; each gets the last number of its workflow."""
    by_workflow: dict[WorkflowId, list[Entry]] = {}
    for append in appends:
        by_workflow.setdefault(append.workflow_id, []).extend(append.entries)
    heads = append_all_in(connection, by_workflow)
    crash_point("writer.before_commit")
    return [heads[append.workflow_id] for append in appends]


@dataclass(slots=True)
class _Wakeups:
    """Callers that wait for a workflow's next event."""

    waiting: dict[WorkflowId, anyio.Event] = field(default_factory=dict[WorkflowId, anyio.Event])

    def next(self, workflow_id: WorkflowId) -> anyio.Event:
        """Return the event that the workflow's next wake sets."""
        return self.waiting.setdefault(workflow_id, anyio.Event())

    def wake(self, workflow_id: WorkflowId) -> None:
        """Set the event for those that wait for the workflow, if any."""
        if (event := self.waiting.pop(workflow_id, None)) is not None:
            event.set()


class Journal:
    """Journal of one database, opened by `open_journal`.

    Its own methods append, follow and fold events. Each part reads one subject. Reads and transactions run in threads,
    so the caller's event loop never waits for a disk.
    """

    def __init__(self, engines: Engines, clock: Clock, lock: DatabaseLock) -> None:
        self.engines = engines
        self.clock = clock
        self._lock = lock
        self._loop = asyncio.get_running_loop()
        self._writer: GroupWriter[_Append, Seq] = GroupWriter(engines, _write_group, self._deliver)
        self._wakeups = _Wakeups()
        self._states: dict[WorkflowId, WorkflowState] = {}
        self._commits: dict[WorkflowId, int] = {}
        """Commits of each workflow since this journal was opened."""
        self._folded_at: dict[WorkflowId, int] = {}
        """Commits that each folded state contains."""
        self._database = Database(engines)
        self.workflows = WorkflowReads(self._database)
        self.sessions = SessionReads(self._database)
        self.runs = RunReads(self._database)
        self.prompts = PromptReads(self._database)
        self.questions = QuestionReads(self._database)
        self.checkpoints = CheckpointReads(self._database)
        self.conversations = ConversationStore(self._database)

    @property
    def is_embedded(self) -> bool:
        """Return True if the database is a file that only this process uses."""
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
        """Append events and return the last one's number when they are on disk; many callers share one commit. With
        `attempt`, they are written only while that attempt owns its run; late ones are dropped and counted."""
        now = self.clock.now()
        entries = [Entry(event, now, session_id, run, attempt) for event in events]
        answer = self._loop.create_future()
        # A submitted event is written even if the caller stops waiting for it.
        self._writer.submit(_Append(workflow_id, entries, answer))
        return await answer

    def _deliver(self, outcomes: Sequence[Outcome[_Append, Seq]]) -> None:
        """Hand the outcomes of a commit from the writer's thread to the event loop."""
        with suppress(RuntimeError):  # the loop is closed, so no caller waits any more
            self._loop.call_soon_threadsafe(self._resolve, outcomes)

    def _resolve(self, outcomes: Sequence[Outcome[_Append, Seq]]) -> None:
        """Give each waiting caller its result or error, and wake the workflows' followers."""
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
        """Create a workflow, do `then` in the same transaction, and return its result."""
        now = self.clock.now()
        return await self._commit(new.id, lambda connection: Transaction.create(connection, new, now), then)

    async def transact(self, workflow_id: WorkflowId, work: Callable[[Transaction], T]) -> T:
        """Run `work` under the workflow's lock and return its result; everything it does commits together or not at
        all."""
        now = self.clock.now()
        return await self._commit(workflow_id, lambda connection: Transaction(connection, workflow_id, now), work)

    async def _commit(
        self, workflow_id: WorkflowId, begin: Callable[[Connection], Transaction], work: Callable[[Transaction], T]
    ) -> T:
        """Commit what `work` does, make the calls that it asked for, wake the followers, and return its result."""

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

    async def write_memories(self, work: Callable[[MemoryStore], T]) -> T:
        """Run `work` on the memory in one transaction, one caller at a time, and return its result."""
        return await self._database.write_exclusively(lambda connection: work(MemoryStore(connection)))

    async def read_memories(self, work: Callable[[MemoryStore], T]) -> T:
        """Run `work` on the memory, which only reads, and return its result."""
        return await self._database.read(lambda connection: work(MemoryStore(connection)))

    async def check_lock(self) -> None:
        """Take the lock on the database again if it was lost; raise when another server has taken it."""
        await run_sync(self._lock.check)

    def announce(self, workflow_id: WorkflowId) -> None:
        """Count a commit of the workflow, so that its state is folded again, and wake its followers."""
        self._commits[workflow_id] = self._commits.get(workflow_id, 0) + 1
        self._wakeups.wake(workflow_id)

    def next_commit(self, workflow_id: WorkflowId) -> anyio.Event:
        """Return the event that the workflow's next commit sets; take it before reading what to wait for."""
        return self._wakeups.next(workflow_id)

    # ── events ──────────────────────────────────────────────────────────────────────────────────────

    async def records(self, workflow_id: WorkflowId, after: Seq = NOTHING_SEEN, limit: int = PAGE) -> list[Record]:
        """Return the events after this number, oldest first, at most `limit`."""
        return await self._database.read(records.records_after, workflow_id, after, limit)

    async def last_records(
        self,
        workflow_id: WorkflowId,
        kinds: Collection[str],
        *,
        limit: int = PAGE,
        within: Stretch | None = None,
        aside: Collection[SessionId] = (),
    ) -> list[Record]:
        """Return the latest events of some kinds, newest first, in the stretch `within` if given, without those of
        the sessions `aside`."""
        return await self._database.read(records.last_records, workflow_id, kinds, limit, within, aside)

    async def head(self, workflow_id: WorkflowId) -> Seq:
        """Return the number of the workflow's last event."""
        return await self._database.read(records.head_of, workflow_id)

    async def last_event_at(self, workflow_id: WorkflowId) -> datetime | None:
        """Return the time of the workflow's last event; None if it has none."""
        return await self._database.read(records.last_event_at, workflow_id)

    async def event_times(self, workflow_id: WorkflowId, seqs: Collection[int]) -> dict[int, datetime]:
        """Return the times of the events with these numbers."""
        return await self._database.read(records.times_of, workflow_id, seqs)

    async def task_starts(self, workflow_id: WorkflowId) -> list[tuple[int, TaskId]]:
        """Return the number and the task of each event at which a task began, oldest first."""
        return await self._database.read(records.task_starts, workflow_id)

    async def verify(self, workflow_id: WorkflowId) -> ChainCheck:
        """Recompute the workflow's hash chain; the result names the first problem, if there is one."""
        return await self._database.read(records.verify_chain, workflow_id)

    async def wait(self, workflow_id: WorkflowId, after: Seq, limit: int = PAGE) -> list[Record]:
        """Wait until there are events after this number, and return them, oldest first, at most `limit`."""
        while True:
            wakeup = self.next_commit(workflow_id)
            if found := await self.records(workflow_id, after, limit):
                return found
            await wakeup.wait()

    async def follow(self, workflow_id: WorkflowId, after: Seq = NOTHING_SEEN) -> AsyncIterator[Record]:
        """Yield every event after `after`, without end, gap or duplicate."""
        while True:
            for record in await self.wait(workflow_id, after):
                after = record.seq
                yield record

    # ── state ───────────────────────────────────────────────────────────────────────────────────────

    async def state(self, workflow_id: WorkflowId) -> WorkflowState:
        """Return the folded state; only events since the last call are read, and nothing if there are none."""
        commits = self._commits.get(workflow_id, 0)
        if self._folded_at.get(workflow_id) == commits:
            return self._states[workflow_id]
        state = await self._folded(workflow_id)
        self._folded_at[workflow_id] = commits
        return state

    async def present(self, name: str) -> tuple[WorkflowRow, WorkflowState]:
        """Return a workflow and its state after the same event, so that waiting for the next event misses none."""
        while True:
            row, head = await self.workflows.at_head(name)
            state = await self._folded(row.id, head)
            if state.seq <= head:
                return row, state

    async def _folded(self, workflow_id: WorkflowId, head: float = inf) -> WorkflowState:
        """Fold up to the head or to the journal's end and keep the result; return at least that state, or a newer
        one of another caller."""
        while (state := self._states.get(workflow_id, WorkflowState())).seq < head:
            most = int(min(PAGE, head - state.seq))
            page = await self.records(workflow_id, state.seq, most)
            state = fold(page, state)
            # Another caller may have folded more meanwhile.
            if workflow_id not in self._states or state.seq > self._states[workflow_id].seq:
                self._states[workflow_id] = state
            if len(page) < most:
                break
        return state

    def forget(self, workflow_id: WorkflowId) -> None:
        """Free the memory of a workflow's state; the next call of `state` folds it again."""
        self._states.pop(workflow_id, None)
        self._folded_at.pop(workflow_id, None)

    # ── opening and closing ─────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start the writer's thread."""
        self._writer.start()

    async def close(self) -> None:
        """Write what was submitted, then stop the writer."""
        with anyio.CancelScope(shield=True):
            await run_sync(self._writer.close)


@asynccontextmanager
async def open_journal(database_url: str, clock: Clock) -> AsyncGenerator[Journal]:
    """Lock the database for this process alone, migrate it, and yield its journal; close it at the end."""
    engines = open_engines(database_url)
    try:
        with lock_database(engines) as lock:
            await run_sync(migrate, engines.plain)
            journal = Journal(engines, clock, lock)
            journal.start()
            try:
                yield journal
            finally:
                await journal.close()
    finally:
        engines.close()
