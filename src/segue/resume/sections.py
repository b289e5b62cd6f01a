"""The sections of a resume context: from facts to pieces that can be told."""

import re
from collections.abc import Iterable, Iterator, Sequence

from segue.model.events import TodoEntry
from segue.model.facts import Ask, ErrorFact, FileFact, Passage, SessionFacts, Speaker, TestFact
from segue.resume import handover as h
from segue.resume.budget import Piece

REQUEST, SAID, TODO, PROPOSED, SUMMARY, DECISIONS, ERRORS = (
    "request", "said", "todo", "proposed", "summary", "decisions", "errors",
)  # fmt: skip
GIT, FILES, READ, COMMANDS, WORK, TESTS, NEXT = "git", "files", "read", "commands", "work", "tests", "next"
# The sections in the order of the context, each with its title; two in a row with the same title share it.
TITLES = {
    h.DIVERGENCE: "### Changed since the snapshot",
    h.ISSUE: "### Original issue",
    REQUEST: "### Original request",
    SAID: "### What the user said since",
    h.PLAN: "### Plan status",
    TODO: "### Plan status",
    PROPOSED: "### The plan the agent proposed",
    SUMMARY: "### The agent's summary of what came before",
    DECISIONS: "### Key decisions",
    ERRORS: "### Errors",
    h.LIVE_GIT: "### Git state",
    GIT: "### Git state",
    FILES: "### Files changed",
    READ: "### Files read",
    COMMANDS: "### Commands that worked",
    WORK: "### From the work, word for word",
    TESTS: "### TDD state",
    h.GO_ON: "### What to do next",
    NEXT: "### What to do next",
    h.FEEDBACK: "### Unaddressed reviewer feedback",
    h.NOTE: "---",
}
WORTH = {
    "request": 0.07,
    "said": 0.07,
    "constraint": 0.07,
    "todo": 0.14,
    "decisions": 0.03,
    "error": 0.14,
    "git": 0.14,
    "files": 0.14,
    "read": 0.02,
    "commands": 0.14,
    "tests": 0.14,
    "next": 0.04,
    "summary": 0.05,
    "proposed": 0.05,
}
"""What the whole of a section is worth; what all names are worth is in the same unit."""
MARKS = {"completed": "[x]", "in_progress": "[~] in progress:"}
FILE_MARKS = {"created": "A", "modified": "M", "deleted": "D", "read": "R"}
# How a passage is marked, and how much the names in it count: what somebody said explains more than what was printed.
SPEAKERS: dict[Speaker, tuple[str, float]] = {
    "user": ("- user:", 1.15),
    "agent": ("-", 1.15),
    "thought": ("-", 1.1),
    "summary": ("-", 1.1),
    "edit": ("+", 1.0),
    "command": ("$", 0.9),
    "look": ("$", 0.4),
    "read": ("·", 0.85),
    "found": ("·", 0.85),
    "output": (">", 0.8),
    "other": ("·", 0.7),
}
BRANCH = "- Branch:"
SHORTEST_WISH = 15
"""Shorter words of the user answer something, and say nothing without it."""
_CODE = re.compile(r"^```.*?(?:^```|\Z)", re.DOTALL | re.MULTILINE)
_BOUNDARY = re.compile(r"\n+|(?<=[.!?])\s+")


def pieces(facts: SessionFacts) -> list[Piece]:
    return [
        *_request(facts.request),
        *_said(facts.said),
        *_todos(facts.todos),
        *_running(PROPOSED, facts.plan, WORTH["proposed"]),
        *_running(SUMMARY, facts.summary, WORTH["summary"]),
        *_decisions(facts),
        *_errors(facts.errors),
        *_git(facts),
        *_files(facts.files),
        *_looked_at(facts),
        *_commands(facts),
        *_tests(facts.tests),
        *_next(facts),
        *_work(facts.passages),
    ]


def clip(text: str, limit: int) -> str:
    """The beginning of the text, cut between words and marked where it is cut."""
    if len(text) <= limit:
        return text
    words = text[:limit].rsplit(" ", 1)[0]
    # A word that takes up much of the room is cut rather than lost.
    return (words if len(words) > 0.7 * limit else text[:limit]).rstrip(" ,;:") + "…"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _sizes(text: str, *limits: int) -> list[str]:
    """The text at growing lengths, the whole of what is allowed last."""
    return list(dict.fromkeys(clip(text, limit) for limit in limits))


def _grown(
    section: str, order: tuple[float, ...], texts: Sequence[str], value: float, slot: str, verbatim: bool = True
) -> Iterator[Piece]:
    """A piece at several lengths: the shortest brings most of the value, each longer one a little more."""
    for index, text in enumerate(texts):
        worth = value * (1 + 0.15 * index)
        yield Piece(section=section, order=order, text=text, value=worth, slot=slot, verbatim=verbatim)


# ── what the user wants ─────────────────────────────────────────────────────────────────────────────


def _parts(text: str, least: int) -> list[str]:
    """The text as sentences, of which short ones are joined to the one before."""
    parts: list[str] = []
    for part in _BOUNDARY.split(text):
        part = _flat(part)
        if not part:
            continue
        if parts and (len(parts[-1]) < least or len(part) < 15):
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
    return parts


def _request(ask: Ask | None) -> Iterator[Piece]:
    if ask is None:
        return
    parts = _parts(ask.text, 15)
    early = max(1, min(12, len(parts)))
    for index, part in enumerate(parts):
        value = WORTH["request"] / early * (1 if index < early else 0.3)
        yield from _grown(REQUEST, (index,), _sizes(part, 110, 240, 600), value, f"request{index}")


def _said(asks: Sequence[Ask]) -> Iterator[Piece]:
    recent = min(20, len(asks)) or 1
    rules = min(15, sum(len(ask.constraints) for ask in asks)) or 1
    told: set[str] = set()
    for age, ask in enumerate(reversed(asks)):
        constraints = [_flat(rule)[:60] for rule in ask.constraints]
        for index, part in enumerate(_parts(ask.text, 60)):
            # What was said over and over is told where it was said last.
            if part in told:
                continue
            told.add(part)
            bound = sum(rule in part for rule in constraints)
            value = WORTH["constraint"] / rules * bound + (WORTH["said"] / recent if index == 0 else 0.0)
            value = value or WORTH["said"] / recent * 0.15
            if age and len(part) < SHORTEST_WISH:
                value *= 0.1
            elif age >= 20:
                value *= 0.5
            elif age == 0:
                # What was asked last is what is being done.
                value *= 2
            sizes = _sizes(part, 400) if bound > 1 else _sizes(part, 110, 240, 500)
            yield from _grown(SAID, (ask.number, index), sizes, value, f"said{ask.number}.{index}")


# ── where the work stands ───────────────────────────────────────────────────────────────────────────


def _todos(todos: Sequence[TodoEntry]) -> Iterator[Piece]:
    for index, todo in enumerate(todos):
        text = f"- {MARKS.get(todo.status, '[ ]')} {_flat(todo.content)}"
        value = WORTH["todo"] / len(todos) * (1.0 if todo.status == "completed" else 1.5)
        yield from _grown(TODO, (index,), _sizes(text, 110, 300), value, f"todo{index}")


def _running(section: str, text: str, worth: float) -> Iterator[Piece]:
    parts = _parts(text, 40)
    for index, part in enumerate(parts):
        yield Piece(section=section, order=(index,), text=clip(part, 300), value=worth / len(parts))


def _decisions(facts: SessionFacts) -> Iterator[Piece]:
    standing = [each for each in facts.decisions if each.by == "agent" or each.superseded_by]
    for age, each in enumerate(reversed(standing)):
        taken_back = f" (taken back in #{each.superseded_by})" if each.superseded_by else ""
        text = f"- [{each.type}] {clip(each.quote, 260)}{taken_back} (#{each.number})"
        yield Piece(section=DECISIONS, order=(each.number,), text=text, value=WORTH["decisions"] / 5 * 0.8**age)


def _errors(errors: Sequence[ErrorFact]) -> Iterator[Piece]:
    still_open = [error.number for error in errors if not error.cleared][-3:]
    lately = [error.number for error in errors][-3:]
    for age, error in enumerate(reversed(errors)):
        share = 0.5 * (error.number in still_open) / max(1, len(still_open))
        share += 0.5 * (error.number in lately) / max(1, len(lately))
        share = share or (0.05 if error.cleared else 0.1) * 0.8**age
        mark = "✓ cleared:" if error.cleared else "- in passing:" if error.passing else "⚠ UNRESOLVED:"
        message = _flat(error.message)
        texts = [f"{mark} {clip(message, 110)}", f"{mark} {clip(message, 180)} (`{clip(error.command, 80)}`)"]
        order = (error.cleared or error.passing, error.number)
        yield from _grown(ERRORS, order, texts, WORTH["error"] * share, f"error{error.number}")


def _git(facts: SessionFacts) -> Iterator[Piece]:
    if facts.branches:
        *before, now = facts.branches
        text = f"{BRANCH} {now}" + (f" (before: {before[-1]})" if before else "")
        yield Piece(section=GIT, order=(0,), text=text, value=WORTH["git"] / 2)
    for age, commit in enumerate(reversed(facts.commits)):
        text = f"- Commit {commit.hash} {clip(commit.subject, 80)}".replace("  ", " ")
        yield Piece(section=GIT, order=(commit.number,), text=text, value=WORTH["git"] / 2 * 0.2**age)


def _files(files: Sequence[FileFact]) -> Iterator[Piece]:
    recent = min(40, len(files)) or 1
    for age, file in enumerate(reversed(files)):
        value = WORTH["files"] / recent * (1.0 if age < 40 else 0.4)
        short = f"{FILE_MARKS[file.action]} {file.path}"
        times = f" ({file.times}×)" if file.times > 1 else ""
        reason = f" — {clip(_flat(file.reason), 110)}" if file.reason else ""
        texts = [short, f"{short}{times}{reason}"]
        if file.change:
            texts = [short, *(f"{short}{times}: {change}" for change in _sizes(file.change, 80, 160))]
        yield from _grown(FILES, (file.number,), texts, value, f"file{file.path}", bool(file.change))


def _looked_at(facts: SessionFacts) -> Iterator[Piece]:
    # A file in the directory of the work itself has two spellings.
    folder = f"…/{facts.directory.rsplit('/', 1)[-1]}/"
    changed = {file.path.removeprefix(folder) for file in facts.files}
    unchanged = [file for file in facts.looked_at if file.path.removeprefix(folder) not in changed]
    before = ""
    for file in unchanged:
        # Files that were read one after the other for one reason share it.
        reason = f" — {clip(_flat(file.reason), 90)}" if file.reason != before else ""
        before = file.reason
        texts = list(dict.fromkeys([f"R {file.path}", f"R {file.path}{reason}"]))
        value = WORTH["read"] / len(unchanged)
        yield from _grown(READ, (file.number,), texts, value, f"read{file.path}", verbatim=False)


def _commands(facts: SessionFacts) -> Iterator[Piece]:
    tested = facts.tests.command if facts.tests else ""
    worked = [each for each in facts.commands if each.ok and each.command != tested]
    for age, each in enumerate(reversed(worked)):
        value = WORTH["commands"] / min(8, len(worked)) * (1.0 if age < 8 else 0.2 * 0.9 ** (age - 8))
        texts = [f"- `{text}`" for text in _sizes(each.command, 80, 200)]
        yield from _grown(COMMANDS, (each.number,), texts, value, f"command{each.number}")


def _tests(tests: TestFact | None) -> Iterator[Piece]:
    if tests is None:
        return
    outcome = "passed" if tests.ok else "FAILED"
    summary = f" ({_flat(tests.summary)})" if tests.summary else ""
    text = f"- Phase: {tests.phase}\n- Last run: `{clip(tests.command, 160)}` → {outcome}{summary}"
    yield Piece(section=TESTS, order=(0,), text=text, value=WORTH["tests"] * 2 / 3)
    if tests.failing:
        label = "Failed before" if tests.ok else "Failing tests"
        names = [clip(name, 100) for name in tests.failing]
        few = [f"- {label}: {', '.join(names[:3])}… {len(names) - 3} more"] if len(names) > 4 else []
        yield from _grown(TESTS, (1,), [*few, f"- {label}: {', '.join(names)}"], WORTH["tests"] / 3, "failing")
    if tests.expected_failures:
        text = "- Expected failures (red phase): " + clip(", ".join(tests.expected_failures), 200)
        yield Piece(section=TESTS, order=(2,), text=text, value=WORTH["tests"] / 10)


# ── where to go on ──────────────────────────────────────────────────────────────────────────────────


def _next(facts: SessionFacts) -> Iterator[Piece]:
    if current := _current(facts.todos):
        yield Piece(section=NEXT, order=(0, 0, 0), text=f"Continue with: {clip(current, 160)}", value=WORTH["next"])
    for index, call in enumerate(facts.open_calls[-5:]):
        text = f"Begun, and nobody saw it end: {clip(_flat(call), 140)}"
        yield Piece(section=NEXT, order=(1, index, 0), text=text, value=WORTH["next"])
    for age, message in enumerate(reversed(facts.latest)):
        parts = _parts(_CODE.sub("\n", message.text), 40)
        for index, part in enumerate(parts):
            late = index / len(parts)
            value = WORTH["next"] / len(parts) * (0.5 + late) * 0.5**age
            yield from _grown(
                NEXT, (0, message.number, index), _sizes(part, 160, 400), value, f"next{message.number}.{index}"
            )


def _current(todos: Sequence[TodoEntry]) -> str:
    """What was being done, or else what comes next."""
    for status in ("in_progress", "pending"):
        if found := next((todo for todo in todos if todo.status == status), None):
            return _flat(found.content)
    return ""


def _work(passages: Iterable[Passage]) -> Iterator[Piece]:
    for index, passage in enumerate(passages):
        mark, weight = SPEAKERS[passage.speaker]
        yield Piece(
            section=WORK,
            order=(passage.number, index),
            text=f"{mark} {passage.text}",
            value=0.0,
            weight=weight,
            telling=True,
            group=passage.source,
        )
