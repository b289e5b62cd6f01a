"""Values that REST, the CLI and the dashboard take and show; their names are those in JSON."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from segue.model.accounts import Account
from segue.model.checkpoint import Usage
from segue.model.contexts import ContextSection
from segue.model.events import Event, Price, Record
from segue.model.findings import ExamResult
from segue.model.ids import CheckpointId, PromptId, RequestId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import Task, TaskStatus
from segue.model.status import (
    Carrying,
    Failure,
    Permissions,
    Role,
    RuntimeStatus,
    SessionStatus,
    WaitingFor,
    Way,
    WorkflowStatus,
)

# ── views ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """Task with its status."""

    id: TaskId
    title: str
    status: TaskStatus
    depends_on: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """Session, in short."""

    id: SessionId
    number: int
    status: SessionStatus
    waiting_for: WaitingFor | None = None
    reason: str = ""
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureView:
    """Failure that ended the last run, and its remedies."""

    failure: Failure
    meaning: str
    reset_at: datetime | None = None
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryView:
    """Scheduled automatic retry; `segue pause` cancels it."""

    step: str
    attempt: int
    of: int
    at: datetime
    reason: str
    rewind: bool = False
    fixer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeView:
    """Process of a session's agent, dead or alive."""

    status: RuntimeStatus
    alive: bool
    """True if a process with this id and start time runs on this machine now."""
    pid: int | None
    execution: str | None
    generation: int
    last_seen_at: datetime | None
    dropped_events: int
    """Number of events of dead executions that were not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack:
    """Chosen way to resume a session now, with the reason, and the price of each way in tokens."""

    way: Way
    reason: str
    prices: tuple[Price, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDetail:
    """Session with all details."""

    id: SessionId
    workflow_id: WorkflowId
    number: int
    """Number of the session; 0 for a helper."""
    role: Role = Role.WRITER
    agent: str
    status: SessionStatus
    waiting_for: WaitingFor | None
    reason: str
    parent: SessionId | None
    children: tuple[SessionId, ...]
    runs: int
    started_at: datetime
    token: str | None
    refused_tokens: tuple[str, ...]
    capabilities: tuple[str, ...] | None
    carrying: Carrying
    compactions: int
    context_tokens_new: int = 0
    """Tokens that came into the context since the last periodic checkpoint."""
    usage: Usage
    spent: Account = field(default_factory=Account)
    failure: FailureView | None
    runtime: RuntimeView
    way_back: WayBack | None
    """None if there is nothing to resume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStanding:
    """State of a session's agent process, and whether it can be resumed."""

    session_id: SessionId
    state: SessionStatus
    is_agent_running: bool
    needs_resume: bool
    is_resumable: bool
    resume_reason: Literal["", "agent_not_running", "agent_not_running_fresh_start"]
    worktree_path: str | None
    worktree_branch: str | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """Configured agent, and the place of its program."""

    name: str
    driver: str
    command: tuple[str, ...]
    program: str | None
    """Path of its program; None if it was not found, or if the driver cannot be used."""
    problem: str = ""
    """Reason why the configured driver cannot be used."""
    resume: str
    """Description of how Segue resumes its conversations."""
    install: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCheck:
    """Result of a check of an agent's program."""

    agent: AgentView
    ok: bool
    version: str = ""
    reported: str = ""
    capabilities: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()
    resume: str = ""
    problem: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Open permission request of an agent."""

    request_id: RequestId
    title: str
    tool: str
    requested_at: datetime
    words: bool = False
    """True if `segue prompt` answers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextView:
    """Fill level of the agent's context window, as far as the agent reports it."""

    used: int | None
    window: int | None
    utilization: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """Prompt that was sent and not acknowledged: it is shown, and never sent again."""

    prompt_id: PromptId
    task_id: TaskId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowView:
    """Workflow with its progress."""

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
    spent: Account = field(default_factory=Account)
    """Usage of all its sessions, and the cost as far as it is known."""
    context: ContextView | None = None
    question: Question | None = None
    """Permission request that its agent waits for."""
    asks: str = ""
    """Question that a person has to answer before the work continues; no agent waits for it."""
    proposed_plan: tuple[Task, ...] = ()
    """Plan that waits for approval."""
    last_snapshot: CheckpointId | None = None
    snapshots: int = 0
    failure: FailureView | None = None
    retry: RetryView | None = None
    waiting_messages: int = 0
    undelivered: tuple[Undelivered, ...] = ()
    head: Seq
    merge_hint: str | None = None
    from_repository: tuple[str, ...] = ()
    """Settings of the work that come from the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """Plan of a workflow: the one that waits for approval, else the current one."""

    workflow_id: WorkflowId
    status: Literal["none", "proposed", "adopted"]
    tasks: tuple[Task, ...]
    text: str
    """Plan as YAML, which can be edited and sent back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """Event with its place in the journal, as followers get it."""

    seq: Seq
    at: datetime
    session_id: SessionId | None
    run: int | None
    kind: str
    event: Annotated[Event, Field(discriminator="kind")]
    hash: str

    @classmethod
    def of(cls, record: Record) -> Self:
        """Convert a record."""
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
    """Events after the requested one, and the last number of the journal."""

    events: tuple[RecordView, ...]
    head: Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Result of a check of the journal's hash chain."""

    verified: bool
    events: int
    problem: str | None = None


# ── answers ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Result of a pause or a cancellation."""

    status: Literal["pause_requested", "paused", "cancelled"]
    workflow_id: WorkflowId
    snapshot_id: CheckpointId | None = None
    retry_called_off: bool = False
    """True if a scheduled retry was cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledContext:
    """Context that a successor would get now, and its grade."""

    workflow_id: WorkflowId
    context: str
    exam: ExamResult
    sections: tuple[ContextSection, ...] = ()
    """The same as sections with the events that each line comes from; none where a person wrote the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Result of an import."""

    status: Literal["imported", "extended", "already_imported"]
    """`extended`: the file had grown since its import, and the new part was added."""
    workflow: WorkflowView
    agent: str
    file: str
    lines: int
    """Number of messages and actions found in the file."""
    unread_lines: int
    clean_boundary: bool
    """False if the session ends in the middle of a turn."""
    open_calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Result of a resume: the way, its reason, and the changes during the pause."""

    status: Literal["resumed", "joined", "blocked", "paused", "waiting"] = "resumed"
    """`joined`: the same resume was requested just before. No agent was started if it is `blocked`: the plan waits for
    approval as before the pause; `paused`: the answer was recorded, and the budget is used up; or `waiting`: the work
    resumes by itself when the quota is full again."""
    workflow_id: WorkflowId
    session: SessionId
    session_number: int
    agent: str
    run: int
    way: Way
    reason: str
    prices: tuple[Price, ...] = ()
    paused_at: datetime | None
    tasks_done: int
    tasks_remaining: int
    divergence: tuple[str, ...] = ()
    saved: CheckpointId | None = None
    """After a rewind: the snapshot of the state before it; a rewind to that undoes this one."""
    undone: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    """Files that no snapshot holds; they were not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """New workflow that starts from a snapshot of another one; no agent was started."""

    workflow: WorkflowView
    parent: SessionId
    checkpoint_id: CheckpointId
    left_out: tuple[str, ...] = ()
    """Files that the snapshot does not hold, and so the fork lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Result of an approval or a rejection."""

    status: Literal["approved", "rejected"]
    about: Literal["permission", "plan", "task"] = "permission"
    workflow_id: WorkflowId
    request_id: RequestId | None = None
    title: str
    resumed: Resumed | None = None
    """Result of the resume that followed, if the work had stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """Result of a message to the agent."""

    status: Literal["sent", "waiting", "not_delivered", "answered"]
    """`answered`: the text answered an open question of the agent, and is no prompt."""
    workflow_id: WorkflowId
    session: SessionId
    prompt_id: PromptId | None = None
    way: Way | None = None
    """Way in which the agent was resumed for it, if it had to be."""
    reason: str = ""
    interrupted: bool = False
    """True if a turn was interrupted for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRestored:
    """Result of restoring the worktree; no agent was started."""

    status: Literal["restored"] = "restored"
    workflow_id: WorkflowId
    worktree: str
    branch: str
    note: str = ""
    """Remark on the lost worktree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFiles:
    """Files of a session, rewritten from the journal."""

    session_id: SessionId
    history: str
    """Path of the file with one line for each message or action."""
    session: str
    """Path of the file with the whole conversation as one document."""
    entries: int
    were_right: bool
    """True if the earlier files had the same content."""
