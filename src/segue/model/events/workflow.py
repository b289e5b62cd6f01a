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
class ApprovalAwaited:
    """The server was started anew, and somebody's word is still waited for."""

    kind: Literal["approval.awaited"] = "approval.awaited"
    question: str


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
