"""Rows of the status tables, as frozen values."""

from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Row

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
    """Status, place and choices of a workflow."""

    id: WorkflowId
    slug: str
    title: str
    status: WorkflowStatus
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
    """Status of a session, and its place in its workflow."""

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
    """Latest agent process of a session, and the agent's id for the conversation."""

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
    """Status, purpose and owner of a run."""

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
    """Status of a task, and the attempt that works on it."""

    id: TaskId
    status: TaskStatus
    attempt: AttemptId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRow:
    """Delivery status of a prompt; its text is in the event `seq`."""

    id: PromptId
    session_id: SessionId
    run: int | None
    task_id: TaskId | None
    status: PromptStatus
    seq: Seq
    carries: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """Permission request of an agent."""

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


def as_value(kind: type[RowType], row: Row[Any]) -> RowType:
    """Return a row of the database as a value of this class."""
    return kind(**{name: getattr(row, name) for name in _names(kind)})
