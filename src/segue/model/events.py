"""Everything that can happen, as one closed union of frozen values.

An event says what happened and nothing else; its number, time, session and run belong to the journal's `Record`.
What an agent says comes first, what Segue does comes after it.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from segue.model.agents import Choices, Limits
from segue.model.checkpoint import CheckpointType
from segue.model.findings import ExamResult, Findings
from segue.model.ids import AttemptId, BootId, CheckpointId, PromptId, RequestId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import Issue, Plan, TaskStatus
from segue.model.status import Failure, Permissions, Purpose, SessionStatus, Trigger, WaitingFor, Way, WorkflowStatus

JsonObject = dict[str, Any]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
ToolStatus = Literal["completed", "failed"]
FileAction = Literal["created", "modified", "deleted"]
PermissionOutcome = Literal["allowed", "denied", "interrupted"]
RunOutcome = Literal["completed", "paused", "talked", "handed_over", "crashed", "failed", "cancelled", "not_started"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of streamed text. Transient: the recorder coalesces it into `AgentMessage` or `AgentThought`."""

    role: Literal["message", "thought"]
    text: str


# ── what an agent says ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage:
    """The agent said something."""

    kind: Literal["agent.message"] = "agent.message"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentThought:
    """The agent thought aloud."""

    kind: Literal["agent.thought"] = "agent.thought"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The agent began a tool call; until it is finished, its effect is unknown."""

    kind: Literal["tool.called"] = "tool.called"
    call_id: str
    title: str
    tool: str
    """The protocol's kind of tool: read, edit, delete, execute, fetch, think, other, …"""
    input: JsonObject = field(default_factory=dict[str, Any])
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgressed:
    """A tool call has told something and is still at work."""

    kind: Literal["tool.progressed"] = "tool.progressed"
    call_id: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A tool call came to its end."""

    kind: Literal["tool.finished"] = "tool.finished"
    call_id: str
    status: ToolStatus
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged:
    """Files that the agent's program itself saw change."""

    kind: Literal["files.changed"] = "files.changed"
    changes: tuple[tuple[str, FileAction], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoEntry:
    content: str
    status: str
    priority: str = "medium"


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoUpdated:
    """The agent rewrote its own to-do list."""

    kind: Literal["todo.updated"] = "todo.updated"
    entries: tuple[TodoEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReported:
    """The agent told how much of its window it uses, and what the work cost so far."""

    kind: Literal["usage.reported"] = "usage.reported"
    context_tokens: int | None = None
    window: int | None = None
    input_tokens: int | None = None
    """Of this stretch, without what was read from the vendor's cache."""
    output_tokens: int | None = None
    cost_usd: float | None = None
    """Of the conversation so far."""
    cached_tokens: int | None = None
    """Of this stretch, read from the vendor's cache; None where nobody counted."""
    model: str | None = None
    """Who was asked, as the agent calls it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionOption:
    id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequested:
    """The agent asks whether it may do something."""

    kind: Literal["permission.requested"] = "permission.requested"
    request_id: RequestId
    call_id: str
    title: str
    tool: str
    options: tuple[PermissionOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """The agent stopped talking and waits."""

    kind: Literal["turn.ended"] = "turn.ended"
    prompt_id: PromptId
    reason: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    """The agent could not do its turn, and said why."""

    kind: Literal["turn.failed"] = "turn.failed"
    prompt_id: PromptId
    failure: Failure
    message: str
    reset_at: datetime | None = None
    """When a used-up quota is full again, where the agent says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The agent replaced its conversation by a summary of it."""

    kind: Literal["agent.compacted"] = "agent.compacted"
    tokens_before: int | None = None
    tokens_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentExited:
    """The agent's process is gone."""

    kind: Literal["agent.exited"] = "agent.exited"
    code: int | None
    detail: str = ""


AgentEvent = (
    TextDelta
    | ToolCalled
    | ToolFinished
    | TodoUpdated
    | UsageReported
    | PermissionRequested
    | TurnEnded
    | TurnFailed
    | Compacted
    | AgentExited
)
"""What comes out of a driver, in order."""


# ── what Segue does ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a fork comes from."""

    workflow_id: WorkflowId
    session_id: SessionId
    checkpoint_id: CheckpointId
    after: Seq
    """What is known there up to and including this event is known in the fork."""
    tasks: dict[TaskId, TaskStatus]
    """The tasks as they stood then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowCreated:
    kind: Literal["workflow.created"] = "workflow.created"
    slug: str
    issue: Issue
    plan: Plan
    agent: str
    permissions: Permissions
    repository: str
    here: bool
    choices: Choices = field(default_factory=Choices)
    imported: bool = False
    """Its issue was taken from a conversation, in which it stands again."""
    forked_from: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRewound:
    """The work was taken back to a checkpoint: files, tasks, and what is known."""

    kind: Literal["workflow.rewound"] = "workflow.rewound"
    checkpoint_id: CheckpointId
    after: Seq
    """What is known there: everything up to and including this event."""
    saved: CheckpointId
    """The snapshot that holds the worktree as it was before; going back to it undoes this."""
    tasks: dict[TaskId, TaskStatus]
    """The tasks as they stand now."""
    undone: tuple[str, ...] = ()
    """What there was beyond the checkpoint, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowMoved:
    kind: Literal["workflow.moved"] = "workflow.moved"
    before: WorkflowStatus
    after: WorkflowStatus
    reason: str = ""
    trigger: Trigger | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeReady:
    """The worktree exists, and this is the commit the work started from."""

    kind: Literal["worktree.ready"] = "worktree.ready"
    path: str
    branch: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeDiscarded:
    """The first start failed, so the worktree it had made was taken away again."""

    kind: Literal["worktree.discarded"] = "worktree.discarded"
    path: str
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCreated:
    kind: Literal["session.created"] = "session.created"
    number: int
    agent: str
    parent: SessionId | None = None
    choices: Choices | None = None
    """What is chosen for an agent that took over from another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMoved:
    kind: Literal["session.moved"] = "session.moved"
    before: SessionStatus
    after: SessionStatus
    reason: str = ""
    waiting_for: WaitingFor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCaptured:
    """The agent's own id for this conversation is known."""

    kind: Literal["token.captured"] = "token.captured"
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRefused:
    """The agent would not go on with this conversation; the token is kept, but not used again."""

    kind: Literal["token.refused"] = "token.refused"
    token: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one way back would cost."""

    way: Way
    possible: bool
    tokens: int | None
    """None where nobody knows."""
    note: str = ""
    """How the price is known, or why the way is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQueued:
    """A way was chosen, and this is why; what each of the others would have cost stands beside it."""

    kind: Literal["run.queued"] = "run.queued"
    way: Way
    reason: str
    purpose: Purpose = Purpose.WORK
    prices: tuple[Price, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WayChanged:
    """The way that was chosen turned out to be closed, so the run goes another one."""

    kind: Literal["way.changed"] = "way.changed"
    before: Way
    after: Way
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    kind: Literal["run.started"] = "run.started"
    attempt: AttemptId
    boot: BootId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    kind: Literal["run.ended"] = "run.ended"
    outcome: RunOutcome
    reason: str = ""
    failure: Failure | None = None
    reset_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted:
    """An agent process is up and its conversation is open."""

    kind: Literal["agent.started"] = "agent.started"
    name: str
    version: str
    pid: int
    guardian_pid: int
    execution: str
    resumed: bool
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted:
    kind: Literal["task.started"] = "task.started"
    task_id: TaskId
    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCompleted:
    kind: Literal["task.completed"] = "task.completed"
    task_id: TaskId
    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed:
    kind: Literal["task.failed"] = "task.failed"
    task_id: TaskId
    attempt: AttemptId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInterrupted:
    """The task was torn away in the middle; it is pending again."""

    kind: Literal["task.interrupted"] = "task.interrupted"
    task_id: TaskId
    attempt: AttemptId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptQueued:
    kind: Literal["prompt.queued"] = "prompt.queued"
    prompt_id: PromptId
    text: str
    task_id: TaskId | None = None
    report: bool = False
    """It asks what was decided and what went wrong, and is no part of the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCarried:
    """A prompt takes along what was said before this session; it is told once."""

    kind: Literal["context.carried"] = "context.carried"
    prompt_id: PromptId
    way: Way
    text: str
    """What stands before and after the prompt's own words, as the agent gets it."""
    exam: ExamResult | None = None
    """How well a compiled context did before it was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSent:
    """Written before the prompt leaves: found without an acknowledgement, it is shown and never sent again."""

    kind: Literal["prompt.sent"] = "prompt.sent"
    prompt_id: PromptId


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptAcknowledged:
    """The agent reacted to the prompt, so it has it."""

    kind: Literal["prompt.acknowledged"] = "prompt.acknowledged"
    prompt_id: PromptId


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptNotSent:
    """The prompt never left; the next run makes a new one."""

    kind: Literal["prompt.not_sent"] = "prompt.not_sent"
    prompt_id: PromptId


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswered:
    kind: Literal["permission.answered"] = "permission.answered"
    request_id: RequestId
    outcome: PermissionOutcome
    by: Literal["user", "policy", "timeout", "segue"]
    option: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequested:
    kind: Literal["pause.requested"] = "pause.requested"
    trigger: Trigger
    reason: str
    force_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseWithdrawn:
    """Somebody wanted the work to go on before the pause had happened."""

    kind: Literal["pause.withdrawn"] = "pause.withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCreated:
    kind: Literal["checkpoint.created"] = "checkpoint.created"
    checkpoint_id: CheckpointId
    type: CheckpointType
    snapshot: bool
    clean_boundary: bool
    commit: str | None
    after: Seq
    """The checkpoint holds everything up to and including this event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsChanged:
    """The user lets the workflow use more, or less; it counts from the next run on."""

    kind: Literal["limits.changed"] = "limits.changed"
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReached:
    """The context has come up to a rung of the capacity ladder; said once for each time it does."""

    kind: Literal["capacity.reached"] = "capacity.reached"
    rung: str
    context_tokens: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotStudied:
    """A snapshot was looked at again: decisions, errors, and the exam of the context that it gives."""

    kind: Literal["snapshot.studied"] = "snapshot.studied"
    findings: Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionImported:
    """The conversation that follows was not held under Segue: it was read from an agent's own session file."""

    kind: Literal["session.imported"] = "session.imported"
    agent: str
    file: str
    sha256: str
    size: int
    """Bytes of the file; it may have grown since."""
    lines: int
    """Things said or done that were found in it."""
    unread_lines: int
    conversation: str = ""
    """The agent's own name for it, whether or not it can be gone back to."""
    began: str = ""
    ended: str = ""
    """The times of its first and last line, as the agent wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReported:
    """What the agent told of its decisions and errors when it was asked before a pause. It is no part of the work."""

    kind: Literal["agent.reported"] = "agent.reported"
    prompt_id: PromptId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSpoke:
    """The user's own words, in a conversation that was not held under Segue."""

    kind: Literal["user.spoke"] = "user.spoke"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the work stands: directory, branch and commit, as far as the agent's program knew them."""

    kind: Literal["standing"] = "standing"
    directory: str | None = None
    branch: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSummarised:
    """The agent replaced its conversation so far by this summary of it."""

    kind: Literal["agent.summarised"] = "agent.summarised"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """Something the user should see, which stops nothing."""

    kind: Literal["warning"] = "warning"
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLogged:
    """Work was interrupted, and this is what was found."""

    kind: Literal["incident"] = "incident"
    what: str
    detail: str = ""


Event = (
    AgentMessage
    | AgentThought
    | ToolCalled
    | ToolProgressed
    | ToolFinished
    | FilesChanged
    | TodoUpdated
    | UsageReported
    | PermissionRequested
    | TurnEnded
    | TurnFailed
    | Compacted
    | AgentExited
    | WorkflowCreated
    | WorkflowRewound
    | WorkflowMoved
    | WorktreeReady
    | WorktreeDiscarded
    | SessionCreated
    | SessionMoved
    | TokenCaptured
    | TokenRefused
    | RunQueued
    | WayChanged
    | RunStarted
    | RunEnded
    | AgentStarted
    | TaskStarted
    | TaskCompleted
    | TaskFailed
    | TaskInterrupted
    | PromptQueued
    | ContextCarried
    | PromptSent
    | PromptAcknowledged
    | PromptNotSent
    | PermissionAnswered
    | PauseRequested
    | PauseWithdrawn
    | CheckpointCreated
    | LimitsChanged
    | CapacityReached
    | SnapshotStudied
    | AgentReported
    | SessionImported
    | UserSpoke
    | Standing
    | AgentSummarised
    | Warned
    | IncidentLogged
)
"""What stands in the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of the journal."""

    workflow_id: WorkflowId
    seq: Seq
    at: datetime
    session_id: SessionId | None
    run: int | None
    event: Event
    hash: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """The events after one number, up to and including another."""

    after: Seq
    until: Seq
