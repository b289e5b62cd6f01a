"""The exam: does a context hold what the successor must know?

Probes are made from the facts, not from the context, and each is looked up in it. What is missing is named; the context
is then compiled again with what is missing made dearer, and the better of the two is kept.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from segue.model.facts import SessionFacts
from segue.resume.budget import Piece, explained
from segue.resume.compiler import DEFAULT_BUDGET, ResumeContext, compile_draft, draft
from segue.resume.handover import DONE, Handover
from segue.resume.sections import clip

Category = Literal[
    "request", "constraints", "tasks", "files", "tests", "errors", "commands", "git", "decisions", "names"
]  # fmt: skip
LATEST_SAID, LATEST_FILES, LATEST_COMMANDS, LATEST_ERRORS, LATEST_DECISIONS = 10, 40, 8, 5, 3
LIKELIEST_NAMES = 40
WEIGHTS: Mapping[Category, float] = {"names": 3.0}
"""Categories that count for more than one."""
LOOKED_FOR = 60
"""Characters of a fact that must be found; the rest may be cut."""
ROUNDS = 2
TOLERATED = 0.03
DEARER = 0.004
"""What a piece that answers a missed probe is worth besides."""

_IGNORED = re.compile(r"[`*#>|\"'“”‘’\\]+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing that the context must hold."""

    category: Category
    about: str
    wanted: tuple[str, ...]
    """All of these must stand on one line."""
    explained: bool = False
    """Whether it must also stand among words that explain it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """How well a context did."""

    score: float
    """From 0 to 1: the weighted mean over the categories."""
    by_category: Mapping[Category, float] = field(default_factory=dict["Category", float])
    missing: tuple[Probe, ...] = ()

    def better_than(self, other: "Grade") -> bool:
        """Better on the whole, and nowhere much worse: a repair must not tear a hole elsewhere."""
        kept = all(self.by_category[each] >= share - TOLERATED for each, share in other.by_category.items())
        return kept and self.score > other.score


def probes(facts: SessionFacts, handover: Handover | None = None) -> list[Probe]:
    return [*_wishes(facts, handover), *_progress(facts, handover), *_work(facts)]


def examine(text: str, questions: Sequence[Probe]) -> Grade:
    page = _Page.of(text)
    found: dict[Category, list[bool]] = {}
    missing: list[Probe] = []
    for probe in questions:
        held = page.holds(probe)
        found.setdefault(probe.category, []).append(held)
        if not held:
            missing.append(probe)
    by_category: dict[Category, float] = {category: sum(held) / len(held) for category, held in found.items()}
    weights: dict[Category, float] = {category: WEIGHTS.get(category, 1.0) for category in by_category}
    reached = sum(weights[category] * share for category, share in by_category.items())
    score = reached / sum(weights.values()) if weights else 1.0
    return Grade(score=score, by_category=by_category, missing=tuple(missing))


def compile_examined(
    facts: SessionFacts, budget: int = DEFAULT_BUDGET, handover: Handover | None = None
) -> tuple[ResumeContext, Grade]:
    """A context that was examined, and repaired where that made it better."""
    questions = probes(facts, handover)
    drafted = draft(facts, handover)
    context = compile_draft(drafted, budget, {})
    grade = examine(context.text, questions)
    extra: dict[str, float] = {}
    for _ in range(ROUNDS):
        # What a name is worth was weighed already, against all the others.
        missing = [probe for probe in grade.missing if not probe.explained]
        if not missing:
            break
        extra = _dearer(extra, drafted.offered, missing)
        other = compile_draft(drafted, budget, extra)
        again = examine(other.text, questions)
        if not again.better_than(grade):
            break
        context, grade = other, again
    return context, grade


def _wishes(facts: SessionFacts, handover: Handover | None) -> Iterator[Probe]:
    if facts.request and handover is None:
        yield _probe("request", "the request", facts.request.text)
    for ask in facts.said[-LATEST_SAID:]:
        yield _probe("request", f"the user in #{ask.number}", ask.text)
        for rule in ask.constraints:
            yield _probe("constraints", f"a rule in #{ask.number}", rule)


def _progress(facts: SessionFacts, handover: Handover | None) -> Iterator[Probe]:
    for todo in facts.todos:
        if todo.status != "completed":
            yield _probe("tasks", "an open to-do", todo.content)
    for task in handover.tasks if handover else ():
        if task.status not in DONE:
            yield _probe("tasks", f"task {task.id}", task.title)
    for decision in [each for each in facts.decisions if each.by == "agent"][-LATEST_DECISIONS:]:
        yield _probe("decisions", f"a decision in #{decision.number}", decision.quote)
    if facts.branches:
        yield _probe("git", "the branch", facts.branches[-1])
    if facts.commits:
        yield _probe("git", "the last commit", facts.commits[-1].hash or facts.commits[-1].subject)


def _work(facts: SessionFacts) -> Iterator[Probe]:
    for file in facts.files[-LATEST_FILES:]:
        yield _probe("files", "a changed file", "/".join(file.path.split("/")[-2:]))
    for error in [each for each in facts.errors if not each.cleared and not each.passing][-LATEST_ERRORS:]:
        yield _probe("errors", "an open error", error.message)
    for command in [each for each in facts.commands if each.ok][-LATEST_COMMANDS:]:
        yield _probe("commands", "a command that worked", command.command)
    for name in facts.names[:LIKELIEST_NAMES]:
        yield Probe(category="names", about=f"likely to be needed: {name.name}", wanted=(name.name,), explained=True)
    if tests := facts.tests:
        outcome = "passed" if tests.ok else "failed"
        yield _probe("tests", "the last test run", tests.command, outcome)
        for name in () if tests.ok else tests.failing[:8]:
            yield _probe("tests", "a failing test", name)


def _probe(category: Category, about: str, *wanted: str) -> Probe:
    return Probe(category=category, about=f"{about}: {clip(_SPACE.sub(' ', wanted[0]), 80)}", wanted=wanted)


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _IGNORED.sub(" ", text.lower())).strip()


@dataclass(frozen=True, slots=True)
class _Page:
    """A text in which probes are looked up."""

    text: str
    lines: Sequence[str]
    whole: str

    @classmethod
    def of(cls, text: str) -> "_Page":
        lines = [_plain(line) for line in text.split("\n")]
        return cls(text, lines, "\n".join(lines))

    def holds(self, probe: Probe) -> bool:
        if probe.explained:
            return self._explains(probe.wanted[0])
        wanted = [_plain(each)[:LOOKED_FOR].strip() for each in probe.wanted]
        if len(wanted) == 1:
            return wanted[0] in self.whole
        return any(all(each in line for each in wanted) for line in self.lines)

    def _explains(self, name: str) -> bool:
        at = self.text.find(name)
        while at >= 0:
            if explained(self.text, at, len(name)):
                return True
            at = self.text.find(name, at + 1)
        return False


def _dearer(extra: Mapping[str, float], offered: Sequence[Piece], missing: Sequence[Probe]) -> dict[str, float]:
    """What the pieces that answer a missed probe are worth besides."""
    dearer = dict(extra)
    # What is told for its names alone answers nothing else.
    pages = [_Page.of(piece.text) for piece in offered if not piece.telling]
    for probe in missing:
        answer = next((page.text for page in pages if page.holds(probe)), None)
        if answer is not None:
            dearer[answer] = dearer.get(answer, 0.0) + DEARER
    return dearer
