"""Runs: queries, and their changes inside a transaction."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, insert, select, update

from segue.journal.database import Database
from segue.journal.rows import RunRow, as_value
from segue.journal.runtimes import RuntimeWrites
from segue.journal.sessions import SessionWrites
from segue.journal.workflows import LockedWorkflow
from segue.model.events import RunEnded, RunQueued, RunStarted, WayChanged
from segue.model.ids import AttemptId, BootId, SessionId, WorkflowId
from segue.model.status import Carrying, Purpose, RunStatus
from segue.store import tables as t


def run_by_id(connection: Connection, session_id: str, number: int) -> RunRow:
    """Select a session's run with this number, which must exist."""
    query = select(t.runs).where(t.runs.c.session_id == session_id, t.runs.c.number == number)
    return as_value(RunRow, connection.execute(query).one())


def open_runs(connection: Connection, workflow_id: WorkflowId | None = None) -> list[RunRow]:
    """Select the runs that have not ended, of one workflow or of all."""
    query = select(t.runs).where(t.runs.c.status != RunStatus.ENDED)
    if workflow_id is not None:
        query = query.where(t.runs.c.workflow_id == workflow_id)
    return [as_value(RunRow, row) for row in connection.execute(query)]


def queued_runs(connection: Connection, boot: BootId) -> list[RunRow]:
    """Select the queued runs of a boot, oldest first."""
    mine = (t.runs.c.status == RunStatus.QUEUED, t.runs.c.boot == boot)
    query = select(t.runs).where(*mine).order_by(t.runs.c.queued_at, t.runs.c.session_id)
    return [as_value(RunRow, row) for row in connection.execute(query)]


def runs_by_attempt(connection: Connection, attempts: Collection[AttemptId]) -> dict[AttemptId, RunRow]:
    """Select the runs of these attempts, by attempt; unknown ones are left out."""
    found = connection.execute(select(t.runs).where(t.runs.c.attempt.in_(attempts)))
    runs = [as_value(RunRow, row) for row in found]
    return {run.attempt: run for run in runs if run.attempt is not None}


class RunReads:
    """Reads of runs."""

    def __init__(self, database: Database) -> None:
        self._read = database.read

    async def get(self, session_id: str, number: int) -> RunRow:
        """Return a session's run with this number."""
        return await self._read(run_by_id, session_id, number)

    async def open(self, workflow_id: WorkflowId | None = None) -> list[RunRow]:
        """Return the runs that have not ended, of one workflow or of all."""
        return await self._read(open_runs, workflow_id)

    async def queued(self, boot: BootId) -> list[RunRow]:
        """Return the queued runs of a boot, oldest first."""
        return await self._read(queued_runs, boot)

    async def by_attempt(self, attempts: Collection[AttemptId]) -> dict[AttemptId, RunRow]:
        """Return the runs of these attempts, by attempt; unknown ones are left out."""
        return await self._read(runs_by_attempt, attempts)


class RunWrites:
    """Runs of a locked workflow."""

    def __init__(self, workflow: LockedWorkflow, sessions: SessionWrites, runtimes: RuntimeWrites) -> None:
        self._workflow = workflow
        self._sessions = sessions
        self._runtimes = runtimes

    def get(self, session_id: SessionId, number: int) -> RunRow:
        """Return a session's run with this number."""
        return run_by_id(self._workflow.connection, session_id, number)

    def open(self) -> RunRow | None:
        """Return the workflow's run that has not ended, of which there is at most one; None if there is none."""
        return next(iter(open_runs(self._workflow.connection, self._workflow.id)), None)

    def held(self, session_id: SessionId, number: int, attempt: AttemptId) -> RunRow | None:
        """Return the run if this attempt still owns it, else None. This is the fence of every write of a run."""
        run = self.get(session_id, number)
        return run if run.status is RunStatus.ACTIVE and run.attempt == attempt else None

    def queue(self, session_id: SessionId, queued: RunQueued, boot: BootId) -> int:
        """Insert the next run of a session, append its event, and return its number; the caller adds it to the run
        queue in this same transaction. A run that works also takes the place of a scheduled retry."""
        number = self._sessions.get(session_id).run_count + 1
        self._sessions.update(session_id, run_count=number)
        row = {
            "session_id": session_id,
            "number": number,
            "workflow_id": self._workflow.id,
            "status": RunStatus.QUEUED,
            "way": queued.way,
            "purpose": queued.purpose,
            "boot": boot,
            "queued_at": self._workflow.now,
        }
        self._workflow.connection.execute(insert(t.runs), row)
        if queued.purpose is Purpose.WORK:
            # This run takes the place of a scheduled retry.
            self._workflow.update(retry_at=None)
        self._workflow.append(queued, session_id=session_id, run=number)
        return number

    def claim(self, session_id: SessionId, number: int, attempt: AttemptId, boot: BootId) -> bool:
        """Make a queued run active under this attempt; return False, with nothing written, when it was settled
        meanwhile or another boot queued it. A run starts only on the boot at which the user asked for it."""
        run = self.get(session_id, number)
        if run.status is not RunStatus.QUEUED or run.boot != boot:
            return False
        started = self._workflow.now
        self._update(session_id, number, status=RunStatus.ACTIVE, attempt=attempt, started_at=started)
        self._workflow.append(RunStarted(attempt=attempt, boot=boot), session_id=session_id, run=number)
        return True

    def change_way(self, session_id: SessionId, number: int, changed: WayChanged, carrying: Carrying) -> None:
        """Change the way in which the run goes on and the session's carrying, before its agent got a prompt, and
        append the event."""
        self._update(session_id, number, way=changed.after)
        self._sessions.set_carrying(session_id, carrying)
        self._workflow.append(changed, session_id=session_id, run=number)

    def set_purpose(self, session_id: SessionId, number: int, purpose: Purpose) -> None:
        """Change the purpose of a run, from chat to work or from work to leaving; no event is appended."""
        self._update(session_id, number, purpose=purpose)

    def end(self, session_id: SessionId, number: int, ended: RunEnded) -> None:
        """End a run and its session's agent process in the tables, and append the event."""
        self._update(session_id, number, status=RunStatus.ENDED, ended_at=self._workflow.now, outcome=ended.outcome)
        self._runtimes.end(session_id)
        self._workflow.append(ended, session_id=session_id, run=number)

    def _update(self, session_id: SessionId, number: int, **values: Any) -> None:
        """Change columns of a run's row."""
        query = update(t.runs).where(t.runs.c.session_id == session_id, t.runs.c.number == number)
        self._workflow.connection.execute(query.values(**values))
