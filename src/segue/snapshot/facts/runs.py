"""Commands and their outcomes, as they come in: the last outcome of each, tests, errors, commits."""

import re
from dataclasses import dataclass, field, replace

from segue.model.facts import CommandFact, CommitFact, ErrorFact, TestFact
from segue.model.findings import TestPhase
from segue.snapshot.facts.commands import covers, headline, purpose
from segue.snapshot.facts.outcomes import error_message, failing_targets, failing_tests, test_summary, tests_failed

_COMMIT = re.compile(r"\[([\w./-]+)(?: \(root-commit\))? ([0-9a-f]{7,12})\] (.+)")
_MESSAGE = re.compile(r"\bgit commit\b.*?\s-\w*m\s+(?:\"\$\(cat <<\s*'?\w+'?\n)?[\"']?([^\n\"]+)", re.DOTALL)
_NEW_BRANCH = re.compile(r"\bgit (?:checkout -[bB]|switch -[cC])\s+['\"]?([^\s'\"-][^\s'\"]*)")
_TEST_FILE = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)|[a-z]Tests?\.", re.IGNORECASE)
MOST_COMMANDS = 40
MOST_ERRORS = 30
MOST_COMMITS = 10
MOST_BRANCHES = 5
LONGEST_COMMAND = 300


@dataclass(slots=True)
class Runs:
    """What the commands of a session did."""

    commands: dict[str, CommandFact] = field(default_factory=dict[str, CommandFact])
    errors: dict[str, ErrorFact] = field(default_factory=dict[str, ErrorFact])
    commits: list[CommitFact] = field(default_factory=list[CommitFact])
    branches: list[str] = field(default_factory=list[str])
    last_test: TestFact | None = None
    failing: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    edited: str = ""
    """The file that was edited last."""
    edited_since: bool = False
    """Whether something was edited after the last test run."""

    def on(self, branch: str) -> None:
        """The work is on this branch now."""
        # HEAD is what a checkout without a branch is called, as during a rebase; the work has a branch all the same.
        if branch == "HEAD" and self.branches:
            return
        if branch in self.branches:
            self.branches.remove(branch)
        self.branches = [*self.branches[-MOST_BRANCHES:], branch]

    def edit(self, path: str) -> None:
        self.edited = path
        self.edited_since = True

    def finished(self, number: int, command: str, failed: bool, output: str) -> None:
        line = headline(command)
        if not line:
            return
        kind = purpose(command)
        bad = failed or (kind == "test" and tests_failed(output))
        if kind == "test":
            self._tested(number, line, bad, output)
        if kind in ("test", "work"):
            self._ran(number, line, not bad)
        if bad:
            self._failed(number, line, output, kind in ("look", "talk"))
        else:
            self._went_well(line)
            self._git(number, command, output)

    def progressed(self, number: int, command: str, output: str) -> None:
        """A command that is still at work has told something; tests that failed already will not pass any more."""
        if purpose(command) == "test" and tests_failed(output):
            self.finished(number, command, True, output)

    def _tested(self, number: int, line: str, bad: bool, output: str) -> None:
        if bad and (failing := failing_tests(output) or (() if self.failing else failing_targets(output))):
            self.failing = failing
            # Whoever wrote a test last, and sees it fail, expected it to.
            self.expected = failing if _TEST_FILE.search(self.edited) else ()
        phase: TestPhase = "red" if bad else "green"
        self.edited_since = False
        self.last_test = TestFact(number=number, command=line, ok=not bad, phase=phase, summary=test_summary(output))

    def _ran(self, number: int, line: str, ok: bool) -> None:
        line = line[:LONGEST_COMMAND]
        before = self.commands.pop(line, None)
        times = before.times + 1 if before else 1
        self.commands[line] = CommandFact(number=number, command=line, ok=ok, times=times)
        if len(self.commands) > 4 * MOST_COMMANDS:
            del self.commands[next(iter(self.commands))]

    def _failed(self, number: int, line: str, output: str, passing: bool) -> None:
        message = error_message(output)
        if not message:
            return
        key = " ".join(message.lower().split())[:80]
        self.errors.pop(key, None)
        self.errors[key] = ErrorFact(number=number, command=line[:LONGEST_COMMAND], message=message, passing=passing)
        if len(self.errors) > MOST_ERRORS:
            del self.errors[next(iter(self.errors))]

    def _went_well(self, line: str) -> None:
        for key, error in self.errors.items():
            if not error.cleared and covers(line[:LONGEST_COMMAND], error.command):
                self.errors[key] = replace(error, cleared=True)

    def _git(self, number: int, command: str, output: str) -> None:
        if made := _NEW_BRANCH.search(command):
            self.on(made[1])
        if "commit" not in command:
            return
        if commit := _COMMIT.search(output):
            self.commits.append(CommitFact(number=number, hash=commit[2][:9], subject=commit[3].strip()[:120]))
        elif "git commit" in command and (message := _MESSAGE.search(command)):
            self.commits.append(CommitFact(number=number, hash="", subject=message[1].strip(" '")[:120]))
        del self.commits[:-MOST_COMMITS]

    def tests(self) -> TestFact | None:
        last = self.last_test
        if last is None:
            return None
        phase: TestPhase = "refactor" if last.ok and self.edited_since else last.phase
        expected = () if last.ok else self.expected
        return replace(last, phase=phase, failing=self.failing, expected_failures=expected)
