"""Snapshots as a whole, and their parts that can be requested separately."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from segue.model.checkpoint import Checkpoint, FileChange
from segue.model.findings import Decision, ErrorRecord, Findings, ReviewerFeedback, TestState
from segue.model.ids import Seq, SessionId, TaskId

MESSAGES_SHOWN = 50


class Part(StrEnum):
    """Part of a snapshot that a successor can request beyond its context."""

    DECISIONS = "decisions"
    ERRORS = "errors"
    GIT_CHANGES = "git-changes"
    REVIEWER_FEEDBACK = "reviewer-feedback"
    TESTS = "tests"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All stored data of a snapshot."""

    checkpoint: Checkpoint
    findings: Findings | None
    """Findings of the study; None before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitChanges:
    """State of the worktree in git when the snapshot was taken."""

    branch: str | None
    commit_at_workflow_start: str | None
    commit_at_snapshot: str | None
    committed: tuple[FileChange, ...] = ()
    """Files that were changed by the commits since the start."""
    uncommitted: tuple[FileChange, ...] = ()
    saved_as: str | None = None
    """Hidden commit that holds the whole worktree."""
    left_out: tuple[str, ...] = ()
    """Files that were not saved because they are on the secret-file list."""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Message to the agent or from it."""

    seq: Seq
    at: datetime
    session_id: SessionId | None
    role: Literal["user", "agent"]
    text: str
    task_id: TaskId | None = None
    """Task that the message is about, if Segue sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """Range of messages: a number of messages before an event."""

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
"""Full content of one part of a snapshot."""
