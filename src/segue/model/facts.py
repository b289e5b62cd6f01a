"""Facts that a session's transcript holds, extracted without a model.

Each fact carries the number of its line, so that it can be checked in the transcript. Messages are kept whole, outputs
in single lines.
"""

from dataclasses import dataclass, field
from typing import Literal

from segue.model.checkpoint import Usage
from segue.model.events import FileAction, TodoEntry
from segue.model.findings import DecisionType, Resolution, Severity, TestPhase

Outcome = Literal["passed", "failed", "unknown"]
Voice = Literal["agent", "written", "helper", "summary", "result", "pasted", "plan"]
"""Source of a sentence: the agent, a text it wrote for others, a sub-agent, a summary by the vendor, an output,
a text that the user pasted, a plan that was proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """One sentence of the user."""

    text: str
    rule: bool = False
    """States how things must or must not be, beyond this moment."""
    correction: bool = False
    """Takes something back, or sets something right."""
    question: bool = False
    later: tuple[int, ...] = ()
    """Messages in which the user came back to the same thing."""
    withdrawn: int | None = None
    """Message in which it was taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A message of the user."""

    number: int
    text: str
    phrases: tuple[Phrase, ...] = ()
    """The user's own sentences, without what was pasted."""
    pasted: str = ""
    """Most informative line of pasted text, and its size."""
    answers: str = ""
    """Question or proposal of the agent, where the message is too short to stand alone."""
    accepts: bool = False
    """Accepts a proposal of the agent."""
    done: bool = True
    """Nothing in it is known to be missing in the code."""
    earlier: bool = False
    """Handed down from a session before this one."""

    @property
    def constraints(self) -> tuple[str, ...]:
        return tuple(phrase.text for phrase in self.phrases if phrase.rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """Sentence of the record, whole, with the number of its line."""

    number: int
    part: int
    voice: Voice
    text: str
    closing: bool = False
    """Belongs to the last message of a turn, which tends to sum it up."""
    announces: bool = False
    """Only announces the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFact:
    """A file, and the last thing that was done to it."""

    number: int
    path: str
    action: FileAction
    times: int = 1
    reason: str = ""
    """Explanation of the agent for its last change."""
    change: str = ""
    """A line that the last change wrote."""
    before: str = ""
    """The path it was moved from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFact:
    """A command with its last outcome."""

    number: int
    command: str
    outcome: Outcome
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFact:
    """Result of the last test run."""

    number: int
    command: str
    outcome: Outcome
    phase: TestPhase
    error: str = ""
    """Line of the output that names the failure."""
    edits_since: int = 0
    """Files that were changed after the run."""
    passed_at: int | None = None
    """The last run that passed."""
    failing: tuple[str, ...] = ()
    """The tests that failed when tests last failed."""
    expected_failures: tuple[str, ...] = ()
    summary: str = ""

    __test__ = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFact:
    """Error of a command, and its resolution."""

    number: int
    command: str
    message: str
    cleared: bool = False
    passing: bool = False
    """The command only looked around or asked a service, so that its failure is no fault of the work."""
    expected: bool = False
    """A new test failed before the code was written, as it should."""
    solution: str = ""
    """The sentence in which the agent named the cause or the cure."""
    solved_at: int | None = None
    resolution: Resolution = "unresolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFact:
    """Choice of the user or the agent, quoted."""

    number: int
    type: DecisionType
    quote: str
    by: Literal["user", "agent"]
    superseded_by: int | None = None
    """The line in which it was taken back."""
    reason: str = ""
    alternatives: tuple[str, ...] = ()
    accepted: bool = False
    """Was proposed by the agent and accepted by the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFact:
    """Commit that the session made."""

    number: int
    hash: str
    subject: str
    pushed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestFact:
    """Pull request that the session opened."""

    number: int
    url: str
    title: str = ""
    state: str = ""
    """State as it was seen last: open, draft, merged, closed; empty if it was never seen."""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFact:
    """A call of the agent, and how it ended."""

    number: int
    what: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFact:
    """State of the work at the end of the record."""

    last: ActionFact | None = None
    running: tuple[ActionFact, ...] = ()
    """Commands without a recorded end."""
    half_done: ActionFact | None = None
    """A merge, rebase or cherry-pick that stopped and was not concluded."""
    refused: ActionFact | None = None
    """A call that the user refused, after which the agent did nothing."""
    uncommitted: tuple[str, ...] = ()
    """Files changed after the last commit."""
    unpushed: int | None = None
    """Commits that no push was seen of; unknown where nothing was ever pushed."""
    question: str = ""
    """The agent's question that the user has not answered."""
    unanswered: int | None = None
    """The user's last message, if the agent has not answered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFact:
    """Findings of a reviewer."""

    reviewer: str
    severity: Severity
    approved: bool
    comments: tuple[str, ...]
    addressed: bool = False


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
    """Messages of the user after the request."""
    summary: str = ""
    """The agent's own summary of what came before, where its conversation was compacted."""
    plan: str = ""
    """The plan that the agent proposed last, where it proposed one."""
    todos: tuple[TodoEntry, ...] = ()
    files: tuple[FileFact, ...] = ()
    """Files written or deleted, the latest last."""
    commands: tuple[CommandFact, ...] = ()
    """Commands that did something, the latest last."""
    tests: TestFact | None = None
    errors: tuple[ErrorFact, ...] = ()
    decisions: tuple[DecisionFact, ...] = ()
    commits: tuple[CommitFact, ...] = ()
    pull_requests: tuple[PullRequestFact, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    """Sentences of all others, in order, whole."""
    state: StateFact = field(default_factory=StateFact)
    open_calls: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    unread_lines: int = 0
    """Lines of the recording that were broken or of an unknown kind."""
