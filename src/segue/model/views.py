"""What the doors show and take: one set of values for REST, the CLI and the dashboard, named as they are in JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from segue.model.events import Event, Record
from segue.model.ids import CheckpointId, PromptId, RequestId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import Issue, TaskStatus
from segue.model.status import Permissions, SessionStatus, WaitingFor, Way, WorkflowStatus

# ── what is asked ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanText:
    """A plan as its author wrote it."""

    format: Literal["yaml", "markdown"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflow:
    """Everything needed to begin a workflow."""

    issue: Issue
    plan: PlanText | None = None
    agent: str
    permissions: Permissions = Permissions.ASK
    repository: Path
    here: bool = False
    # Kept out of the repr: the caller's variables are held in memory and must not reach a log.
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


# ── what is shown ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    id: TaskId
    title: str
    status: TaskStatus
    depends_on: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    id: SessionId
    number: int
    status: SessionStatus
    waiting_for: WaitingFor | None = None
    reason: str = ""
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something an agent waits to be allowed."""

    request_id: RequestId
    title: str
    tool: str
    requested_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextView:
    """How full the agent's window is, as far as the agent says."""

    used: int | None
    window: int | None
    utilization: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """A prompt that was sent and never acknowledged: shown, and never sent again."""

    prompt_id: PromptId
    task_id: TaskId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowView:
    id: WorkflowId
    slug: str
    title: str
    status: WorkflowStatus
    reason: str = ""
    agent: str
    permissions: Permissions
    repository: str
    worktree: str | None
    branch: str | None
    here: bool
    created_at: datetime
    updated_at: datetime
    paused_at: datetime | None = None
    pause_requested: bool = False
    tasks: tuple[TaskView, ...] = ()
    tasks_done: int = 0
    tasks_total: int = 0
    current_task: TaskId | None = None
    session: SessionView | None = None
    sessions: int = 0
    runs: int = 0
    context: ContextView | None = None
    question: Question | None = None
    last_snapshot: CheckpointId | None = None
    undelivered: tuple[Undelivered, ...] = ()
    head: Seq
    merge_hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """One line of the journal, as followers see it."""

    seq: Seq
    at: datetime
    session_id: SessionId | None
    run: int | None
    kind: str
    event: Annotated[Event, Field(discriminator="kind")]
    hash: str

    @classmethod
    def of(cls, record: Record) -> Self:
        return cls(
            seq=record.seq,
            at=record.at,
            session_id=record.session_id,
            run=record.run,
            kind=record.event.kind,
            event=record.event,
            hash=record.hash,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Events after the one asked for, and how far the journal reaches."""

    events: tuple[RecordView, ...]
    head: Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether the journal's hash chain holds."""

    verified: bool
    events: int
    problem: str | None = None


# ── what is answered ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    status: Literal["pause_requested", "paused", "cancelled"]
    workflow_id: WorkflowId
    snapshot_id: CheckpointId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """How a workflow goes on, why this way, and what changed while it stood."""

    status: Literal["resumed"] = "resumed"
    workflow_id: WorkflowId
    session: SessionId
    session_number: int
    run: int
    way: Way
    reason: str
    paused_at: datetime | None
    tasks_done: int
    tasks_remaining: int
    divergence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    status: Literal["approved", "rejected"]
    workflow_id: WorkflowId
    request_id: RequestId | None
    title: str
