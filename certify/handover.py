"""A play for two real agents: one begins, is paused, its server is killed, and the other continues from a context.

The first answers with text and writes a file. The second has no other source than the context: its knowledge is in its
first request to the model, which is in the model's log.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from certify import installed_programs
from certify.candidates import CANDIDATES, CertifiedAgent
from certify.play import NOTE, NOW, TITLE, WITHIN, Actor, Witness, completed, rule, staged
from segue.model import events as e
from segue.model.findings import ExamResult
from segue.testing.model import read_log
from segue.testing.stage import Stage

PAIRS = (("claude", "codex"), ("codex", "claude"))
AFTER = "after-zeta.txt"

PLAN = f"""
- id: text
  title: Answer with text
  description: REMEMBER-ALPHA and say so.
- id: file
  title: Write a file
  description: Write {NOTE}. (FILE-BETA)
  depends_on: text
- id: follow
  title: Go on with the work of the other
  description: Write {AFTER}. (FOLLOW-ZETA)
  depends_on: file
"""

MEMORIES = (
    ("the issue", TITLE),
    ("the tasks that are done", "✓ [file] Write a file"),
    ("the file that was written", NOTE),
    ("the first answer, with its reason", "ANSWER-ALPHA: we use tabs instead of spaces because the parser is older"),
    ("the answer after the file", "ANSWER-BETA"),
    ("why the work was stopped", "the other one goes on"),
)
"""Required content of the successor's first request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverRow:
    """Row of a hand-over in `build/handovers.json`."""

    before: str
    after: str
    versions: str
    verdict: str
    score: float | None
    tokens: int | None
    evidence: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    checked: str = ""

    def document(self) -> dict[str, object]:
        return asdict(self)


@dataclass(slots=True)
class Seen(Witness):
    """Observations of a hand-over."""

    mark: int = 0
    written: bool = False


def certify_handover(before: CertifiedAgent, after: CertifiedAgent, root: Path, today: str) -> HandoverRow:
    """Play the hand-over, and judge it."""
    with staged([before, after], root, _rules) as (stage, actor, log):
        seen = _perform(stage, actor, log, before, after)
    checks = list(_checks(seen, after))
    problems = [sentence for holds, sentence in checks if not holds]
    exam = _exam(seen)
    return HandoverRow(
        before=before.name,
        after=after.name,
        versions=f"{installed_programs.versions(before.name)} → {installed_programs.versions(after.name)}",
        verdict="failed" if problems else "verified",
        score=round(exam.score, 3) if exam else None,
        tokens=exam.tokens if exam else None,
        evidence=[sentence for holds, sentence in checks if holds],
        problems=problems,
        checked=today,
    )


def pairs(chosen: set[str]) -> Iterator[tuple[CertifiedAgent, CertifiedAgent]]:
    """Yield the hand-overs between the chosen agents."""
    for before, after in PAIRS:
        if {before, after} <= chosen:
            yield CANDIDATES[before], CANDIDATES[after]


def _rules(worktree: Path) -> list[object]:
    note = {"path": str(worktree / NOTE), "content": "CONTENT-BETA"}
    later = {"path": str(worktree / AFTER), "content": "CONTENT-ZETA"}
    return [
        rule(f"/{NOW}[\\s\\S]*FOLLOW-ZETA/", {"write": later}, {"say": "ANSWER-ZETA"}),
        rule("FILE-BETA", {"write": note}, {"say": "ANSWER-BETA"}),
        rule("REMEMBER-ALPHA", {"say": f"{MEMORIES[3][1]}."}),
    ]


def _perform(stage: Stage, actor: Actor, log: Path, before: CertifiedAgent, after: CertifiedAgent) -> Seen:
    seen = Seen()
    with seen.watching(stage, actor, log):
        stage.up()
        actor.begin(TITLE, PLAN, agent=before.name)
        actor.allow_until(lambda event: isinstance(event, e.TaskStarted) and event.task_id == "file")
        actor.pause(MEMORIES[-1][1])
        actor.allow_until(completed("file"))
        actor.until_status("paused", within=WITHIN)
        stage.kill()
        stage.up()
        actor.drain()
        seen.mark = len(read_log(log))
        seen.resumed = actor.resume(agent=after.name)
        actor.allow_until(completed("follow"))
        actor.until_status("completed", within=WITHIN)
        seen.written = "CONTENT-ZETA" in (Path(actor.view.worktree or "") / AFTER).read_text()
    return seen


def _exam(seen: Seen) -> ExamResult | None:
    carried = [record.event for record in seen.journal if isinstance(record.event, e.ContextCarried)]
    return carried[-1].exam if carried else None


def _checks(seen: Seen, after: CertifiedAgent) -> Iterator[tuple[bool, str]]:
    yield not seen.error, f"the play ended{f' at: {seen.error}' if seen.error else ''}"
    if seen.resumed is None:
        return
    way = f"the work went on in session {seen.resumed.session_number} with {seen.resumed.agent}, by {seen.resumed.way}"
    yield (seen.resumed.agent, seen.resumed.way) == (after.name, "context"), f"{way} ({seen.resumed.reason})"
    request = next((each for each in seen.requests[seen.mark :] if each.tools and "FOLLOW-ZETA" in each.prompt), None)
    if request is None:
        yield False, "the model never got the successor's first request"
        return
    held = [name for name, words in MEMORIES if request.contains(words)]
    missing = [name for name, _ in MEMORIES if name not in held]
    yield not missing, f"the successor's first request holds {', '.join(held) or 'nothing'}"
    if missing:
        yield False, f"it lacks {', '.join(missing)}"
    exam = _exam(seen)
    yield exam is not None, "the exam of the context stands in the journal" + (f": {exam.score:.0%}" if exam else "")
    yield seen.written, "the successor did the next task and none that was done"
    yield from seen.checks()
