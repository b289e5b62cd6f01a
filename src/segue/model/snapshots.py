"""A snapshot as a whole, and the parts of it that can be had one by one."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from segue.model.checkpoint import Checkpoint, FileChange
from segue.model.findings import Decision, ErrorRecord, Findings, ReviewerFeedback, TestState
from segue.model.ids import Seq, SessionId, TaskId

MESSAGES_SHOWN = 50


class Part(StrEnum):
    """What a successor can ask for beyond the context it was given."""

    DECISIONS = "decisions"
    ERRORS = "errors"
    GIT_CHANGES = "git-changes"
    REVIEWER_FEEDBACK = "reviewer-feedback"
    TESTS = "tests"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that is stored of a snapshot."""

    checkpoint: Checkpoint
    findings: Findings | None
    """None while nobody has taken the second look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitChanges:
    """What git said of the worktree when the snapshot was taken."""

    branch: str | None
    commit_at_workflow_start: str | None
    commit_at_snapshot: str | None
    committed: tuple[FileChange, ...] = ()
    """Files that the commits since the start changed."""
    uncommitted: tuple[FileChange, ...] = ()
    saved_as: str | None = None
    """The hidden commit that holds the whole worktree."""
    left_out: tuple[str, ...] = ()
    """Files that were not saved because they are on the secret-file list."""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something that was said to the agent, or by it."""

    seq: Seq
    at: datetime
    session_id: SessionId | None
    role: Literal["user", "agent"]
    text: str
    task_id: TaskId | None = None
    """The task it asks for, where Segue said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """Which messages: so many, and before which event."""

    limit: int = MESSAGES_SHOWN
    before: int | None = None


History = (
    tuple[Decision, ...]
    | tuple[ErrorRecord, ...]
    | tuple[ReviewerFeedback, ...]
    | tuple[Message, ...]
    | GitChanges
    | TestState
    | None
)
"""One part of a snapshot in full."""
