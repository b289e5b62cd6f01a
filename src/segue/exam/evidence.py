"""The record in the form in which it is asked about: runs with their outcomes, sentences, commits."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from segue.exam.entries import Entry
from segue.model.facts import Outcome

_TEST = re.compile(
    r"\b(?:pytest|unittest|vitest|jest|mocha|rspec|phpunit|ctest|nextest|tox|nox)\b|\b(?:go|cargo|npm|pnpm|yarn|bun"
    r"|make|just|mise|mvn|gradle|dotnet|swift|mix|deno|uv|rake)\b[^|;&]*\btests?\b"
)
_FAILS = re.compile(
    r"^(?:FAIL\b|--- FAIL|FAILED\b|not ok\b|panic:)|\b[1-9]\d* (?:failed|failing|errors?)\b|Traceback \(most recent"
    r"|error: test failed",
    re.MULTILINE,
)
_PASSES = re.compile(
    r"^(?:ok\s+\S|PASS\b|--- PASS|OK\b)|\b\d+ (?:passed|passing)\b|test result: ok|\bALL PASS", re.MULTILINE
)
_PIPED = re.compile(r"(?<!\|)\|(?!\|)|\|\|\s*(?:true|echo)|;\s*echo|&\s*$")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'", re.DOTALL)
_STOPPED = re.compile(
    r"CONFLICT \(|could not apply|Automatic merge failed|unmerged paths|rebase in progress", re.IGNORECASE
)
_CONCLUDED = re.compile(r"Successfully rebased|Merge made by|^\[[^\]]+ [0-9a-f]{7,}\]", re.MULTILINE)
_HASH = re.compile(r"^\[([^\s\]]+)[^\]]*? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_REQUEST = re.compile(r"https?://[^\s\"')>\\]+/(?:pull|merge_requests)/(\d+)")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_NAME = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{7,40}(?![0-9a-zA-Z])")
LONGEST_ANSWER = 6_000
_SWITCH = re.compile(r"\bgit (?:checkout -[bB]|switch -[cC])\s+['\"]?([\w./-]+)")


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that was run."""

    number: int
    command: str
    outcome: Outcome
    test: bool


@dataclass(slots=True)
class Evidence:
    """The record in the form in which it is asked about."""

    length: int = 0
    user: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """The person's sentences."""
    requests: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    agent: list[tuple[int, str, bool]] = field(default_factory=list[tuple[int, str, bool]])
    """The agent's sentences; the flag marks the last message of a turn."""
    runs: list[Ran] = field(default_factory=list[Ran])
    open: dict[str, Ran] = field(default_factory=dict[str, Ran])
    branch: str = ""
    commits: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    pulls: list[str] = field(default_factory=list[str])
    tasks: tuple[str, ...] = ()
    half_done: bool = False
    words: set[str] = field(default_factory=set[str])
    """Hashes and numbers that stand anywhere in the record."""
    said: list[str] = field(default_factory=list[str])
    """Messages and answers, reduced to letters and figures."""

    latest: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """The sentences of the agent's latest message."""

    def add(self, entry: Entry) -> None:
        """Add one entry of the record."""
        self.length = entry.number
        self.words.update(_NAME.findall(entry.text))
        if entry.kind in ("user", "agent", "handed") or len(entry.text) < LONGEST_ANSWER:
            self.said.append(reduced(entry.text))
        match entry.kind:
            case "user":
                self.requests.append((entry.number, entry.text))
                self.user += [(entry.number, each) for each in _sentences(entry.text)]
                self._close(closing=True)
            case "agent":
                self._close(closing=False)
                self.latest = [(entry.number, each) for each in _sentences(_FENCE.sub("\n", entry.text))]
            case "call":
                test = _TEST.search(entry.text) is not None
                self.open[entry.call] = Ran(entry.number, " ".join(entry.text.split()), "unknown", test)
                if made := _SWITCH.search(entry.text):
                    self.branch = made[1]
            case "end":
                self._ended(entry)
            case "branch":
                self.branch = entry.text
            case "tasks":
                self.tasks = tuple(each for each in entry.text.split("\n") if each.strip())
            case "handed":
                pass

    def copy(self) -> "Evidence":
        """Return the record as it stands now, to be read while this one grows."""
        return replace(
            self,
            user=[*self.user], requests=[*self.requests], agent=[*self.agent], runs=[*self.runs], open={**self.open},
            commits=[*self.commits], pulls=[*self.pulls], words={*self.words}, said=[*self.said], latest=[*self.latest]
        )  # fmt: skip

    def _close(self, *, closing: bool) -> None:
        """Move the agent's latest sentences to the earlier ones; `closing` marks the last ones before a person's
        message."""
        self.agent += [(number, each, closing) for number, each in self.latest]
        self.latest = []

    def spoken(self) -> list[tuple[int, str, bool]]:
        """Return the agent's sentences, those of its latest message among them."""
        return [*self.agent, *((number, each, True) for number, each in self.latest)]

    def _ended(self, entry: Entry) -> None:
        """Add the end of a call: the run with its outcome, and merges, commits and pull requests that it shows."""
        begun = self.open.get(entry.call)
        if begun is None or (entry.outcome == "unknown" and not entry.text.strip()):
            return
        outcome = _true_outcome(begun, entry)
        if outcome != "unknown":
            self.open.pop(entry.call, None)
        self.runs.append(Ran(entry.number, begun.command, outcome, begun.test))
        if "git" in begun.command:
            if _STOPPED.search(entry.text):
                self.half_done = True
            elif _CONCLUDED.search(entry.text) or "--abort" in begun.command:
                self.half_done = False
            self.commits += [(name[:9], subject.strip()) for _, name, subject in _HASH.findall(entry.text)]
        if "pr create" in begun.command or "mr create" in begun.command:
            self.pulls += _REQUEST.findall(entry.text)[-1:]


def evidence_of(entries: Iterable[Entry]) -> Evidence:
    """Bring a record into the form in which it is asked about."""
    record = Evidence()
    for entry in entries:
        record.add(entry)
    return record


def reduced(text: str) -> str:
    """Return the letters and figures of a text, so that marks of emphasis and line breaks do not count."""
    return re.sub(r"[\W_]+", "", text).lower()


def _true_outcome(begun: Ran, entry: Entry) -> Outcome:
    """Return the outcome of a call; of a test run by its output, unknown if a pipe may hide a failure."""
    if entry.outcome == "failed" or (begun.test and _FAILS.search(entry.text)):
        return "failed"
    if begun.test:
        if _PASSES.search(entry.text):
            return "passed"
        if _PIPED.search(_QUOTED.sub("''", begun.command)):
            return "unknown"
    return entry.outcome


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text, without very short ones."""
    return [part for each in _SENTENCE.split(text) if len(part := " ".join(each.split()).strip(" -*•#>")) >= 8]
