"""Grading: falsehoods first, then what is missing. A fact counts only where it stands in a readable line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from segue.exam.evidence import Evidence, Ran, reduced
from segue.exam.questions import WEIGHTS, Category, Question, questions_of

_WORD = re.compile(r"[^\W_]{3,}|\w+_\w+|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2}")
_PLAIN = re.compile(r"(?<![\w/._-])[A-Za-zÀ-ÿ\u0400-\u04ff]{2,}(?![\w/(_=-])")
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_COMMAND = re.compile(r"`([^`\n]{4,300})`")
_WENT_WELL = re.compile(
    r"\b(?:passed|passes|pass|succeeded|succeeds|worked|works|green|went well|ok|concluded|successful(?:ly)?)\b|✓"
    r"|→ passed|-> passed",
    re.IGNORECASE,
)
_WENT_WRONG = re.compile(
    r"\b(?:fail\w*|unknown|not concluded|error|red|refused|unresolved|before|last passed|not seen|never)\b|⚠",
    re.IGNORECASE,
)
_FIXED = re.compile(r"(?:—|-) (?:fixed|resolved|solved|cured)\b", re.IGNORECASE)
_UNDER_WORKED = re.compile(r"^#+ .*\b(?:worked|passed|succeeded)\b", re.IGNORECASE)
_TITLE = re.compile(r"^#+ ")
_SWEEPING = re.compile(
    r"\b(?:all|the (?:whole|full|entire)) tests? (?:suite )?(?:now )?(?:are |is )?(?:pass(?:es|ed|ing)?|green)"
    r"|\beverything (?:is |was )?(?:green|passes|committed|pushed|merged|works)"
    r"|\bthe (?:merge|rebase) (?:is|was) (?:concluded|complete|finished|done)|\b(?:the )?(?:test suite|build"
    r"|tests) (?:is|are|was|were) green|\bno (?:failures|conflicts|errors) (?:remain|are left)",
    re.IGNORECASE,
)
_HASH = re.compile(r"(?<![\w/.-])(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,10}(?![\w/.-])")
_QUOTED = re.compile(r"^- \"([^\"]{12,400})\"")
_BREAK = re.compile(r"(?<=[.!?])\s+|…|\s-\s")
SHARE = 0.66
"""Share of an answer's terms that must stand in one line."""
PENALTY = 0.12
"""Part of the grade that each falsehood costs."""
LEAST_WORDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Falsehood:
    """A line that the record contradicts."""

    line: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """How well a context did."""

    score: float
    """From 0 to 1."""
    by_category: Mapping[Category, float] = field(default_factory=dict["Category", float])
    missing: tuple[Question, ...] = ()
    falsehoods: tuple[Falsehood, ...] = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """The texts that would answer what is missing."""
        return tuple(question.answer for question in self.missing)

    @property
    def wrong(self) -> tuple[str, ...]:
        return tuple(each.line for each in self.falsehoods)


def grade(text: str, record: Evidence) -> Grade:
    """Grade a context by the record: the weighted share of answered questions, reduced for each falsehood."""
    lines = [_Line.of(line) for line in text.split("\n") if line.strip()]
    falsehoods = tuple(_falsehoods(text, record))
    found: dict[Category, list[bool]] = {}
    missing: list[Question] = []
    for question in questions_of(record):
        held = _held(question, lines)
        found.setdefault(question.category, []).append(held)
        if not held:
            missing.append(question)
    by_category: dict[Category, float] = {name: sum(held) / len(held) for name, held in found.items()}
    weight = sum(WEIGHTS[name] for name in by_category)
    score = sum(WEIGHTS[name] * share for name, share in by_category.items()) / weight if weight else 1.0
    score *= max(0.0, 1.0 - PENALTY * len(falsehoods))
    return Grade(score=score, by_category=by_category, missing=tuple(missing), falsehoods=falsehoods)


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    words: frozenset[str]
    readable: bool

    @classmethod
    def of(cls, line: str) -> "_Line":
        """Return a line of the context with its terms, and if it is readable prose."""
        plain = _PLAIN.findall(line)
        pieces = len(line.split())
        # A list of identifiers has few plain words among its pieces, and the same ones over and over.
        readable = (len(set(plain)) >= LEAST_WORDS and len(plain) >= 0.35 * pieces) or len(_CJK.findall(line)) >= 6
        return cls(line.lower(), _words(line), readable)


def _words(text: str) -> frozenset[str]:
    """Return the terms of a text in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def _held(question: Question, lines: Sequence[_Line]) -> bool:
    """Return True if the context's lines answer a question."""
    match question.category:
        case "branch" | "commits" | "pull_requests":
            wanted = question.answer.lower()[:7] if question.category == "commits" else question.answer.lower()
            return any(wanted in line.text for line in lines)
        case "last_action" | "failures" if "\n" in question.answer:
            command, _, outcome = question.answer.lower().partition("\n")
            return any(command in line.text and re.search(outcome, line.text) for line in lines)
        case "failures":
            return any(re.search(question.answer, line.text) for line in lines)
        case "request":
            parts = [
                Question("said", "", part) for part in re.split(r"(?<=[.!?])\s+|\n+", question.answer) if len(part) > 15
            ]
            return sum(_held(part, lines) for part in parts) >= 0.6 * len(parts)
        case _:
            wanted = _words(question.answer)
            least = SHARE * len(wanted)
            return any(
                line.readable or len(wanted) < LEAST_WORDS for line in lines if len(wanted & line.words) >= least
            )


def _falsehoods(text: str, record: Evidence) -> Iterator[Falsehood]:
    """Yield each line with a false claim of success, an unknown hash, or a quotation that the user did not write."""
    title = ""
    said = "\0".join(record.said)
    for line in text.split("\n"):
        if _TITLE.match(line):
            title = line
            continue
        quotes = _repeats(line, said)
        if why := "" if quotes else _claimed(line, title, record):
            yield Falsehood(line=line, why=why)
        for name in _HASH.findall(line):
            if not any(known.startswith(name) or name.startswith(known) for known in record.words if len(known) >= 7):
                yield Falsehood(line=line, why=f"{name} stands nowhere in the record")
        quoted = _QUOTED.match(line) if "user" in title.lower() else None
        if quoted and not all(_was_said(part, said) for part in _BREAK.split(quoted[1])):
            yield Falsehood(line=line, why="the user did not say this")


def _was_said(part: str, said: str) -> bool:
    """Return True if the beginning or the end of a quotation is in the record."""
    plain = reduced(part)
    return plain[:40] in said or (len(plain) > 30 and plain[-30:] in said)


def _claimed(line: str, title: str, record: Evidence) -> str:
    """Return why a claim of success is false, or an empty text."""
    if _SWEEPING.search(line):
        tests = [run for run in record.runs if run.test]
        if record.half_done or (tests and tests[-1].outcome != "passed"):
            return "the record ends with a failure, an open run or an unfinished merge"
    if _FIXED.search(line):
        return _never_fixed(line, record)
    if not (_UNDER_WORKED.match(title) or (_WENT_WELL.search(line) and not _WENT_WRONG.search(line))):
        return ""
    for command in _COMMAND.findall(line)[:2]:
        last = _last_run(command, record.runs)
        if last is not None and last.outcome != "passed" and not _earlier_success(line, command, record.runs):
            return f"`{command[:60]}` ended {last.outcome} in #{last.number}"
    return ""


def _never_fixed(line: str, record: Evidence) -> str:
    """Return why a repair is not shown (no run of the same kind went well after the error), or an empty text."""
    for command in _COMMAND.findall(line)[:1]:
        failed = _last_run(command, [run for run in record.runs if run.outcome == "failed"])
        kind = _programs(command)
        if failed and not any(
            run.number > failed.number and run.outcome == "passed" and kind & _programs(run.command)
            for run in record.runs
        ):
            return f"nothing like `{command[:60]}` went well after #{failed.number}"
    return ""


def _programs(command: str) -> set[str]:
    """Return the programs that a command line runs, each with its subcommand."""
    steps = re.split(r"&&|\|\||[;|]", command.rstrip("…"))
    words = ([word for word in step.split() if "=" not in word] for step in steps)
    return {" ".join(each[:2]) for each in words if each}


def _repeats(line: str, said: str) -> bool:
    """Return True if a line only quotes claims of the record, which are history and no claims."""
    own = line.lstrip("-# \t0123456789")
    parts = [
        part for part in re.split(r"(?<=[.!?;])\s+|\s…\s|…", own) if _WENT_WELL.search(part) or _SWEEPING.search(part)
    ]
    return bool(parts) and all(reduced(part)[:40] in said for part in parts)


def _last_run(command: str, runs: Iterable[Ran]) -> Ran | None:
    """Return the last run of a command that may be cut short, or None."""
    wanted = " ".join(command.rstrip("…").split())
    return next((run for run in reversed(list(runs)) if wanted in run.command), None)


def _earlier_success(line: str, command: str, runs: Iterable[Ran]) -> bool:
    """Return True if the line names the number of a run of this command that went well."""
    wanted = " ".join(command.rstrip("…").split())
    numbers = {int(each) for each in re.findall(r"#(\d+)", line)}
    return any(run.number in numbers and run.outcome == "passed" and wanted in run.command for run in runs)
