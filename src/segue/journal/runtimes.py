"""Agent processes of sessions: queries, and their changes inside a transaction."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, update

from segue.journal.rows import RuntimeRow, as_value
from segue.journal.workflows import LockedWorkflow
from segue.model.errors import WrongState
from segue.model.events import TokenCaptured, TokenRefused
from segue.model.ids import AttemptId, SessionId, WorkflowId
from segue.model.status import RuntimeStatus
from segue.store import tables as t


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Identity of an agent's process: its pid, start time and machine boot."""

    execution: AttemptId
    pid: int
    pid_started: str | None
    guardian_pid: int
    machine_boot: str | None
    container: str | None = None


def runtime_of(connection: Connection, session_id: str) -> RuntimeRow:
    """Select a session's agent process and resume token."""
    row = connection.execute(select(t.runtimes).where(t.runtimes.c.session_id == session_id)).one()
    return as_value(RuntimeRow, row)


def any_container(connection: Connection, workflow_id: WorkflowId | None = None) -> bool:
    """Return True if an agent was ever started in a container, in one workflow or in any."""
    query = select(t.runtimes.c.session_id).where(t.runtimes.c.container.is_not(None)).limit(1)
    if workflow_id is not None:
        query = query.join(t.sessions, t.sessions.c.id == t.runtimes.c.session_id)
        query = query.where(t.sessions.c.workflow_id == workflow_id)
    return connection.scalar(query) is not None


def insert_runtime(connection: Connection, session_id: SessionId) -> None:
    """Insert the row of a new session, which has no process yet."""
    row = {"session_id": session_id, "status": RuntimeStatus.NONE, "generation": 0, "dropped_events": 0}
    connection.execute(insert(t.runtimes), row)


class RuntimeWrites:
    """Agent processes and resume tokens of a locked workflow's sessions."""

    def __init__(self, workflow: LockedWorkflow) -> None:
        self._workflow = workflow

    def get(self, session_id: SessionId) -> RuntimeRow:
        """Return a session's agent process and resume token."""
        return runtime_of(self._workflow.connection, session_id)

    def occupy(self, session_id: SessionId, process: Process) -> None:
        """Record a new process of the session; writes of the one before are refused from now on."""
        self._update(session_id, status=RuntimeStatus.LIVE, last_seen_at=self._workflow.now, **asdict(process))

    def end(self, session_id: SessionId) -> None:
        """Record that the session's process is gone, if it had one."""
        self._update(session_id, t.runtimes.c.status == RuntimeStatus.LIVE, status=RuntimeStatus.ENDED)

    def record_heartbeat(self, session_id: SessionId, execution: AttemptId) -> bool:
        """Store the present time as a sign of life; return False when the execution is no longer the session's."""
        return self._update(session_id, t.runtimes.c.execution == execution, last_seen_at=self._workflow.now)

    def capture_token(self, session_id: SessionId, run: int | None, execution: AttemptId, token: str) -> None:
        """Store the agent's id for the conversation and append its event; raise WrongState if the execution does not
        own the session any more. A known token changes nothing."""
        runtime = self.get(session_id)
        if runtime.token == token:
            return
        captured = self._update(
            session_id,
            t.runtimes.c.execution == execution,
            t.runtimes.c.generation == runtime.generation,
            token=token,
            generation=runtime.generation + 1,
        )
        if not captured:
            raise WrongState("The conversation belongs to another execution by now.")
        self._workflow.append(TokenCaptured(token=token), session_id=session_id, run=run)

    def import_token(self, session_id: SessionId, token: str) -> None:
        """Store the token of an imported conversation; no process has used it yet."""
        self._update(session_id, token=token)
        self._workflow.append(TokenCaptured(token=token), session_id=session_id)

    def refuse_token(self, session_id: SessionId, run: int, token: str, reason: str) -> None:
        """Remove the token that the agent rejected, and append the event, which keeps it; it is tried again only on
        request."""
        generation = self.get(session_id).generation + 1
        self._update(session_id, t.runtimes.c.token == token, token=None, generation=generation)
        self._workflow.append(TokenRefused(token=token, reason=reason), session_id=session_id, run=run)

    def retry_token(self, session_id: SessionId, token: str) -> None:
        """Store a rejected token again, on request, and append its event."""
        self._update(session_id, token=token, generation=self.get(session_id).generation + 1)
        self._workflow.append(TokenCaptured(token=token), session_id=session_id)

    def _update(self, session_id: SessionId, *conditions: ColumnElement[bool], **values: Any) -> bool:
        """Change columns of a session's row if the conditions hold; return False if they do not."""
        query = update(t.runtimes).where(t.runtimes.c.session_id == session_id, *conditions).values(**values)
        return self._workflow.connection.execute(query).rowcount == 1
