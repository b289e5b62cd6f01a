"""Checkpoints: marks on the way. A snapshot is the checkpoint that carries everything a successor needs."""

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
    START = "start"
    """Nothing is done yet; it has the number 0."""
    TASK_COMPLETE = "task_complete"
    PAUSE = "pause"
    INTERRUPTED = "interrupted"
    SESSION_END = "session_end"
    CANCEL = "cancel"
    PLAN = "plan"
    """A plan was proposed, and a person is to say whether it is good."""
    REVIEW = "review"
    """A person is to say what becomes of a task."""
    CONTEXT_REFRESH = "context_refresh"
    """So much is new in the conversation that it is worth keeping."""
    BEFORE_COMPACTION = "before_compaction"
    """Soon the agent will replace its conversation by a summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    path: str
    action: Literal["created", "modified", "deleted", "renamed"]
    staged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GitState:
    """What git says about a worktree."""

    branch: str
    head: str
    base: str | None
    """The commit the work started from."""
    changes: tuple[FileChange, ...] = ()
    """What is not committed."""
    committed: tuple[FileChange, ...] = ()
    """What the commits since the base changed."""

    @property
    def dirty(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMark:
    id: TaskId
    title: str
    status: TaskStatus
    depends_on: tuple[TaskId, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was used, as far as the agents reported it."""

    context_tokens: int | None = None
    window: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    tool_calls: int = 0
    turns: int = 0
    cached_tokens: int | None = None
    """Read from the vendor's cache, and no part of `input_tokens`."""
    context_estimated: bool = False
    """Segue reckoned `context_tokens`, since the agent does not tell them."""

    @property
    def tokens_remaining(self) -> int | None:
        return remaining(self.context_tokens, self.window)

    @property
    def utilization(self) -> float | None:
        return utilization(self.context_tokens, self.window)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call that was begun and not seen to end: its effect is unknown."""

    call_id: str
    title: str
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint, as stored."""

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
    """What the user asked for; only snapshots repeat it."""
    tasks: tuple[TaskMark, ...]
    current_task: TaskId | None
    next_task: TaskId | None
    git: GitState | None
    commit: str | None
    """The hidden commit that holds the whole worktree."""
    left_out: tuple[str, ...] = ()
    """Files that were not saved because they are on the secret-file list."""
    open_calls: tuple[OpenCall, ...] = ()
    in_flight_prompt: PromptId | None = None
    usage: Usage = Usage()
    session_seconds: float | None = None
    """How long the session has lasted."""
    gate: str = ""
    step: str = ""
    """What was being worked on."""
    bookmark: str | None = None
    """Where the conversation stood, as the agent itself calls it; None in the middle of a turn, and where it has no
    names for that."""
    summary: str = ""
    next_steps: tuple[str, ...] = ()
    can_resume: bool = True
    resume_instructions: str = ""
    problem: str = ""
    """Why a part of this checkpoint is missing, where it is."""

    @property
    def tasks_completed(self) -> int:
        return sum(task.status is TaskStatus.COMPLETED for task in self.tasks)

    @property
    def tasks_remaining(self) -> int:
        return len(self.tasks) - self.tasks_completed
