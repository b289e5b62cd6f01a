"""What a snapshot knows beyond counts and commits: tests, decisions, errors, reviews, and how well a context did.

Each finding names the event it comes from, so that everything told about a session can be looked up in its journal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from segue.model.ids import CheckpointId, Seq, TaskId

DecisionType = Literal["approach", "library", "architecture", "workaround", "skip", "clarification"]
Resolution = Literal["fixed", "workaround", "deferred", "unresolved"]
Severity = Literal["low", "medium", "high", "critical"]
TestPhase = Literal["red", "green", "refactor", "unknown"]
Extractor = Literal["rules", "agent", "model"]

FINDINGS_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TestState:
    """Where the tests stand. Counts are known only where the tests' own words gave them."""

    phase: TestPhase
    failing_tests: tuple[str, ...] = ()
    expected_failures: tuple[str, ...] = ()
    last_test_run_at: datetime | None = None
    last_test_command: str = ""
    last_test_output_summary: str = ""
    passing: int | None = None
    failing: int | None = None
    pending: int | None = None
    seq: Seq | None = None

    __test__ = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A choice that somebody made."""

    id: str
    timestamp: datetime
    task_id: TaskId | None
    decision_type: DecisionType
    description: str
    rationale: str = ""
    alternatives_considered: tuple[str, ...] = ()
    quote: str = ""
    """The words it was read from, as they were said."""
    by: Literal["user", "agent"] = "agent"
    seq: Seq | None = None
    superseded_by: Seq | None = None
    """The event in which it was taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """Something that went wrong, and what became of it."""

    id: str
    timestamp: datetime
    task_id: TaskId | None
    error_type: str
    error_message: str
    context: str = ""
    """The command or the work in which it came up."""
    resolution: Resolution = "unresolved"
    resolution_notes: str = ""
    seq: Seq | None = None


PERSON = "user"
"""Who has said it, when a person gives a task back with a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerFeedback:
    """What a reviewer said of the work."""

    review_id: str
    reviewer_persona: str
    timestamp: datetime
    approved: bool
    severity: Severity
    comments: tuple[str, ...] = ()
    addressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamResult:
    """How much of what matters a context holds: the share of the probes it answers, and those that it does not."""

    score: float
    by_category: Mapping[str, float] = field(default_factory=dict[str, float])
    missing: tuple[str, ...] = ()
    tokens: int = 0
    budget: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What asking a model took. Unknown is a legal answer."""

    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a second look at a snapshot reads from the journal up to it.

    The snapshot is safe on disk by then: the look may fail without harm, and be taken again.
    """

    schema_version: int = FINDINGS_VERSION
    checkpoint_id: CheckpointId
    by: Extractor = "rules"
    tests: TestState | None = None
    decisions: tuple[Decision, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    feedback: tuple[ReviewerFeedback, ...] = ()
    exam: ExamResult | None = None
    """The exam of the context that would be compiled from this snapshot."""
    problem: str = ""
    """Why a part is missing, or why a model's answer was not used."""
    spending: Spending = Spending()
