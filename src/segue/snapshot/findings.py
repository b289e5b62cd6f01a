"""From facts to what a snapshot tells of its tests, decisions and errors. Pure."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from segue.model.events import TestsRan
from segue.model.facts import DecisionFact, ErrorFact, ReviewFact, SessionFacts, TestFact
from segue.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
from segue.model.ids import Seq, TaskId

_ERROR_NAME = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Failure|Warning|Interrupt|Timeout))\b")
_COUNT = re.compile(
    r"(\d+)\s+(passed|passing|failed|failing|failures?|errors?|skipped|ignored|pending|todo)\b", re.IGNORECASE
)
_COUNTED = {
    "passed": "passing", "passing": "passing", "failed": "failing", "failing": "failing", "failure": "failing",
    "failures": "failing", "error": "failing", "errors": "failing", "skipped": "pending", "ignored": "pending",
    "pending": "pending", "todo": "pending",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """When each event was written, and which task was being worked on then."""

    times: Mapping[int, datetime]
    default: datetime
    starts: Sequence[tuple[int, TaskId]] = ()
    """The events at which tasks began, oldest first."""

    def at(self, seq: int) -> datetime:
        """Return the time of an event, or the default if it is unknown."""
        return self.times.get(seq, self.default)

    def task(self, seq: int) -> TaskId | None:
        """Return the task that was current at an event, or None before the first."""
        index = bisect_right(self.starts, seq, key=lambda start: start[0])
        return self.starts[index - 1][1] if index else None


def seqs_of(facts: SessionFacts) -> set[int]:
    """Return the numbers of the events whose time the findings need."""
    tests = {facts.tests.number} if facts.tests else set[int]()
    return tests | {each.number for each in (*facts.decisions, *facts.errors)}


def decisions_of(facts: SessionFacts, calendar: Calendar) -> tuple[Decision, ...]:
    """Return the decisions in the stored form, with id, time and task."""
    names = _names("decision", facts.decisions)
    return tuple(_decision(name, fact, calendar) for name, fact in zip(names, facts.decisions, strict=True))


def errors_of(facts: SessionFacts, calendar: Calendar) -> tuple[ErrorRecord, ...]:
    """Return the errors of the work: no failed looks around, and no new test that failed as it should."""
    errors = [fact for fact in facts.errors if not fact.passing and not fact.expected]
    return tuple(_error(name, fact, calendar) for name, fact in zip(_names("error", errors), errors, strict=True))


def tests_of(facts: SessionFacts, calendar: Calendar) -> TestState | None:
    """Return the test state in the stored form, or None if no tests ran."""
    return _tests(facts.tests, calendar) if facts.tests else None


def own_tests(ran: TestsRan) -> TestFact:
    """Return a test run of Segue in the form that the context compiler reads."""
    return TestFact(
        number=ran.tests.seq or 0,
        command=ran.command,
        outcome="passed" if ran.tests.phase == "green" else "failed",
        phase=ran.tests.phase,
        failing=ran.tests.failing_tests,
        expected_failures=ran.tests.expected_failures,
        summary=ran.tests.last_test_output_summary,
    )


def reviews_of(feedback: Sequence[ReviewerFeedback]) -> Iterator[ReviewFact]:
    """Yield reviews in the form that the context compiler reads."""
    for each in feedback:
        yield ReviewFact(
            reviewer=each.reviewer_persona,
            severity=each.severity,
            approved=each.approved,
            comments=each.comments,
            addressed=each.addressed,
        )


def _names(kind: str, facts: Sequence[DecisionFact] | Sequence[ErrorFact]) -> Iterator[str]:
    """Yield an id for each fact by its event; further ones of one event get a number."""
    seen: Counter[int] = Counter()
    for fact in facts:
        seen[fact.number] += 1
        again = seen[fact.number]
        yield f"{kind}-{fact.number}" if again == 1 else f"{kind}-{fact.number}-{again}"


def _decision(name: str, fact: DecisionFact, calendar: Calendar) -> Decision:
    """Return a decision in the stored form."""
    return Decision(
        id=name,
        timestamp=calendar.at(fact.number),
        task_id=calendar.task(fact.number),
        decision_type=fact.type,
        description=fact.quote,
        rationale=fact.reason,
        alternatives_considered=fact.alternatives,
        quote=fact.quote,
        by=fact.by,
        seq=Seq(fact.number),
        superseded_by=Seq(fact.superseded_by) if fact.superseded_by else None,
    )


def _error(name: str, fact: ErrorFact, calendar: Calendar) -> ErrorRecord:
    """Return an error in the stored form."""
    kind = _ERROR_NAME.search(fact.message)
    return ErrorRecord(
        id=name,
        timestamp=calendar.at(fact.number),
        task_id=calendar.task(fact.number),
        error_type=kind[1] if kind else "command failed",
        error_message=fact.message,
        context=fact.command,
        resolution=fact.resolution,
        resolution_notes=fact.solution or (f"a later run went well (#{fact.solved_at})" if fact.cleared else ""),
        seq=Seq(fact.number),
    )


def counts_in(summary: str) -> dict[str, int]:
    """Return the counts of a runner's summary by kind (passing, failing, pending); absent ones were not printed."""
    counts: dict[str, int] = {}
    for number, word in _COUNT.findall(summary):
        kind = _COUNTED[word.lower()]
        counts[kind] = counts.get(kind, 0) + int(number)
    return counts


def _tests(fact: TestFact, calendar: Calendar) -> TestState:
    """Return a test run in the stored form; counts that the runner did not print are None."""
    counts = counts_in(fact.summary)
    return TestState(
        phase=fact.phase,
        failing_tests=() if fact.outcome == "passed" else fact.failing,
        expected_failures=fact.expected_failures,
        last_test_run_at=calendar.at(fact.number),
        last_test_command=fact.command,
        last_test_output_summary=fact.summary,
        passing=counts.get("passing"),
        failing=counts.get("failing", 0 if counts else None),
        pending=counts.get("pending"),
        seq=Seq(fact.number),
    )
