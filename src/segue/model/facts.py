"""What is known of a session without asking anybody: the facts that its transcript holds.

Each fact carries the number of the line it comes from, so that everything told about a session can be looked up in it.
The amount is bounded, however long the session was.
"""

from dataclasses import dataclass, field
from typing import Literal

from segue.model.checkpoint import Usage
from segue.model.events import FileAction, TodoEntry
from segue.model.findings import DecisionType, Severity, TestPhase

Speaker = Literal["user", "agent", "thought", "edit", "command", "read", "output", "found", "summary", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Something the user said."""

    number: int
    text: str
    constraints: tuple[str, ...] = ()
    """The sentences of it that say how things must be or must not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFact:
    """A file, and the last thing that was done to it."""

    number: int
    path: str
    action: FileAction | Literal["read"]
    times: int = 1
    reason: str = ""
    """What the agent said when it last changed the file."""
    change: str = ""
    """A line that the last change wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFact:
    """A command with its last outcome."""

    number: int
    command: str
    ok: bool
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFact:
    """What the tests said last."""

    number: int
    command: str
    ok: bool
    phase: TestPhase
    failing: tuple[str, ...] = ()
    """The tests that failed when tests last failed."""
    expected_failures: tuple[str, ...] = ()
    summary: str = ""

    __test__ = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFact:
    """Something that went wrong, and whether the same command went well later."""

    number: int
    command: str
    message: str
    cleared: bool = False
    passing: bool = False
    """Whether the command only looked around or asked somebody, so that its failure is no fault of the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFact:
    """A choice that somebody made, in their own words."""

    number: int
    type: DecisionType
    quote: str
    by: Literal["user", "agent"]
    superseded_by: int | None = None
    """The line in which it was taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFact:
    number: int
    hash: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFact:
    """What a reviewer found."""

    reviewer: str
    severity: Severity
    approved: bool
    comments: tuple[str, ...]
    addressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFact:
    """A path or an identifier, and how likely it is to be needed again (0 to 1)."""

    name: str
    path: bool
    weight: float
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A line of the session that names things, word for word."""

    number: int
    speaker: Speaker
    text: str
    source: str = ""
    """The file or command it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """Everything known of a session."""

    lines: int = 0
    directory: str = ""
    branches: tuple[str, ...] = ()
    """The branches the work was on, the one it is on last."""
    commit: str = ""
    request: Ask | None = None
    said: tuple[Ask, ...] = ()
    """What the user said after the request."""
    summary: str = ""
    """The agent's own summary of what came before, where its conversation was compacted."""
    plan: str = ""
    """The plan that the agent proposed last, where it proposed one."""
    todos: tuple[TodoEntry, ...] = ()
    files: tuple[FileFact, ...] = ()
    """Files written or deleted, the latest last."""
    looked_at: tuple[FileFact, ...] = ()
    commands: tuple[CommandFact, ...] = ()
    """Commands that did something, the latest last."""
    tests: TestFact | None = None
    errors: tuple[ErrorFact, ...] = ()
    decisions: tuple[DecisionFact, ...] = ()
    commits: tuple[CommitFact, ...] = ()
    latest: tuple[Passage, ...] = ()
    """The last messages of the agent, the latest last."""
    open_calls: tuple[str, ...] = ()
    names: tuple[NameFact, ...] = ()
    passages: tuple[Passage, ...] = ()
    usage: Usage = field(default_factory=Usage)
    unread_lines: int = 0
    """Lines of the recording that were broken, or of a kind that nobody knows."""
