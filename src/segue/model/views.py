"""What the doors show and take: one set of values for REST, the CLI and the dashboard, named as they are in JSON."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from segue.model.accounts import Account
from segue.model.checkpoint import Usage
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
class FailureView:
    """What ended the last run, and what can be done about it."""

    failure: Failure
    meaning: str
    reset_at: datetime | None = None
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryView:
    """What is tried again by itself, and when; `segue pause` calls it off."""

    step: str
    attempt: int
    of: int
    at: datetime
    reason: str
    rewind: bool = False
    fixer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeView:
    """A session's agent process, dead or alive."""

    status: RuntimeStatus
    alive: bool
    """Whether a process with this number and start time runs on this machine now."""
    pid: int | None
    execution: str | None
    generation: int
    last_seen_at: datetime | None
    dropped_events: int
    """What a dead execution still had to say, and nobody wrote down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack:
    """How Segue would bring a session back now, why, and what each way costs in tokens."""

    way: Way
    reason: str
    prices: tuple[Price, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDetail:
    """Everything about one conversation."""

    id: SessionId
    workflow_id: WorkflowId
    number: int
    """0 for one that only helps."""
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
    """Tokens that came into the context since it was last refreshed."""
    usage: Usage
    spent: Account = field(default_factory=Account)
    failure: FailureView | None
    runtime: RuntimeView
    way_back: WayBack | None
    """None where there is nothing to bring back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStanding:
    """Whether a session needs its agent brought back, and whether that can be done."""

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
    """An agent as it is configured, and whether its program is there."""

    name: str
    driver: str
    command: tuple[str, ...]
    program: str | None
    """Where its program was found; None too where the driver cannot be used."""
    problem: str = ""
    """Why the driver that its settings name cannot be used."""
    resume: str
    """How Segue brings its conversations back."""
    install: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCheck:
    """What an agent's program says of itself."""

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
    """Something an agent waits to be allowed."""

    request_id: RequestId
    title: str
    tool: str
    requested_at: datetime
    words: bool = False
    """Whether `segue prompt` answers it."""


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
    spent: Account = field(default_factory=Account)
    """What all its sessions used, and what that cost as far as it is known."""
    context: ContextView | None = None
    question: Question | None = None
    """What its agent waits to be allowed."""
    asks: str = ""
    """What somebody has to say before the work goes on; no agent waits for that."""
    proposed_plan: tuple[Task, ...] = ()
    """The plan that waits for approval."""
    last_snapshot: CheckpointId | None = None
    snapshots: int = 0
    failure: FailureView | None = None
    retry: RetryView | None = None
    waiting_messages: int = 0
    undelivered: tuple[Undelivered, ...] = ()
    head: Seq
    merge_hint: str | None = None
    from_repository: tuple[str, ...] = ()
    """What the repository's own settings say of the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """A workflow's plan: the one that waits for approval, else the one that is worked on."""

    workflow_id: WorkflowId
    status: Literal["none", "proposed", "adopted"]
    tasks: tuple[Task, ...]
    text: str
    """The same as YAML, which can be changed and given back."""


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
    retry_called_off: bool = False
    """Something was to be tried again by itself, and is not any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledContext:
    """What a successor would read if the work went on now, and how much of what matters it holds."""

    workflow_id: WorkflowId
    context: str
    exam: ExamResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The workflow that a session file is now."""

    status: Literal["imported", "extended", "already_imported"]
    """`extended`: the file had grown since it was imported, and what is new was added."""
    workflow: WorkflowView
    agent: str
    file: str
    lines: int
    """Things said or done that were found in the file."""
    unread_lines: int
    clean_boundary: bool
    """False where the session ends in the middle of a turn."""
    open_calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """How a workflow goes on, why this way, and what changed while it stood."""

    status: Literal["resumed", "joined", "blocked", "paused", "waiting"] = "resumed"
    """`joined`: somebody else had asked for the same just before. No agent was started where it is `blocked`: its plan
    waits for a word as before the pause; or `paused`: somebody's word was taken, and the budget is used up; or
    `waiting`: it goes on by itself when the quota is full again."""
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
    """Where the work was taken back: the snapshot of what was there before; going back to it undoes that."""
    undone: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    """Files that no snapshot holds; they stayed as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """A new workflow that begins where another one stood; no agent was started."""

    workflow: WorkflowView
    parent: SessionId
    checkpoint_id: CheckpointId
    left_out: tuple[str, ...] = ()
    """Files that the snapshot does not hold, and so the fork does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    status: Literal["approved", "rejected"]
    about: Literal["permission", "plan", "task"] = "permission"
    workflow_id: WorkflowId
    request_id: RequestId | None = None
    title: str
    resumed: Resumed | None = None
    """How the work goes on after it, where it had stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """What became of something that somebody said."""

    status: Literal["sent", "waiting", "not_delivered", "answered"]
    """Words that answered the agent's question, where it takes words, are no prompt."""
    workflow_id: WorkflowId
    session: SessionId
    prompt_id: PromptId | None = None
    way: Way | None = None
    """How the agent was brought back for it, if it had to be."""
    reason: str = ""
    interrupted: bool = False
    """Whether a turn was broken off for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRestored:
    """The worktree is there again; no agent was started."""

    status: Literal["restored"] = "restored"
    workflow_id: WorkflowId
    worktree: str
    branch: str
    note: str = ""
    """What there is to say of a worktree that was gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFiles:
    """A session's files, written anew from the journal."""

    session_id: SessionId
    history: str
    """One line for each thing said or done."""
    session: str
    """The whole conversation as one document."""
    entries: int
    were_right: bool
    """Whether the files that were there before said the same."""
