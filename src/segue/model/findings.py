"""Findings of a snapshot: tests, decisions, errors, reviews, and the grade of its context.

Each finding names the event that it comes from, so that it can be checked in the journal.
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
    """State of the tests. Counts are known only if the output of the tests contained them."""

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
    """Decision of the user or the agent."""

    id: str
    timestamp: datetime
    task_id: TaskId | None
    decision_type: DecisionType
    description: str
    rationale: str = ""
    alternatives_considered: tuple[str, ...] = ()
    quote: str = ""
    """Sentences that the decision was read from."""
    by: Literal["user", "agent"] = "agent"
    seq: Seq | None = None
    superseded_by: Seq | None = None
    """Event that revoked the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """Error, and its resolution."""

    id: str
    timestamp: datetime
    task_id: TaskId | None
    error_type: str
    error_message: str
    context: str = ""
    """Command or work in which it occurred."""
    resolution: Resolution = "unresolved"
    resolution_notes: str = ""
    seq: Seq | None = None


PERSON = "user"
"""Reviewer persona for the feedback of a person who rejects a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerFeedback:
    """Feedback of a reviewer."""

    review_id: str
    reviewer_persona: str
    timestamp: datetime
    approved: bool
    severity: Severity
    comments: tuple[str, ...] = ()
    addressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamResult:
    """Grade of a context: the share of the probes that it answers, and those that it does not."""

    score: float
    by_category: Mapping[str, float] = field(default_factory=dict[str, float])
    missing: tuple[str, ...] = ()
    tokens: int = 0
    budget: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Cost of the calls to a model. Unknown is a legal answer."""

    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Findings of a study of a snapshot and the journal up to it.

    The snapshot is on disk before: a study may fail without harm, and can be repeated.
    """

    schema_version: int = FINDINGS_VERSION
    checkpoint_id: CheckpointId
    by: Extractor = "rules"
    tests: TestState | None = None
    decisions: tuple[Decision, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    feedback: tuple[ReviewerFeedback, ...] = ()
    exam: ExamResult | None = None
    """Exam of the context that would be compiled from this snapshot."""
    problem: str = ""
    """Reason why a part is missing, or why the answer of a model was not used."""
    spending: Spending = Spending()
