"""The verdict on one agent, with the evidence for it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from certify import installed_programs
from certify.candidates import CertifiedAgent
from certify.play import STARTED, SUMMARY, Observed
from certify.suite import Examined
from segue.drivers import Introduction
from segue.model import events as e
from segue.testing.losses import count
from segue.testing.model import LoggedRequest
from segue.testing.model.exchange import Role
from segue.testing.rehearsal.diary import DiaryEntry

ResumeVerdict = Literal["verified", "refused", "failed", "not_offered", "not_certified"]

MEMORIES: tuple[tuple[str, str, Role], ...] = (
    ("the first prompt", "REMEMBER-ALPHA", "user"),
    ("the first answer", "ANSWER-ALPHA", "assistant"),
    ("the call that wrote the file", "CONTENT-BETA", "assistant"),
    ("the answer after it", "ANSWER-BETA", "assistant"),
    ("the command that was torn", STARTED, "assistant"),
    ("the answer after the first resume", "ANSWER-GAMMA", "assistant"),
)
"""Required content of an agent's request, with its role; the last one from the second resume on."""

ANSWERS = ("ANSWER-ALPHA", "ANSWER-BETA", "ANSWER-GAMMA", "ANSWER-DELTA", "ANSWER-EPSILON")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Row of an agent in `build/certify.json`."""

    agent: str
    version: str
    way: str
    native_resume: ResumeVerdict
    reason: str = ""
    """Reason of a missing certification."""
    evidence: list[str]
    problems: list[str] = field(default_factory=list[str])
    reported: str = ""
    """Name and version that the agent reports."""
    capabilities: list[str] = field(default_factory=list[str])
    resume_seconds: list[float] = field(default_factory=list[float])
    after_compaction: ResumeVerdict | Literal["not_tried"] = "not_tried"
    """ResumeVerdict on native resume after the agent compacted its conversation."""
    seconds: float = 0.0
    checked: str = ""

    def document(self) -> dict[str, object]:
        return asdict(self)


def judge(candidate: CertifiedAgent, seen: Observed, diary: list[DiaryEntry], today: str) -> Row:
    """Judge a play: a check that holds is evidence, another one a problem."""
    started = [record.event for record in seen.journal if isinstance(record.event, e.AgentStarted)]
    checks = list(_checks(candidate, seen, diary))
    problems = [sentence for holds, sentence in checks if not holds]
    ways = [resumed.way for resumed in seen.resumes]
    return Row(
        agent=candidate.name,
        version=installed_programs.versions(candidate.name),
        way=", ".join(dict.fromkeys(ways)) or "none",
        native_resume=_verdict(candidate, seen, started, problems),
        evidence=[sentence for holds, sentence in checks if holds],
        problems=problems,
        reported=f"{started[0].name} {started[0].version}" if started else "",
        capabilities=list(started[0].capabilities) if started else [],
        resume_seconds=seen.seconds,
        checked=today,
    )


def _verdict(
    candidate: CertifiedAgent, seen: Observed, started: list[e.AgentStarted], problems: list[str]
) -> ResumeVerdict:
    if started and not {"load", "resume"} & set(started[0].capabilities):
        return "not_offered"
    if problems:
        return "failed"
    return "verified" if candidate.native else "refused"


def with_suite(row: Row, examined: Examined) -> Row:
    """Add the result of the tests that need the agent's real program."""
    sentence = f"{examined.what}: {examined.summary}"
    if examined.passed:
        return replace(row, evidence=[*row.evidence, *examined.seen, sentence])
    return replace(row, native_resume="failed", problems=[*row.problems, sentence])


def unplayed(candidate: CertifiedAgent, introduction: Introduction, today: str) -> Row:
    """Make the row of an agent that can only be started here."""
    return Row(
        agent=candidate.name,
        version=installed_programs.versions(candidate.name),
        way="native" if introduction.capabilities.native else "context",
        native_resume="not_certified",
        reason=candidate.lacking,
        evidence=["it starts, and says what it is and can"],
        reported=f"{introduction.name} {introduction.version}",
        capabilities=list(introduction.capabilities.names()),
        checked=today,
    )


def without_what_is_lacking(row: Row, candidate: CertifiedAgent) -> Row:
    """Withdraw the verdict if a stand-in replaced the vendor: it shows the agent's behaviour only."""
    if not candidate.lacking or row.native_resume != "verified":
        return row
    reason = f"{candidate.lacking}; verified with a stand-in for it"
    return replace(row, native_resume="not_certified", reason=reason)


def with_compaction(row: Row, seen: Observed) -> Row:
    """Add the result of the short play."""
    checks = list(_compacted(seen))
    problems = [f"after compaction: {sentence}" for holds, sentence in checks if not holds]
    evidence = [f"after compaction: {sentence}" for holds, sentence in checks if holds]
    return replace(
        row,
        after_compaction="failed" if problems else "verified",
        evidence=[*row.evidence, *evidence],
        problems=[*row.problems, *problems],
    )


PlayCheck = tuple[bool, str]


def _compacted(seen: Observed) -> Iterator[PlayCheck]:
    yield _ended(seen)
    asked = [each.number for each in seen.requests if SUMMARY in each.answer]
    yield bool(asked), f"the agent asked the model for a summary: requests {', '.join(map(str, asked)) or 'none'}"
    request = _first_prompted(seen.requests[seen.marks[0] :]) if seen.marks else None
    held = request is not None and request.contains(SUMMARY) and request.remembers(STARTED, "assistant")
    yield held, "the first request after the resume holds the summary and the command"
    yield [resumed.way for resumed in seen.resumes] == ["native"], "the resume went the native way"
    yield not seen.orphans, "no process was left"


def _checks(candidate: CertifiedAgent, seen: Observed, diary: list[DiaryEntry]) -> Iterator[PlayCheck]:
    yield _ended(seen)
    yield from _torn(seen)
    yield from _resumed(candidate, seen)
    yield from _remembered(candidate, seen)
    if not candidate.native:
        survived = f"the file of its conversation ({', '.join(seen.files) or 'none'}) is byte for byte what it was"
        yield bool(seen.files) and not seen.changed, f"{survived} at the first kill"
    yield from _once(seen, diary)
    alive = ", ".join(map(str, seen.trees)) or "none"
    yield not seen.orphans, f"processes in the tree at each kill: {alive}; left afterwards: {len(seen.orphans)}"
    yield not seen.faults, f"the journal's chain holds{''.join(f': {fault}' for fault in seen.faults)}"


def _ended(seen: Observed) -> PlayCheck:
    return not seen.error, f"the play ended{f' at: {seen.stopped_at}: {seen.error}' if seen.error else ''}"


def _torn(seen: Observed) -> Iterator[PlayCheck]:
    """PlayCheck that the kills occurred at the intended moments."""
    sessions = [record.session_id for record in seen.journal if record.session_id is not None]
    first = [record.event for record in seen.journal if record.run == 1 and record.session_id == sessions[0]]
    called = [event.call_id for event in first if isinstance(event, e.ToolCalled | e.PermissionRequested)]
    finished = {event.call_id for event in first if isinstance(event, e.ToolFinished)}
    torn = {call for call in called if call not in finished}
    yield torn == set(called[-1:]) and bool(torn), "the first kill came in the middle of the command"
    told = {event.call_id for event in first if isinstance(event, e.ToolCalled)}
    yield torn <= told, "the journal names the command as a call whose outcome is unknown"
    if len(seen.resumes) > 1:
        answers = [record.event.outcome for record in seen.journal if isinstance(record.event, e.PermissionAnswered)]
        once = answers.count("interrupted") == 1
        yield once, "the second kill came while a permission was open, and Segue closed it as interrupted"
        yield not seen.later_ran, "the command that nobody allowed has not run"


def _resumed(candidate: CertifiedAgent, seen: Observed) -> Iterator[PlayCheck]:
    tokens = {record.event.token for record in seen.journal if isinstance(record.event, e.TokenCaptured)}
    expected = 1 if candidate.native else 1 + len(seen.resumes)
    if seen.resumes:
        yield len(tokens) == expected, f"conversation tokens in the journal: {len(tokens)}"
    for number, resumed in enumerate(seen.resumes, 1):
        yield resumed.way == _way(candidate), f"resume {number} went the way: {resumed.way} ({resumed.reason})"


def _way(candidate: CertifiedAgent) -> str:
    """Return the expected way; an agent that loses conversations at loading begins with a compiled context."""
    return "native" if candidate.native else "context"


def _remembered(candidate: CertifiedAgent, seen: Observed) -> Iterator[PlayCheck]:
    """PlayCheck the content of each resumed turn's first request in the model's log."""
    for number, mark in enumerate(seen.marks, 1):
        request = _first_prompted(seen.requests[mark:])
        if request is None:
            yield False, f"resume {number}: the model never got the prompt"
            continue
        expected = [each for each in MEMORIES[: None if number > 1 else -1] if candidate.native or each != MEMORIES[0]]
        held = [name for name, words, role in expected if _holds(candidate, request, words, role)]
        missing = [name for name, _, _ in expected if name not in held]
        place = "before the new prompt," if candidate.native else "in the context before the request,"
        where = f"resume {number}: request {request.number} to the model, {place}"
        yield bool(held), f"{where} holds {', '.join(held) or 'nothing'}"
        if missing:
            yield False, f"{where} lacks {', '.join(missing)}"


def _holds(candidate: CertifiedAgent, request: LoggedRequest, words: str, role: Role) -> bool:
    return request.remembers(words, role) if candidate.native else request.contains(words)


def _first_prompted(requests: list[LoggedRequest]) -> LoggedRequest | None:
    """Find the request for the task: it offers tools, unlike requests for titles."""
    return next((each for each in requests if each.tools and "interrupted in the middle" in each.prompt), None)


def _once(seen: Observed, diary: list[DiaryEntry]) -> Iterator[PlayCheck]:
    counted = count(seen.journal, [], diary)
    said = "\n".join(record.event.text for record in seen.journal if isinstance(record.event, e.AgentMessage))
    answers = {words: said.count(words) for words in ANSWERS if words in said}
    calls = Counter(record.event.call_id for record in seen.journal if isinstance(record.event, e.ToolCalled))
    twice = [words for words, times in answers.items() if times > 1] + [call for call, n in calls.items() if n > 1]
    yield not twice, f"answers and tool calls that stand twice in the journal: {', '.join(twice) or 'none'}"
    yield not counted.lost, f"events acknowledged and lost: {len(counted.lost)}"
    yield not counted.duplicated, f"things Segue did twice: {len(counted.duplicated)}"
