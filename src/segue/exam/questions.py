"""Questions about the work, made from the record alone: what hurts most when a successor does not know it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from segue.exam.evidence import Evidence

Category = Literal[
    "request", "rules", "withdrawn", "said", "last_action", "failures", "decisions", "rejected", "findings", "branch",
    "commits", "pull_requests", "tasks",
]  # fmt: skip
WEIGHTS: dict[Category, float] = {
    "request": 1.5, "rules": 2.0, "withdrawn": 1.0, "said": 2.0, "last_action": 1.0, "failures": 1.0,
    "decisions": 3.0, "rejected": 2.0,
    "findings": 3.0, "branch": 0.5, "commits": 0.7, "pull_requests": 0.5, "tasks": 0.5,
}  # fmt: skip
MOST: dict[Category, int] = {
    "said": 40,
    "decisions": 24,
    "rejected": 12,
    "findings": 30,
    "commits": 8,
    "failures": 4,
    "tasks": 8,
}
_MODAL = re.compile(
    r"\b(?:never|always|must|don'?t|do not|only|forbidden|without my|from now on|not allowed|no new"
    r"|ask (?:me )?before|nie(?:mals)?|immer|verboten|nur|darf nicht"
    r"|nunca|siempre|prohibido|solo|jamais|toujours|interdit)\b|禁止|必ず|ないで|绝不|必须|不要|항상|절대",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"[?？]\s*$|^(?:what|why|how|where|when|which|who|is|are|does|do|did|could we|can (?:you|we|I)|should)\b",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(?:forget|no longer|never ?mind|cancel|scratch|drop|don'?t need|not needed|undo|changed my mind|instead"
    r"|leave .{1,30} out)\b",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"\b(?:because|since|so that|otherwise|root cause|due to|in order to|the reason|decided|chose|turns out)\b|—",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    r"\b(?:instead of|rather than|did(?:n't| not) work|doesn't work|reverted|gave up|rejected|ruled out|not worth"
    r"|skipped|failed because|won't work|broke)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"^(?:let me|now |i'?ll |i['’]m |next|first|ok|great|good|perfect|looking|checking)", re.IGNORECASE
)
_LOOKS = re.compile(
    r"^(?:cd \S+ *(?:&&|;) *)?(?:cat|ls|head|tail|sed -n|nl|rg|grep|find|wc|git (?:status|diff|log|show|branch)"
    r"|gh \w+ (?:view|list|diff|checks))\b"
)
_SPECIFIC = re.compile(r"`[^`]+`|\b\d[\d.,]*|\b\w+_\w+|\b[a-z]+[A-Z]\w+|\b[0-9a-f]{7,}")
_MACHINE = re.compile(r"^\W*(?:[❯$%➜]|\[|\d{4}[-/]|=== |--- |FAIL|PASS|ok\s|error|fatal|\w+:\s*$)|[{}<>|;\\]{2}")


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that a context must hold."""

    category: Category
    about: str
    answer: str
    """The text to look for; most of the terms that carry its meaning must stand in one readable line."""
    number: int = 0


def questions_of(record: Evidence) -> list[Question]:
    """Make the questions of a record, the same ones every time."""
    found: list[Question] = []
    for category, made in (*_wishes(record), *_work(record), *_versions(record)):
        found += _spread(list(made), MOST.get(category, 60))
    return found


def _spread(made: Sequence[Question], most: int) -> list[Question]:
    """Return at most `most` questions, taken from the whole length of the record."""
    if len(made) <= most:
        return list(made)
    return [made[index * len(made) // most] for index in range(most)]


def _wishes(record: Evidence) -> Iterator[tuple[Category, Iterator[Question]]]:
    """Yield the questions on the user's messages by category: the first request, rules, withdrawn wishes, all
    others."""
    first = next(((number, text) for number, text in record.requests if len(text.split()) > 2), None)
    if first:
        yield "request", iter([Question("request", "what the user asked for first", first[1][:600], first[0])])
    own = [(number, text) for number, text in record.user if not _MACHINE.search(text) and len(text) < 400]
    start = first[0] if first else 0
    yield (
        "rules",
        (
            Question("rules", f"a rule of the user: {text[:80]}", text, n)
            for n, text in own
            if n > start and _MODAL.search(text) and not _QUESTION.search(text)
        ),
    )
    yield (
        "withdrawn",
        (
            Question("withdrawn", f"taken back: {text[:80]}", text, n)
            for n, text in own
            if n > start and _BACK.search(text) and not _QUESTION.search(text)
        ),
    )
    yield (
        "said",
        (
            Question("said", f"the user said: {text[:80]}", text, n)
            for n, text in own
            if n > start and len(text.split()) > 3
        ),
    )


def _work(record: Evidence) -> Iterator[tuple[Category, Iterator[Question]]]:
    """Yield the questions on the work by category: last action, failures, decisions, rejected options and findings."""
    done = [
        run for run in record.runs if " " in run.command and (run.outcome == "failed" or not _LOOKS.match(run.command))
    ]
    if done:
        yield "last_action", iter([_outcome(done[-1].command, done[-1].outcome, done[-1].number)])
    tests = [run for run in record.runs if run.test]
    if tests and tests[-1].outcome == "failed":
        yield "failures", iter([_outcome(tests[-1].command, "failed", tests[-1].number)])
    if record.half_done:
        yield (
            "failures",
            iter(
                [Question("failures", "a merge or rebase is not concluded", "not concluded|conflict|stopped|unmerged")]
            ),
        )
    agent = [
        (n, text, closing)
        for n, text, closing in record.spoken()
        if 40 <= len(text) <= 360 and not _ANNOUNCES.match(text)
    ]
    yield (
        "decisions",
        (Question("decisions", f"why: {text[:90]}", text, n) for n, text, _ in agent if _WHY.search(text)),
    )
    yield (
        "rejected",
        (
            Question("rejected", f"what was not done: {text[:90]}", text, n)
            for n, text, _ in agent
            if _REJECTED.search(text)
        ),
    )
    best: dict[int, str] = {}
    for number, text, closing in agent:
        if closing and len(set(_SPECIFIC.findall(text))) > len(set(_SPECIFIC.findall(best.get(number, "")))):
            best[number] = text
    yield "findings", (Question("findings", f"what came out: {text[:90]}", text, n) for n, text in best.items())


def _outcome(command: str, outcome: str, number: int) -> Question:
    """Return the question how a command ended; its answer is the command and the terms for the outcome."""
    words = {
        "passed": "passed|succeeded|green|ok",
        "failed": "failed|fails|failing|error|red",
        "unknown": "unknown|not seen|running",
    }
    head = " ".join(command.split()[:4])[:60]
    return Question(
        "last_action" if outcome != "failed" else "failures",
        f"how `{head}` ended: {outcome}",
        f"{head}\n{words[outcome]}",
        number,
    )


def _versions(record: Evidence) -> Iterator[tuple[Category, Iterator[Question]]]:
    """Yield the questions on branch, commits, pull requests and open tasks."""
    if record.branch and record.branch != "HEAD":
        yield "branch", iter([Question("branch", "the branch", record.branch)])
    yield (
        "commits",
        (Question("commits", f"commit {name} {subject[:60]}", name) for name, subject in record.commits[-8:]),
    )
    yield (
        "pull_requests",
        (Question("pull_requests", f"pull request {number}", number) for number in dict.fromkeys(record.pulls)),
    )
    yield "tasks", (Question("tasks", f"open: {text[:80]}", text) for text in record.tasks)
