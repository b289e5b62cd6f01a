"""What the statuses' tables say, as values; each query is a function with one purpose."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, exists, func, or_, select

from segue.model.errors import SessionNotFound, WorkflowNotFound
from segue.model.ids import AttemptId, BootId, PromptId, RequestId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import TaskStatus
from segue.model.status import (
    Carrying,
    Permissions,
    PromptStatus,
    Purpose,
    Role,
    RunStatus,
    RuntimeStatus,
    SessionStatus,
    Trigger,
    WaitingFor,
    Way,
    WorkflowStatus,
)
from segue.state.moves import SESSION_ENDED, WORKFLOW_ENDED
from segue.store import tables as t


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
    id: WorkflowId
    slug: str
    title: str
    status: WorkflowStatus
    paused_from: str | None
    agent: str
    permissions: Permissions
    repository: str
    here: bool
    worktree: str
    branch: str
    base: str | None
    session_count: int
    checkpoint_count: int
    pause_trigger: Trigger | None
    pause_reason: str | None
    force_pause_at: datetime | None
    paused_at: datetime | None
    created_at: datetime
    updated_at: datetime
    choices: str
    retry_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    id: SessionId
    workflow_id: WorkflowId
    number: int
    agent: str
    parent: SessionId | None
    status: SessionStatus
    waiting_for: WaitingFor | None
    reason: str
    started_from: str | None
    run_count: int
    carrying: Carrying
    created_at: datetime
    moved_at: datetime
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRow:
    """A session's agent process, dead or alive."""

    session_id: SessionId
    status: RuntimeStatus
    token: str | None
    generation: int
    execution: AttemptId | None
    pid: int | None
    pid_started: str | None
    guardian_pid: int | None
    machine_boot: str | None
    container: str | None
    last_seen_at: datetime | None
    dropped_events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    session_id: SessionId
    number: int
    workflow_id: WorkflowId
    status: RunStatus
    way: Way
    purpose: Purpose
    attempt: AttemptId | None
    boot: BootId | None
    queued_at: datetime
    started_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    id: TaskId
    status: TaskStatus
    attempt: AttemptId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRow:
    id: PromptId
    session_id: SessionId
    run: int | None
    task_id: TaskId | None
    status: PromptStatus
    seq: Seq
    carries: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """A permission the agent asked for."""

    id: RequestId
    workflow_id: WorkflowId
    session_id: SessionId
    title: str
    deadline: datetime
    outcome: str | None


RowType = TypeVar("RowType", WorkflowRow, SessionRow, RuntimeRow, RunRow, TaskRow, PromptRow, QuestionRow)


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _as(kind: type[RowType], row: Row[Any]) -> RowType:
    return kind(**{name: getattr(row, name) for name in _names(kind)})


def workflow_by_id(connection: Connection, workflow_id: WorkflowId) -> WorkflowRow:
    return _as(WorkflowRow, connection.execute(select(t.workflows).where(t.workflows.c.id == workflow_id)).one())


def workflow_named(connection: Connection, name: str) -> WorkflowRow:
    """The workflow with this id or slug."""
    row = connection.execute(select(t.workflows).where(_called(name))).first()
    if row is None:
        raise _nobody(name)
    return _as(WorkflowRow, row)


def _called(name: str) -> ColumnElement[bool]:
    return or_(t.workflows.c.id == name, t.workflows.c.slug == name)


def _nobody(name: str) -> WorkflowNotFound:
    return WorkflowNotFound(f"No workflow is called {name!r}.", hint="`segue status` lists them.")


def workflow_at_head(connection: Connection, name: str) -> tuple[WorkflowRow, Seq]:
    """The workflow with this id or slug, and the last event that has made it what it is."""
    heads = t.journal_heads
    query = select(t.workflows, heads.c.seq.label("head")).join(heads, heads.c.workflow_id == t.workflows.c.id)
    row = connection.execute(query.where(_called(name))).first()
    if row is None:
        raise _nobody(name)
    return _as(WorkflowRow, row), Seq(row.head)


def all_workflows(connection: Connection, statuses: Collection[WorkflowStatus] = ()) -> list[WorkflowRow]:
    """Newest first; with `statuses`, only those."""
    query = select(t.workflows).order_by(t.workflows.c.created_at.desc(), t.workflows.c.id.desc())
    if statuses:
        query = query.where(t.workflows.c.status.in_(statuses))
    return [_as(WorkflowRow, row) for row in connection.execute(query)]


def scheduled_retries(connection: Connection) -> list[WorkflowRow]:
    """The workflows that are to be tried again by themselves, the first one first."""
    query = select(t.workflows).where(t.workflows.c.retry_at.is_not(None), t.workflows.c.status.not_in(WORKFLOW_ENDED))
    query = query.order_by(t.workflows.c.retry_at, t.workflows.c.id)
    return [_as(WorkflowRow, row) for row in connection.execute(query)]


def slugs_like(connection: Connection, slug: str) -> set[str]:
    """The slugs that a new one must not collide with."""
    query = select(t.workflows.c.slug).where(t.workflows.c.slug.startswith(slug, autoescape=True))
    return set(connection.execute(query).scalars())


def session_by_id(connection: Connection, session_id: str) -> SessionRow:
    row = connection.execute(select(t.sessions).where(t.sessions.c.id == session_id)).first()
    if row is None:
        raise SessionNotFound(f"No session has the id {session_id!r}.")
    return _as(SessionRow, row)


def sessions_of(connection: Connection, workflow_id: WorkflowId) -> list[SessionRow]:
    """The workflow's sessions, the first one first."""
    query = select(t.sessions).where(t.sessions.c.workflow_id == workflow_id)
    query = query.order_by(t.sessions.c.created_at, t.sessions.c.number)
    return [_as(SessionRow, row) for row in connection.execute(query)]


def runtime_of(connection: Connection, session_id: str) -> RuntimeRow:
    return _as(RuntimeRow, connection.execute(select(t.runtimes).where(t.runtimes.c.session_id == session_id)).one())


def any_container(connection: Connection, workflow_id: WorkflowId | None = None) -> bool:
    """Whether an agent was ever in a container, or one of this workflow."""
    query = select(t.runtimes.c.session_id).where(t.runtimes.c.container.is_not(None)).limit(1)
    if workflow_id is not None:
        query = query.join(t.sessions, t.sessions.c.id == t.runtimes.c.session_id)
        query = query.where(t.sessions.c.workflow_id == workflow_id)
    return connection.scalar(query) is not None


def workflow_holding(connection: Connection, token: str) -> WorkflowRow | None:
    """The open workflow that one of an agent's own conversations belongs to."""
    run = (
        select(t.sessions.c.workflow_id)
        .join(t.runtimes, t.runtimes.c.session_id == t.sessions.c.id)
        .where(t.runtimes.c.token == token)
    )
    # An agent that cannot go back to it has no token for it here.
    imported = select(t.imports.c.workflow_id).where(t.imports.c.conversation == token)
    query = select(t.workflows).where(
        t.workflows.c.id.in_(run.union(imported)), t.workflows.c.status.not_in(WORKFLOW_ENDED)
    )
    row = connection.execute(query).first()
    return None if row is None else _as(WorkflowRow, row)


def workflow_in(connection: Connection, worktree: str) -> WorkflowRow | None:
    """The open workflow that has this worktree."""
    query = select(t.workflows).where(t.workflows.c.worktree == worktree, t.workflows.c.status.not_in(WORKFLOW_ENDED))
    row = connection.execute(query).first()
    return None if row is None else _as(WorkflowRow, row)


def current_session(connection: Connection, workflow_id: WorkflowId) -> SessionRow:
    """The workflow's latest session."""
    query = select(t.sessions).where(t.sessions.c.workflow_id == workflow_id).order_by(t.sessions.c.number.desc())
    return _as(SessionRow, connection.execute(query.limit(1)).one())


def lowest_session_number(connection: Connection, workflow_id: WorkflowId) -> int:
    query = select(func.min(t.sessions.c.number)).where(t.sessions.c.workflow_id == workflow_id)
    return connection.execute(query).scalar_one()


def open_helpers(connection: Connection, workflow_id: WorkflowId) -> list[SessionRow]:
    """Reviewers and fixers that have not ended."""
    query = select(t.sessions).where(
        t.sessions.c.workflow_id == workflow_id,
        t.sessions.c.role != Role.WRITER,
        t.sessions.c.status.not_in(SESSION_ENDED | {SessionStatus.FAILED}),
    )
    return [_as(SessionRow, row) for row in connection.execute(query)]


def open_runs(connection: Connection, workflow_id: WorkflowId | None = None) -> list[RunRow]:
    """Runs that have not ended, of one workflow or of all."""
    query = select(t.runs).where(t.runs.c.status != RunStatus.ENDED)
    if workflow_id is not None:
        query = query.where(t.runs.c.workflow_id == workflow_id)
    return [_as(RunRow, row) for row in connection.execute(query)]


def queued_runs(connection: Connection, boot: BootId) -> list[RunRow]:
    """Select the queued runs of a boot, oldest first."""
    mine = (t.runs.c.status == RunStatus.QUEUED, t.runs.c.boot == boot)
    query = select(t.runs).where(*mine).order_by(t.runs.c.queued_at, t.runs.c.session_id)
    return [_as(RunRow, row) for row in connection.execute(query)]


def runs_by_attempt(connection: Connection, attempts: Collection[AttemptId]) -> dict[AttemptId, RunRow]:
    """The runs that these physical tries were made at."""
    found = connection.execute(select(t.runs).where(t.runs.c.attempt.in_(attempts)))
    runs = [_as(RunRow, row) for row in found]
    return {run.attempt: run for run in runs if run.attempt is not None}


def run_by_id(connection: Connection, session_id: str, number: int) -> RunRow:
    query = select(t.runs).where(t.runs.c.session_id == session_id, t.runs.c.number == number)
    return _as(RunRow, connection.execute(query).one())


def tasks_of(connection: Connection, workflow_id: WorkflowId) -> list[TaskRow]:
    """The plan's tasks, in written order."""
    query = select(t.tasks).where(t.tasks.c.workflow_id == workflow_id).order_by(t.tasks.c.position)
    return [_as(TaskRow, row) for row in connection.execute(query)]


def statuses_of(connection: Connection, workflow_id: WorkflowId) -> list[tuple[TaskId, TaskStatus]]:
    """How the plan's tasks stand, in written order."""
    columns = select(t.tasks.c.id, t.tasks.c.status)
    query = columns.where(t.tasks.c.workflow_id == workflow_id).order_by(t.tasks.c.position)
    return [(row[0], row[1]) for row in connection.execute(query)]


def open_prompts(connection: Connection, session_id: SessionId, run: int | None) -> list[PromptRow]:
    """Prompts of a run, or of a session that helps inside another's, that are not known to have arrived."""
    query = select(t.prompts).where(
        t.prompts.c.session_id == session_id,
        t.prompts.c.run == run,
        t.prompts.c.status.in_([PromptStatus.QUEUED, PromptStatus.SENT]),
    )
    return [_as(PromptRow, row) for row in connection.execute(query)]


def waiting_messages(connection: Connection, workflow_id: WorkflowId) -> list[PromptRow]:
    """What people said and no agent has got yet, oldest first."""
    query = (
        select(t.prompts)
        .where(
            t.prompts.c.workflow_id == workflow_id,
            *_waits(),
        )
        .order_by(t.prompts.c.seq)
    )
    return [_as(PromptRow, row) for row in connection.execute(query)]


def _waits() -> tuple[ColumnElement[bool], ...]:
    """Of a prompt: somebody said it, and no run has taken it."""
    return t.prompts.c.status == PromptStatus.QUEUED, t.prompts.c.task_id.is_(None), t.prompts.c.run.is_(None)


def prompt_by_id(connection: Connection, prompt_id: PromptId) -> PromptRow:
    return _as(PromptRow, connection.execute(select(t.prompts).where(t.prompts.c.id == prompt_id)).one())


def open_questions(connection: Connection, workflow_id: WorkflowId) -> list[QuestionRow]:
    """Unanswered permissions, oldest first."""
    query = (
        select(t.questions)
        .where(t.questions.c.workflow_id == workflow_id, t.questions.c.outcome.is_(None))
        .order_by(t.questions.c.seq)
    )
    return [_as(QuestionRow, row) for row in connection.execute(query)]


def has_checkpoints(connection: Connection, workflow_id: WorkflowId) -> bool:
    """Whether there is anything that the work could be taken back to."""
    query = select(t.checkpoints.c.number).where(t.checkpoints.c.workflow_id == workflow_id).limit(1)
    return connection.execute(query).first() is not None


def workflows_asking(connection: Connection) -> set[WorkflowId]:
    """Those whose agents wait for an answer."""
    query = select(t.questions.c.workflow_id).where(t.questions.c.outcome.is_(None)).distinct()
    return set(connection.execute(query).scalars())


def all_questions_past(connection: Connection, now: datetime) -> list[QuestionRow]:
    """Permissions that were open for too long, of all workflows."""
    query = select(t.questions).where(t.questions.c.outcome.is_(None), t.questions.c.deadline <= now)
    return [_as(QuestionRow, row) for row in connection.execute(query)]


def resting_sessions(
    connection: Connection,
    statuses: Collection[SessionStatus],
    workflows: Collection[WorkflowStatus],
    since: datetime,
    workflow_id: WorkflowId | None = None,
) -> list[SessionRow]:
    """The current sessions of such workflows that are in one of these states, and to which nothing happened since then;
    of all workflows, or of one. Nobody waits for them, and nothing is about to happen to them."""
    query = (
        select(t.sessions)
        .join(t.workflows, t.workflows.c.id == t.sessions.c.workflow_id)
        .where(
            t.sessions.c.status.in_(statuses),
            t.sessions.c.number == t.workflows.c.session_count,
            t.sessions.c.moved_at <= since,
            t.workflows.c.status.in_(workflows),
            *_nothing_under_way(),
            _last_event() <= t.write_time(since),
        )
    )
    if workflow_id is not None:
        query = query.where(t.sessions.c.workflow_id == workflow_id)
    return [_as(SessionRow, row) for row in connection.execute(query)]


def _nothing_under_way() -> tuple[ColumnElement[bool], ...]:
    """Of a workflow: no agent that is there or on its way, no question to a person, no words that wait for an agent,
    and nothing that is tried again by itself."""
    run = exists().where(t.runs.c.workflow_id == t.workflows.c.id, t.runs.c.status != RunStatus.ENDED)
    question = exists().where(t.questions.c.workflow_id == t.workflows.c.id, t.questions.c.outcome.is_(None))
    message = exists().where(t.prompts.c.workflow_id == t.workflows.c.id, *_waits())
    return ~run, ~question, ~message, t.workflows.c.retry_at.is_(None)


def _last_event() -> ColumnElement[str]:
    """When something was last written down about a workflow."""
    query = select(t.events.c.at).where(t.events.c.workflow_id == t.workflows.c.id)
    return query.order_by(t.events.c.seq.desc()).limit(1).scalar_subquery()


def sessions_to_archive(connection: Connection, ids: Collection[SessionId], since: datetime) -> list[SessionRow]:
    """Those of these sessions that expired, and those that ended before then, by themselves or with their workflow."""
    ended = or_(t.sessions.c.status.in_(SESSION_ENDED), t.workflows.c.status.in_(WORKFLOW_ENDED))
    query = (
        select(t.sessions)
        .join(t.workflows, t.workflows.c.id == t.sessions.c.workflow_id)
        .where(
            t.sessions.c.id.in_(ids),
            or_(t.sessions.c.status == SessionStatus.EXPIRED, ended & (t.sessions.c.moved_at <= since)),
        )
    )
    return [_as(SessionRow, row) for row in connection.execute(query)]


def last_event_at(connection: Connection, workflow_id: WorkflowId) -> datetime | None:
    """When something was last written down."""
    query = select(t.events.c.at).where(t.events.c.workflow_id == workflow_id).order_by(t.events.c.seq.desc()).limit(1)
    text = connection.execute(query).scalar()
    return None if text is None else datetime.fromisoformat(text)


def head_of(connection: Connection, workflow_id: WorkflowId) -> Seq:
    query = select(t.journal_heads.c.seq).where(t.journal_heads.c.workflow_id == workflow_id)
    return connection.execute(query).scalar_one()
