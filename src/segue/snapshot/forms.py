"""A snapshot in two other forms: as a session's state for whoever resumes it, and as a small checkpoint.

Both are made from what is stored, and hold less than it. Pure.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from segue.model.checkpoint import Checkpoint, CheckpointType, FileChange, GitState, TaskMark, Usage
from segue.model.findings import Decision, ErrorRecord, Findings, ReviewerFeedback, TestState
from segue.model.ids import CheckpointId, SessionId, TaskId, WorkflowId
from segue.model.plan import Issue, TaskStatus
from segue.model.snapshots import GitChanges, Snapshot
from segue.model.status import Trigger

# ── the session ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class DagTask:
    """Task of the plan, with the tasks that it depends on."""

    id: TaskId
    title: str
    description: str
    status: TaskStatus
    dependencies: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDag:
    """Plan as a graph of tasks."""

    tasks: tuple[DagTask, ...]
    original_issue: Issue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGit:
    """Git state of a session snapshot."""

    branch: str
    commit_at_workflow_start: str | None
    commit_at_snapshot: str
    files_modified: tuple[str, ...]
    """Paths changed since the workflow started, committed or not."""
    files_staged: tuple[str, ...]
    has_uncommitted_changes: bool
    uncommitted_summary: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage:
    """Tokens, calls and cost of the workflow so far, and how full its present window is."""

    tokens_used: int
    tokens_remaining_estimate: int | None
    context_utilization: float | None
    llm_calls: int
    tool_calls: int
    cost_usd: float | None
    session_duration_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSnapshot:
    """Everything needed to go on in a new session."""

    id: CheckpointId
    workflow_id: WorkflowId
    session_number: int
    created_at: datetime
    trigger: Trigger
    pause_reason: str | None
    task_dag: TaskDag
    current_task_id: TaskId | None
    next_task_id: TaskId | None
    tasks_completed: int
    tasks_remaining: int
    git_state: SessionGit | None
    decisions: tuple[Decision, ...]
    errors: tuple[ErrorRecord, ...]
    reviewer_feedback: tuple[ReviewerFeedback, ...] | None
    test_state: TestState | None
    usage: SessionUsage


def session_form(snapshot: Snapshot) -> SessionSnapshot:
    """Return a snapshot in the documented form of a session snapshot."""
    checkpoint, found = snapshot.checkpoint, _found(snapshot)
    return SessionSnapshot(
        id=checkpoint.id,
        workflow_id=checkpoint.workflow_id,
        session_number=checkpoint.session_number,
        created_at=checkpoint.created_at,
        trigger=checkpoint.trigger,
        pause_reason=checkpoint.reason or None,
        task_dag=TaskDag(tasks=tuple(map(_dag_task, checkpoint.tasks)), original_issue=checkpoint.issue),
        current_task_id=checkpoint.current_task,
        next_task_id=checkpoint.next_task,
        tasks_completed=checkpoint.tasks_completed,
        tasks_remaining=checkpoint.tasks_remaining,
        git_state=_git(checkpoint.git) if checkpoint.git else None,
        decisions=found.decisions,
        errors=found.errors,
        reviewer_feedback=found.feedback or None,
        test_state=found.tests,
        usage=_usage(checkpoint.usage, checkpoint.session_seconds),
    )


def _found(snapshot: Snapshot) -> Findings:
    """Return the snapshot's findings, or empty ones."""
    return snapshot.findings or Findings(checkpoint_id=snapshot.checkpoint.id)


def _dag_task(task: TaskMark) -> DagTask:
    """Return a task in the form of the task graph."""
    return DagTask(
        id=task.id, title=task.title, description=task.description, status=task.status, dependencies=task.depends_on
    )


def _git(git: GitState) -> SessionGit:
    """Return the git state in the session snapshot's form."""
    changed = (*git.committed, *git.changes)
    return SessionGit(
        branch=git.branch,
        commit_at_workflow_start=git.base,
        commit_at_snapshot=git.head,
        files_modified=tuple(dict.fromkeys(change.path for change in changed)),
        files_staged=tuple(change.path for change in git.changes if change.staged),
        has_uncommitted_changes=git.dirty,
        uncommitted_summary=_summary(git.changes) if git.dirty else None,
    )


def _summary(changes: Sequence[FileChange]) -> str:
    """Return the counts of changed files by action, in one line."""
    counts = Counter(change.action for change in changes)
    return ", ".join(f"{number} {action}" for action, number in counts.items())


def _usage(usage: Usage, seconds: float | None) -> SessionUsage:
    """Return the usage in the session snapshot's form."""
    return SessionUsage(
        tokens_used=usage.input_tokens + usage.output_tokens,
        tokens_remaining_estimate=usage.tokens_remaining,
        context_utilization=usage.utilization,
        llm_calls=usage.turns,
        tool_calls=usage.tool_calls,
        cost_usd=usage.cost_usd,
        session_duration_seconds=None if seconds is None else round(seconds),
    )


# ── the checkpoint ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """Changed file of a checkpoint envelope."""

    path: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCounts:
    """Unknown where the tests' own words gave no number."""

    passing: int | None
    failing: int | None
    pending: int | None

    __test__ = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTaken:
    """Decision of a checkpoint envelope."""

    decision: str
    rationale: str
    alternatives_considered: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeState:
    """State of the work in a checkpoint envelope."""

    files_changed: tuple[ChangedFile, ...]
    tests: TestCounts
    decisions: tuple[DecisionTaken, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEnvelope:
    """A mark on the way, small enough to be read at a glance."""

    checkpoint_id: CheckpointId
    session_id: SessionId
    timestamp: datetime
    gate: str
    step: str
    type: CheckpointType
    summary: str
    state: EnvelopeState
    next_steps: tuple[str, ...]
    can_resume: bool
    resume_instructions: str


def checkpoint_form(snapshot: Snapshot) -> CheckpointEnvelope:
    """Return a snapshot in the documented form of a checkpoint."""
    checkpoint = snapshot.checkpoint
    return CheckpointEnvelope(
        checkpoint_id=checkpoint.id,
        session_id=checkpoint.session_id,
        timestamp=checkpoint.created_at,
        gate=checkpoint.gate,
        step=checkpoint.step,
        type=checkpoint.type,
        summary=checkpoint.summary,
        state=_state(checkpoint, _found(snapshot)),
        next_steps=checkpoint.next_steps,
        can_resume=checkpoint.can_resume,
        resume_instructions=checkpoint.resume_instructions,
    )


def _state(checkpoint: Checkpoint, found: Findings) -> EnvelopeState:
    """Return the files, tests and standing decisions of a checkpoint; an uncommitted change replaces a committed
    one."""
    git, tests = checkpoint.git, found.tests
    # What is not committed yet is the later word on a file.
    actions = {change.path: change.action for change in (*git.committed, *git.changes)} if git else {}
    return EnvelopeState(
        files_changed=tuple(ChangedFile(path=path, action=action) for path, action in actions.items()),
        tests=TestCounts(
            passing=tests.passing if tests else None,
            failing=tests.failing if tests else None,
            pending=tests.pending if tests else None,
        ),
        decisions=tuple(
            DecisionTaken(
                decision=each.description,
                rationale=each.rationale,
                alternatives_considered=each.alternatives_considered,
            )
            for each in found.decisions
            if each.superseded_by is None
        ),
    )


# ── git alone ───────────────────────────────────────────────────────────────────────────────────────


def git_changes(checkpoint: Checkpoint) -> GitChanges:
    """Return the git part of a checkpoint in full; fields are None or empty without git state."""
    git = checkpoint.git
    return GitChanges(
        branch=git.branch if git else None,
        commit_at_workflow_start=git.base if git else None,
        commit_at_snapshot=git.head if git else None,
        committed=git.committed if git else (),
        uncommitted=git.changes if git else (),
        saved_as=checkpoint.commit,
        left_out=checkpoint.left_out,
        problem=checkpoint.problem,
    )
