"""Commands and their true outcomes: the last outcome of each, tests, and errors with what became of them."""

import re
from dataclasses import dataclass, field, replace

from segue.model.facts import CommandFact, ErrorFact, Outcome, TestFact
from segue.model.findings import TestPhase
from segue.snapshot.facts.commands import covers, headline, hides_outcome, marked_success, purpose
from segue.snapshot.facts.outcomes import (
    error_message,
    failing_targets,
    failing_tests,
    test_summary,
    tests_failed,
    tests_passed,
)
from segue.snapshot.facts.versions import Versions

_TEST_FILE = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)|[a-z]Tests?\.", re.IGNORECASE)
_CURE = re.compile(
    r"\b(?:fix(?:ed|es)?|because|cause[ds]?|due to|the (?:issue|problem|bug|error|failure|reason|culprit) (?:is|was)"
    r"|since|turns? out|needed|missing|solved|resolved"
    r"|so I|instead)\b",
    re.IGNORECASE,
)
_AROUND = re.compile(r"\bwork(?:ed|ing)?[ -]?around|\bfall(?:ing)? back|\binstead\b|\btemporar", re.IGNORECASE)
_LATER = re.compile(
    r"\b(?:defer|postpone|later|out of scope|pre-?existing|unrelated|not (?:our|related|caused)|known (?:issue"
    r"|failure|flake)|flaky|ignore|environment|sandbox|network)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z_][\w.]{3,}")
MOST_COMMANDS = 40
MOST_ERRORS = 60
LONGEST_COMMAND = 300
NEAR = 40
"""Lines of the record within which a sentence about an error's cause belongs to it."""


def outcome_of(command: str, status: str, output: str) -> Outcome:
    """Return how a command ended, or "unknown" where neither its exit status nor its output shows it."""
    tests = purpose(command) == "test"
    if status == "failed" or (tests and tests_failed(output)):
        return "failed"
    if tests and (tests_passed(output) or marked_success(command, output)):
        return "passed"
    if status == "unknown" or (
        purpose(command) in ("test", "work") and hides_outcome(command) and not marked_success(command, output)
    ):
        return "unknown"
    return "passed"


@dataclass(slots=True)
class Runs:
    """The commands of a session so far."""

    commands: dict[str, CommandFact] = field(default_factory=dict[str, CommandFact])
    errors: dict[str, ErrorFact] = field(default_factory=dict[str, ErrorFact])
    last_test: TestFact | None = None
    passed_at: int | None = None
    failing: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    edited: str = ""
    """The file that was edited last."""
    edits: int = 0
    """Edits after the last test run."""

    def edit(self, path: str) -> None:
        """Note the edited file, and count the edit since the last test run."""
        self.edited = path
        self.edits += 1

    def finished(self, number: int, command: str, outcome: Outcome, output: str) -> None:
        """Add the end of a command: as test run, as command, and as error or its repair."""
        line = headline(command)
        if not line:
            return
        kind = purpose(command)
        if kind == "test":
            self._tested(number, line, outcome, output)
        if kind in ("test", "work"):
            self._ran(number, line, outcome)
        if outcome == "failed" and not (kind == "git" and Versions.stopped(output)):
            self._failed(number, line, output, kind)
        elif outcome == "passed":
            self._went_well(number, line)

    def progressed(self, number: int, command: str, output: str) -> None:
        """Add a running test command as failed if its output shows failed tests; else do nothing."""
        if purpose(command) == "test" and tests_failed(output):
            self.finished(number, command, "failed", output)

    def begun(self, number: int, command: str) -> None:
        """Add a running test command, with unknown outcome; other commands are ignored."""
        if purpose(command) == "test" and (line := headline(command)):
            self._tested(number, line, "unknown", "")

    def spoke(self, number: int, sentences: list[str]) -> None:
        """Add sentences that name the cause or the cure of a recent error to it."""
        recent = [
            (key, error) for key, error in self.errors.items() if number - error.number <= NEAR and not error.solution
        ]
        for key, error in recent[-4:]:
            known = set(_WORD.findall(error.message)) | set(_WORD.findall(error.command))
            for sentence in sentences:
                shared = len(known & set(_WORD.findall(sentence)))
                if _CURE.search(sentence) and (shared >= 2 or (shared and number - error.number <= 6)):
                    way = (
                        "deferred"
                        if _LATER.search(sentence)
                        else "workaround"
                        if _AROUND.search(sentence)
                        else error.resolution
                    )
                    self.errors[key] = replace(error, solution=sentence, solved_at=number, resolution=way)
                    break

    def tests(self) -> TestFact | None:
        """Return the last test run, or None."""
        last = self.last_test
        if last is None:
            return None
        phase: TestPhase = "refactor" if last.outcome == "passed" and self.edits else last.phase
        return replace(
            last,
            phase=phase,
            failing=self.failing,
            expected_failures=() if last.outcome == "passed" else self.expected,
            edits_since=self.edits,
            passed_at=self.passed_at,
        )

    def _tested(self, number: int, line: str, outcome: Outcome, output: str) -> None:
        """Note a test run as the last one, with its failing tests."""
        if outcome == "failed":
            passed = self.last_test is not None and self.last_test.outcome == "passed"
            failing = failing_tests(output) or (() if self.failing and not passed else failing_targets(output))
            if failing or passed:
                self.failing = failing
                # A test that was written last, and fails now, was expected to fail.
                self.expected = failing if _TEST_FILE.search(self.edited) else ()
        if outcome == "passed":
            self.passed_at, self.expected = number, ()
        if outcome != "unknown" or self.last_test is None or self.last_test.number != number:
            self.edits = 0
        phases: dict[Outcome, TestPhase] = {"failed": "red", "passed": "green", "unknown": "unknown"}
        self.last_test = TestFact(
            number=number,
            command=line,
            outcome=outcome,
            phase=phases[outcome],
            summary=test_summary(output),
            error=error_message(output) if outcome == "failed" else "",
        )

    def _ran(self, number: int, line: str, outcome: Outcome) -> None:
        """Note the last outcome of a command and count its runs."""
        line = line[:LONGEST_COMMAND]
        before = self.commands.pop(line, None)
        times = before.times + 1 if before else 1
        self.commands[line] = CommandFact(number=number, command=line, outcome=outcome, times=times)
        if len(self.commands) > 4 * MOST_COMMANDS:
            del self.commands[next(iter(self.commands))]

    def _failed(self, number: int, line: str, output: str, kind: str) -> None:
        """Note an error by its message; without a message do nothing."""
        message = error_message(output)
        if not message:
            return
        key = " ".join(message.lower().split())[:80]
        self.errors.pop(key, None)
        self.errors[key] = ErrorFact(
            number=number,
            command=line[:LONGEST_COMMAND],
            message=message,
            passing=kind in ("look", "talk"),
            expected=kind == "test" and bool(self.expected),
        )
        if len(self.errors) > MOST_ERRORS:
            oldest = next(
                (each for each, error in self.errors.items() if error.cleared or error.passing), next(iter(self.errors))
            )
            del self.errors[oldest]

    def _went_well(self, number: int, line: str) -> None:
        """Mark the errors that this success covers as cleared."""
        for key, error in self.errors.items():
            if not error.cleared and covers(line[:LONGEST_COMMAND], error.command):
                way = error.resolution if error.resolution != "unresolved" else "fixed"
                self.errors[key] = replace(error, cleared=True, resolution=way, solved_at=error.solved_at or number)
