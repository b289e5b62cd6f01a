"""Facts that a session's transcript holds, extracted without a model.

Each fact carries the number of its line, so that it can be checked in the transcript. The number of facts is bounded,
however long the session was.
"""

from dataclasses import dataclass, field
from typing import Literal

from segue.model.checkpoint import Usage
from segue.model.events import FileAction, TodoEntry
from segue.model.findings import DecisionType, Severity, TestPhase

Speaker = Literal["user", "agent", "thought", "edit", "command", "read", "output", "found", "summary", "look", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Message of the user."""

    number: int
    text: str
    constraints: tuple[str, ...] = ()
    """Sentences of it that state how something must be, or must not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFact:
    """File with the last action on it."""

    number: int
    path: str
    action: FileAction | Literal["read"]
    times: int = 1
    reason: str = ""
    """Explanation of the agent for its last change."""
    change: str = ""
    """Line that the last change wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFact:
    """Command with its last outcome."""

    number: int
    command: str
    ok: bool
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFact:
    """Last result of the tests."""

    number: int
    command: str
    ok: bool
    phase: TestPhase
    failing: tuple[str, ...] = ()
    """Tests that failed in the last failing run."""
    expected_failures: tuple[str, ...] = ()
    summary: str = ""

    __test__ = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFact:
    """Error, and whether the same command succeeded later."""

    number: int
    command: str
    message: str
    cleared: bool = False
    passing: bool = False
    """True if the command only read or asked something, so that its failure is no fault of the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFact:
    """Decision of the user or the agent, quoted."""

    number: int
    type: DecisionType
    quote: str
    by: Literal["user", "agent"]
    superseded_by: int | None = None
    """Line that revoked it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFact:
    """Commit that was made in the session."""

    number: int
    hash: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFact:
    """Findings of a reviewer."""

    reviewer: str
    severity: Severity
    approved: bool
    comments: tuple[str, ...]
    addressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFact:
    """Path or identifier, and its probability to be needed again (0 to 1)."""

    name: str
    path: bool
    weight: float
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Line of the session that contains names, as it was written."""

    number: int
    speaker: Speaker
    text: str
    source: str = ""
    """File or command that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """All facts of a session."""

    lines: int = 0
    directory: str = ""
    branches: tuple[str, ...] = ()
    """Branches of the work, the current one last."""
    commit: str = ""
    request: Ask | None = None
    said: tuple[Ask, ...] = ()
    """Later messages of the user."""
    summary: str = ""
    """Agent's own summary of the earlier conversation, if it was compacted."""
    plan: str = ""
    """Last plan that the agent proposed, if any."""
    todos: tuple[TodoEntry, ...] = ()
    files: tuple[FileFact, ...] = ()
    """Files that were written or deleted, the latest last."""
    looked_at: tuple[FileFact, ...] = ()
    commands: tuple[CommandFact, ...] = ()
    """Commands that changed something, the latest last."""
    tests: TestFact | None = None
    errors: tuple[ErrorFact, ...] = ()
    decisions: tuple[DecisionFact, ...] = ()
    commits: tuple[CommitFact, ...] = ()
    latest: tuple[Passage, ...] = ()
    """Last messages of the agent, the latest last."""
    open_calls: tuple[str, ...] = ()
    names: tuple[NameFact, ...] = ()
    passages: tuple[Passage, ...] = ()
    usage: Usage = field(default_factory=Usage)
    unread_lines: int = 0
    """Lines of the recording that were broken or of an unknown kind."""
