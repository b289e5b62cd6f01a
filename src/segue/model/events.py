"""Everything that can happen, as one closed union of frozen values.

An event says what happened and nothing else; its number, time, session and run belong to the journal's `Record`.
What an agent says comes first, what Segue does comes after it.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from segue.model.agents import Choices, Limits
from segue.model.checkpoint import CheckpointType
from segue.model.findings import ExamResult, Findings, ReviewerFeedback, TestState
from segue.model.ids import AttemptId, BootId, CheckpointId, PromptId, RequestId, Seq, SessionId, TaskId, WorkflowId
from segue.model.pictures import Picture
from segue.model.plan import Issue, Plan, Planning, TaskStatus
from segue.model.status import (
    Failure,
    Permissions,
    Purpose,
    Role,
    SessionStatus,
    Trigger,
    WaitingFor,
    Way,
    WorkflowStatus,
)

JsonObject = dict[str, Any]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
ToolStatus = Literal["completed", "failed"]
FileAction = Literal["created", "modified", "deleted"]
PermissionOutcome = Literal["allowed", "denied", "interrupted"]
RunOutcome = Literal[
    "completed", "paused", "talked", "handed_over", "asked", "crashed", "failed", "cancelled", "not_started"
]


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
    estimated: bool = False
    """Segue reckoned the tokens of the context itself, since the agent does not tell them."""


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
    words: bool = False
    """Whether it may be answered in words, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """The agent stopped talking and waits."""

    kind: Literal["turn.ended"] = "turn.ended"
    prompt_id: PromptId
    reason: StopReason
    bookmark: str | None = None
    """The agent's own name for where its conversation stands now, if it has one: a copy may be made up to there."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHeard:
    """How far an agent was heard that may go on while nobody listens: what is in the journal of it when this is."""

    kind: Literal["agent.heard"] = "agent.heard"
    updates: int
    """What it has told so far, counted from its first word."""
    characters: int = 0
    """And so much of the text that followed."""


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
    | AgentHeard
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
    planning: Planning | None = None
    """The plan that was being made then, or waited for a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowCreated:
    kind: Literal["workflow.created"] = "workflow.created"
    slug: str
    issue: Issue
    plan: Plan | None
    """None where the agent is to propose one."""
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
    plan: Plan | None = None
    """The plan as it was there. Journals that were written before this was kept have neither it nor the next."""
    planning: Planning | None = None
    """What was being planned there, or waited for a word."""


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
    """0 for one that only helps: a reviewer, a fixer."""
    agent: str
    parent: SessionId | None = None
    role: Role = Role.WRITER
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
    context: str = ""
    """What a person wrote for the new conversation, in place of what would be compiled."""


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
    pictures: tuple[Picture, ...] = ()
    """What is shown with it; the words name them too."""


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
    part_of: PromptId | None = None
    """The prompt that the agent got it with, if not by itself; its turn is this one's too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnJoined:
    """An agent that went on by itself is listened to again, in the turn that this prompt began."""

    kind: Literal["turn.joined"] = "turn.joined"
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
    reason: str = ""
    """Why it never will be, if it is not said again in another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProposed:
    """The agent proposes how to do it; a person says whether it is done so."""

    kind: Literal["plan.proposed"] = "plan.proposed"
    prompt_id: PromptId
    plan: Plan
    done: tuple[TaskId, ...] = ()
    """Those of its tasks that were done before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAdopted:
    """This is the plan from now on; tasks that were done stay done."""

    kind: Literal["plan.adopted"] = "plan.adopted"
    plan: Plan
    by: Literal["user", "policy"]
    edited: bool = False
    """Somebody changed what was proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRejected:
    """What was proposed is not to be done; the agent plans again."""

    kind: Literal["plan.rejected"] = "plan.rejected"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReopened:
    """What is left is to be planned again, since this way does not lead there."""

    kind: Literal["plan.reopened"] = "plan.reopened"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestsRan:
    """The tests were run after a task, by Segue."""

    __test__ = False

    kind: Literal["tests.ran"] = "tests.ran"
    task_id: TaskId
    command: str
    passed: bool
    """Whether the task may count as done: nothing failed that was not expected to."""
    tests: TestState
    unexpected: tuple[str, ...] = ()
    """Tests that failed and should not have, where their names are known."""
    exit_code: int | None = None
    """None when the tests took too long, and were ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewGiven:
    """A reviewer has looked at a task."""

    kind: Literal["review.given"] = "review.given"
    task_id: TaskId
    round: int
    feedback: ReviewerFeedback
    wrong_approach: bool = False
    """The reviewer says that this way does not lead there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackAddressed:
    """What reviewers had said of a task is seen to."""

    kind: Literal["feedback.addressed"] = "feedback.addressed"
    task_id: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCommitted:
    kind: Literal["work.committed"] = "work.committed"
    task_id: TaskId
    commit: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonAsked:
    """Segue does not go on by itself: somebody has to say what becomes of a task."""

    kind: Literal["person.asked"] = "person.asked"
    task_id: TaskId
    question: str
    problem: str = ""
    """Why it is asked, without the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonAnswered:
    """Yes takes the task as done; no gives it back, with the reason."""

    kind: Literal["person.answered"] = "person.answered"
    task_id: TaskId
    approved: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed:
    """One try at a step failed; what follows stands in the table of retries."""

    kind: Literal["step.failed"] = "step.failed"
    step: str
    """The task, or what else was tried."""
    what: str
    """A failure of the agent, or an outcome of the work."""
    reason: str
    reset_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled:
    """A step is tried again by itself; until then it can be seen and called off."""

    kind: Literal["retry.scheduled"] = "retry.scheduled"
    step: str
    attempt: int
    of: int
    at: datetime
    reason: str
    rewind: bool = False
    """The worktree goes back to the last checkpoint before that, and what is left is planned again."""
    fixer: bool = False
    """A second agent is asked for advice before that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryCancelled:
    kind: Literal["retry.cancelled"] = "retry.cancelled"
    step: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FixerAdvised:
    """What a second agent said of a step that keeps failing."""

    kind: Literal["fixer.advised"] = "fixer.advised"
    step: str
    verdict: Literal["fix", "rewind", "escalate"]
    advice: str
    """Empty where none was given that could be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRefreshed:
    """So much was new in the conversation that it was kept: as a checkpoint, and as something to remember."""

    kind: Literal["context.refreshed"] = "context.refreshed"
    new_tokens: int
    checkpoint_id: CheckpointId
    memory_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAwaited:
    """The server was started anew, and somebody's word is still waited for."""

    kind: Literal["approval.awaited"] = "approval.awaited"
    question: str


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
    """The user lets the workflow use more, or less, from now on."""

    kind: Literal["limits.changed"] = "limits.changed"
    limits: Limits
    wait_for_quota: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReached:
    """The context has come up to a rung of the capacity ladder; said once for each time it does."""

    kind: Literal["capacity.reached"] = "capacity.reached"
    rung: str
    context_tokens: int
    window: int
    estimated: bool = False


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
    | AgentHeard
    | TurnJoined
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
    | PlanProposed
    | PlanAdopted
    | PlanRejected
    | PlanReopened
    | TestsRan
    | ReviewGiven
    | FeedbackAddressed
    | WorkCommitted
    | PersonAsked
    | PersonAnswered
    | StepFailed
    | RetryScheduled
    | RetryCancelled
    | FixerAdvised
    | ContextRefreshed
    | ApprovalAwaited
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
