"""Events in the life of a workflow: its plan, its tasks, their tests and reviews."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from segue.model.agents import Choices, Limits
from segue.model.checkpoint import CheckpointType
from segue.model.findings import Findings, ReviewerFeedback, TestState
from segue.model.ids import AttemptId, CheckpointId, PromptId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import Issue, Plan, Planning, TaskStatus
from segue.model.status import Permissions, Role, Trigger, WorkflowStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Origin of a fork."""

    workflow_id: WorkflowId
    session_id: SessionId
    checkpoint_id: CheckpointId
    after: Seq
    """Last event of the original that the fork knows."""
    tasks: dict[TaskId, TaskStatus]
    """Status of the tasks at that event."""
    planning: Planning | None = None
    """Planning that was under way at that event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowCreated:
    """Creation of a workflow."""

    kind: Literal["workflow.created"] = "workflow.created"
    slug: str
    issue: Issue
    plan: Plan | None
    """Plan of the user; None if the agent proposes one."""
    agent: str
    permissions: Permissions
    repository: str
    here: bool
    choices: Choices = field(default_factory=Choices)
    imported: bool = False
    """True if the issue comes from an imported conversation, which repeats it."""
    forked_from: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRewound:
    """Return of the work to a checkpoint: of its files, its tasks and its history."""

    kind: Literal["workflow.rewound"] = "workflow.rewound"
    checkpoint_id: CheckpointId
    after: Seq
    """Last event that is still valid."""
    saved: CheckpointId
    """Snapshot of the worktree as it was before; a rewind to it undoes this one."""
    tasks: dict[TaskId, TaskStatus]
    """Status of the tasks after the rewind."""
    undone: tuple[str, ...] = ()
    """Work beyond the checkpoint, in sentences."""
    plan: Plan | None = None
    """Plan at the checkpoint. Old journals have neither this field nor the next one."""
    planning: Planning | None = None
    """Planning that was under way at the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowMoved:
    """Transition of the workflow."""

    kind: Literal["workflow.moved"] = "workflow.moved"
    before: WorkflowStatus
    after: WorkflowStatus
    reason: str = ""
    trigger: Trigger | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeReady:
    """Creation of the worktree, at the commit that the work starts from."""

    kind: Literal["worktree.ready"] = "worktree.ready"
    path: str
    branch: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeDiscarded:
    """Removal of the worktree that a failed first start had made."""

    kind: Literal["worktree.discarded"] = "worktree.discarded"
    path: str
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCreated:
    """Creation of a session."""

    kind: Literal["session.created"] = "session.created"
    number: int
    """Number of the session; 0 for a helper, such as a reviewer or a fixer."""
    agent: str
    parent: SessionId | None = None
    role: Role = Role.WRITER
    choices: Choices | None = None
    """Choices of the user for an agent that takes over from another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted:
    """Start of a task."""

    kind: Literal["task.started"] = "task.started"
    task_id: TaskId
    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCompleted:
    """Completion of a task."""

    kind: Literal["task.completed"] = "task.completed"
    task_id: TaskId
    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed:
    """Failure of a task."""

    kind: Literal["task.failed"] = "task.failed"
    task_id: TaskId
    attempt: AttemptId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInterrupted:
    """Interruption of a task, which is pending again."""

    kind: Literal["task.interrupted"] = "task.interrupted"
    task_id: TaskId
    attempt: AttemptId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProposed:
    """Plan that the agent proposes; a person approves or rejects it."""

    kind: Literal["plan.proposed"] = "plan.proposed"
    prompt_id: PromptId
    plan: Plan
    done: tuple[TaskId, ...] = ()
    """Tasks of the plan that are done already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAdopted:
    """New plan of the workflow; tasks that were done stay done."""

    kind: Literal["plan.adopted"] = "plan.adopted"
    plan: Plan
    by: Literal["user", "policy"]
    edited: bool = False
    """True if a person changed the proposal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRejected:
    """Rejection of a proposed plan; the agent plans again."""

    kind: Literal["plan.rejected"] = "plan.rejected"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReopened:
    """Decision to plan the remaining tasks again, because the current approach does not work."""

    kind: Literal["plan.reopened"] = "plan.reopened"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestsRan:
    """Test run of Segue after a task."""

    __test__ = False

    kind: Literal["tests.ran"] = "tests.ran"
    task_id: TaskId
    command: str
    passed: bool
    """True if the task can be completed: all failures were expected."""
    tests: TestState
    unexpected: tuple[str, ...] = ()
    """Names of the tests that failed unexpectedly, as far as they are known."""
    exit_code: int | None = None
    """Exit code; None if the tests were stopped at the time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewGiven:
    """Review of a task."""

    kind: Literal["review.given"] = "review.given"
    task_id: TaskId
    round: int
    feedback: ReviewerFeedback
    wrong_approach: bool = False
    """True if the reviewer rejects the approach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackAddressed:
    """Mark that the feedback on a task has been addressed."""

    kind: Literal["feedback.addressed"] = "feedback.addressed"
    task_id: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCommitted:
    """Commit of the work on a task."""

    kind: Literal["work.committed"] = "work.committed"
    task_id: TaskId
    commit: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonAsked:
    """Question to a person about a task; the work waits for the answer."""

    kind: Literal["person.asked"] = "person.asked"
    task_id: TaskId
    question: str
    problem: str = ""
    """Reason for the question, without the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonAnswered:
    """Answer of a person: yes completes the task, no returns it to the agent with the reason."""

    kind: Literal["person.answered"] = "person.answered"
    task_id: TaskId
    approved: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed:
    """Failure of one attempt at a step; the retry table decides about the next one."""

    kind: Literal["step.failed"] = "step.failed"
    step: str
    """Id of the task, or name of another step."""
    what: str
    """Failure of the agent, or negative outcome of the work."""
    reason: str
    reset_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled:
    """Scheduled automatic retry of a step; it is shown, and can be cancelled."""

    kind: Literal["retry.scheduled"] = "retry.scheduled"
    step: str
    attempt: int
    of: int
    at: datetime
    reason: str
    rewind: bool = False
    """True if the worktree first returns to the last checkpoint, and the remaining tasks are planned again."""
    fixer: bool = False
    """True if a second agent is asked for advice first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryCancelled:
    """Cancellation of a scheduled retry."""

    kind: Literal["retry.cancelled"] = "retry.cancelled"
    step: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FixerAdvised:
    """Advice of a second agent on a step that fails repeatedly."""

    kind: Literal["fixer.advised"] = "fixer.advised"
    step: str
    verdict: Literal["fix", "rewind", "escalate"]
    advice: str
    """Empty if there was no usable advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAwaited:
    """Reminder after a restart of the server that an approval is still open."""

    kind: Literal["approval.awaited"] = "approval.awaited"
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequested:
    """Request to pause at the next boundary."""

    kind: Literal["pause.requested"] = "pause.requested"
    trigger: Trigger
    reason: str
    force_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseWithdrawn:
    """Withdrawal of a pause request that had not taken effect."""

    kind: Literal["pause.withdrawn"] = "pause.withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCreated:
    """Creation of a checkpoint."""

    kind: Literal["checkpoint.created"] = "checkpoint.created"
    checkpoint_id: CheckpointId
    type: CheckpointType
    snapshot: bool
    clean_boundary: bool
    commit: str | None
    after: Seq
    """Last event that the checkpoint covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsChanged:
    """New limits of the workflow, set by the user."""

    kind: Literal["limits.changed"] = "limits.changed"
    limits: Limits
    wait_for_quota: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotStudied:
    """Findings of a snapshot: decisions, errors, and the exam of its context."""

    kind: Literal["snapshot.studied"] = "snapshot.studied"
    findings: Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionImported:
    """Import of a conversation from an agent's own session file; its events follow."""

    kind: Literal["session.imported"] = "session.imported"
    agent: str
    file: str
    sha256: str
    size: int
    """Size of the file in bytes; it may have grown since."""
    lines: int
    """Number of messages and actions in the file."""
    unread_lines: int
    conversation: str = ""
    """Agent's own id of the conversation, whether or not it can be resumed."""
    began: str = ""
    ended: str = ""
    """Times of the first and the last line, as the agent wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """Warning for the user, which stops nothing."""

    kind: Literal["warning"] = "warning"
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLogged:
    """Interruption of the work, with its cause."""

    kind: Literal["incident"] = "incident"
    what: str
    detail: str = ""
