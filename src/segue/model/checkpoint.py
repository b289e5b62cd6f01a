"""Checkpoints: marks in the journal. A snapshot is a checkpoint that carries everything a successor needs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from segue.model.ids import CheckpointId, PromptId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import Issue, TaskStatus
from segue.model.status import Trigger
from segue.model.usage import remaining, utilization

SCHEMA_VERSION = 2


class CheckpointType(StrEnum):
    """Occasion of a checkpoint."""

    START = "start"
    """Start of the work; it has the number 0."""
    TASK_COMPLETE = "task_complete"
    PAUSE = "pause"
    INTERRUPTED = "interrupted"
    SESSION_END = "session_end"
    CANCEL = "cancel"
    PLAN = "plan"
    """A plan was proposed and waits for approval."""
    REVIEW = "review"
    """A person has to decide about a task."""
    CONTEXT_REFRESH = "context_refresh"
    """The context has grown so much that a periodic checkpoint is due."""
    BEFORE_COMPACTION = "before_compaction"
    """The agent is about to compact its conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """Change of a file in git."""

    path: str
    action: Literal["created", "modified", "deleted", "renamed"]
    staged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GitState:
    """State of a worktree in git."""

    branch: str
    head: str
    base: str | None
    """Commit that the work started from."""
    changes: tuple[FileChange, ...] = ()
    """Uncommitted changes."""
    committed: tuple[FileChange, ...] = ()
    """Changes of the commits since the base."""

    @property
    def dirty(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMark:
    """Task of the plan with its status."""

    id: TaskId
    title: str
    status: TaskStatus
    depends_on: tuple[TaskId, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Usage, as far as the agents reported it."""

    context_tokens: int | None = None
    window: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    tool_calls: int = 0
    turns: int = 0
    cached_tokens: int | None = None
    """Tokens read from the vendor's cache, which are no part of `input_tokens`."""
    context_estimated: bool = False
    """True if Segue estimated `context_tokens`, because the agent does not report them."""

    @property
    def tokens_remaining(self) -> int | None:
        return remaining(self.context_tokens, self.window)

    @property
    def utilization(self) -> float | None:
        return utilization(self.context_tokens, self.window)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """Tool call without a recorded end: its effect is unknown."""

    call_id: str
    title: str
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Checkpoint, as stored."""

    schema_version: int = SCHEMA_VERSION
    id: CheckpointId
    workflow_id: WorkflowId
    session_id: SessionId
    session_number: int
    created_at: datetime
    type: CheckpointType
    trigger: Trigger
    reason: str
    snapshot: bool
    clean_boundary: bool
    after: Seq
    issue: Issue | None = None
    """Request of the user; only snapshots repeat it."""
    tasks: tuple[TaskMark, ...]
    current_task: TaskId | None
    next_task: TaskId | None
    git: GitState | None
    commit: str | None
    """Hidden commit that holds the whole worktree."""
    left_out: tuple[str, ...] = ()
    """Files that were not saved because they are on the secret-file list."""
    open_calls: tuple[OpenCall, ...] = ()
    in_flight_prompt: PromptId | None = None
    usage: Usage = Usage()
    session_seconds: float | None = None
    """Duration of the session."""
    gate: str = ""
    step: str = ""
    """Step that was under way."""
    bookmark: str | None = None
    """Agent's own name for this point of the conversation; None in the middle of a turn, or if it has no such names."""
    summary: str = ""
    next_steps: tuple[str, ...] = ()
    can_resume: bool = True
    resume_instructions: str = ""
    problem: str = ""
    """Reason why a part of this checkpoint is missing, if one is."""

    @property
    def tasks_completed(self) -> int:
        return sum(task.status is TaskStatus.COMPLETED for task in self.tasks)

    @property
    def tasks_remaining(self) -> int:
        return len(self.tasks) - self.tasks_completed
