"""Sessions: queries, and their moves inside a transaction."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, or_, select, update

from segue.journal.database import Database
from segue.journal.redaction import redact_text
from segue.journal.rows import RuntimeRow, SessionRow, as_value
from segue.journal.runtimes import any_container, insert_runtime, runtime_of
from segue.journal.workflows import LockedWorkflow, nothing_open
from segue.model.agents import Choices
from segue.model.errors import SessionNotFound
from segue.model.events import SessionCreated, SessionMoved
from segue.model.ids import SessionId, WorkflowId
from segue.model.status import Carrying, Role, SessionStatus, WaitingFor, WorkflowStatus
from segue.state.moves import SESSION_ENDED, WORKFLOW_ENDED, check_session_move
from segue.store import tables as t

# ── queries ─────────────────────────────────────────────────────────────────────────────────────────


def session_by_id(connection: Connection, session_id: str) -> SessionRow:
    """Select the session with this id; raise SessionNotFound if there is none."""
    row = connection.execute(select(t.sessions).where(t.sessions.c.id == session_id)).first()
    if row is None:
        raise SessionNotFound(f"No session has the id {session_id!r}.")
    return as_value(SessionRow, row)


def sessions_of(connection: Connection, workflow_id: WorkflowId) -> list[SessionRow]:
    """Select the workflow's sessions, the first one first."""
    query = select(t.sessions).where(t.sessions.c.workflow_id == workflow_id)
    query = query.order_by(t.sessions.c.created_at, t.sessions.c.number)
    return [as_value(SessionRow, row) for row in connection.execute(query)]


def current_session(connection: Connection, workflow_id: WorkflowId) -> SessionRow:
    """Select the workflow's session with the highest number, which must exist."""
    query = select(t.sessions).where(t.sessions.c.workflow_id == workflow_id).order_by(t.sessions.c.number.desc())
    return as_value(SessionRow, connection.execute(query.limit(1)).one())


def open_helpers(connection: Connection, workflow_id: WorkflowId) -> list[SessionRow]:
    """Select the reviewer and fixer sessions that have not ended."""
    query = select(t.sessions).where(
        t.sessions.c.workflow_id == workflow_id,
        t.sessions.c.role != Role.WRITER,
        t.sessions.c.status.not_in(SESSION_ENDED | {SessionStatus.FAILED}),
    )
    return [as_value(SessionRow, row) for row in connection.execute(query)]


def resting_sessions(
    connection: Connection,
    statuses: Collection[SessionStatus],
    workflows: Collection[WorkflowStatus],
    since: datetime,
    workflow_id: WorkflowId | None = None,
) -> list[SessionRow]:
    """Select current sessions in these statuses that have been idle since then, of all workflows or of one.

    The workflow has no open run, no open question, no waiting message and no scheduled retry.
    """
    query = (
        select(t.sessions)
        .join(t.workflows, t.workflows.c.id == t.sessions.c.workflow_id)
        .where(
            t.sessions.c.status.in_(statuses),
            t.sessions.c.number == t.workflows.c.session_count,
            t.sessions.c.moved_at <= since,
            t.workflows.c.status.in_(workflows),
            *nothing_open(),
            _last_event() <= t.write_time(since),
        )
    )
    if workflow_id is not None:
        query = query.where(t.sessions.c.workflow_id == workflow_id)
    return [as_value(SessionRow, row) for row in connection.execute(query)]


def _last_event() -> ColumnElement[str]:
    """Build the subquery for the time of a workflow's last event."""
    query = select(t.events.c.at).where(t.events.c.workflow_id == t.workflows.c.id)
    return query.order_by(t.events.c.seq.desc()).limit(1).scalar_subquery()


def sessions_to_archive(connection: Connection, ids: Collection[SessionId], since: datetime) -> list[SessionRow]:
    """Select those of these sessions that expired, or that ended before then, alone or with their workflow."""
    ended = or_(t.sessions.c.status.in_(SESSION_ENDED), t.workflows.c.status.in_(WORKFLOW_ENDED))
    query = (
        select(t.sessions)
        .join(t.workflows, t.workflows.c.id == t.sessions.c.workflow_id)
        .where(
            t.sessions.c.id.in_(ids),
            or_(t.sessions.c.status == SessionStatus.EXPIRED, ended & (t.sessions.c.moved_at <= since)),
        )
    )
    return [as_value(SessionRow, row) for row in connection.execute(query)]


# ── the door ────────────────────────────────────────────────────────────────────────────────────────


class SessionReads:
    """Reads of sessions and of their agent processes."""

    def __init__(self, database: Database) -> None:
        self._read = database.read

    async def get(self, session_id: str) -> SessionRow:
        """Return the session with this id; raise SessionNotFound if there is none."""
        return await self._read(session_by_id, session_id)

    async def of(self, workflow_id: WorkflowId) -> list[SessionRow]:
        """Return a workflow's sessions, the first one first."""
        return await self._read(sessions_of, workflow_id)

    async def current(self, workflow_id: WorkflowId) -> SessionRow:
        """Return a workflow's latest session."""
        return await self._read(current_session, workflow_id)

    async def resting(
        self, statuses: Collection[SessionStatus], workflows: Collection[WorkflowStatus], since: datetime
    ) -> list[SessionRow]:
        """Return current sessions in these statuses that have been idle since then."""
        return await self._read(resting_sessions, statuses, workflows, since)

    async def to_archive(self, ids: Collection[SessionId], since: datetime) -> list[SessionRow]:
        """Return those of these sessions that expired, or that ended before then, alone or with their workflow."""
        return await self._read(sessions_to_archive, ids, since)

    async def runtime(self, session_id: str) -> RuntimeRow:
        """Return a session's agent process and resume token."""
        return await self._read(runtime_of, session_id)

    async def any_in_container(self, workflow_id: WorkflowId | None = None) -> bool:
        """Return True if an agent was ever started in a container, in one workflow or in any."""
        return await self._read(any_container, workflow_id)


# ── in a transaction ────────────────────────────────────────────────────────────────────────────────


class SessionWrites:
    """Sessions of a locked workflow."""

    def __init__(self, workflow: LockedWorkflow) -> None:
        self._workflow = workflow

    def get(self, session_id: SessionId) -> SessionRow:
        """Return the session with this id."""
        return session_by_id(self._workflow.connection, session_id)

    def current(self) -> SessionRow:
        """Return the workflow's latest session."""
        return current_session(self._workflow.connection, self._workflow.id)

    def open_helpers(self) -> list[SessionRow]:
        """Return the reviewer and fixer sessions that have not ended."""
        return open_helpers(self._workflow.connection, self._workflow.id)

    def resting(
        self, statuses: Collection[SessionStatus], workflows: Collection[WorkflowStatus], since: datetime
    ) -> list[SessionRow]:
        """Return the current session, alone in a list, if it has been idle in these statuses since then, else an
        empty list."""
        return resting_sessions(self._workflow.connection, statuses, workflows, since, self._workflow.id)

    def create(
        self,
        session_id: SessionId,
        agent: str,
        parent: SessionId | None = None,
        carrying: Carrying = Carrying.NOTHING,
        choices: Choices | None = None,
    ) -> None:
        """Insert the workflow's next numbered session, as created, and append its event."""
        number = self._workflow.row.session_count + 1
        self._workflow.update(session_count=number)
        self._insert(session_id, number, agent, parent, Role.WRITER, carrying)
        created = SessionCreated(number=number, agent=agent, parent=parent, choices=choices)
        self._workflow.append(created, session_id=session_id)

    def create_helper(self, session_id: SessionId, agent: str, parent: SessionId, role: Role) -> None:
        """Insert a session beside the working one, under the next number below zero, and append its event with
        number 0."""
        query = select(func.min(t.sessions.c.number)).where(t.sessions.c.workflow_id == self._workflow.id)
        lowest = self._workflow.connection.execute(query).scalar_one()
        self._insert(session_id, min(lowest, 0) - 1, agent, parent, role, Carrying.NOTHING)
        created = SessionCreated(number=0, agent=agent, parent=parent, role=role)
        self._workflow.append(created, session_id=session_id)

    def _insert(
        self, session_id: SessionId, number: int, agent: str, parent: SessionId | None, role: Role, carrying: Carrying
    ) -> None:
        """Insert the rows of a new session and of its process, which does not run yet."""
        row = {
            "id": session_id,
            "workflow_id": self._workflow.id,
            "number": number,
            "agent": agent,
            "parent": parent,
            "status": SessionStatus.CREATED,
            "reason": "",
            "run_count": 0,
            "created_at": self._workflow.now,
            "moved_at": self._workflow.now,
            "carrying": carrying,
            "role": role,
        }
        self._workflow.connection.execute(insert(t.sessions), row)
        insert_runtime(self._workflow.connection, session_id)

    def move(
        self,
        session_id: SessionId,
        after: SessionStatus,
        *,
        run: int | None = None,
        reason: str = "",
        waiting_for: WaitingFor | None = None,
    ) -> None:
        """Move a session to another status and append the event; raise IllegalMove if the table of moves does not
        allow it."""
        before = self.get(session_id).status
        check_session_move(before, after)
        values: dict[str, Any] = {"status": after, "reason": redact_text(reason), "waiting_for": waiting_for}
        if after is SessionStatus.STARTING:
            values["started_from"] = before
        self.update(session_id, **values)
        moved = SessionMoved(before=before, after=after, reason=reason, waiting_for=waiting_for)
        self._workflow.append(moved, session_id=session_id, run=run)

    def set_carrying(self, session_id: SessionId, carrying: Carrying) -> None:
        """Store whether the session's next prompt must carry the earlier conversation; no event is appended."""
        self.update(session_id, carrying=carrying)

    def update(self, session_id: SessionId, **values: Any) -> None:
        """Change columns of a session's row, and its time of the last move; no event is appended."""
        query = update(t.sessions).where(t.sessions.c.id == session_id)
        self._workflow.connection.execute(query.values(moved_at=self._workflow.now, **values))
