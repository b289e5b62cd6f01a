"""The whole story with one real agent: it plans, is approved, reviewed, handed over to a new session of its own at the
soft cap, killed in the middle of a command, resumed, and completes the work.

The reviewer is the same program in a conversation of its own; all answers come from the scripted model, whose log shows
the content of each conversation.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic

from certify import installed_programs
from certify.candidates import CertifiedAgent
from certify.play import (
    NOTE,
    NOW,
    TITLE,
    WITHIN,
    Actor,
    Witness,
    completed,
    long_command,
    rule,
    staged,
    until_it_runs,
)
from segue.model import events as e
from segue.model.status import Role, Way
from segue.model.views import WorkflowView
from segue.testing.stage import Stage

AGENT = "claude"
WINDOW_USED = 700_000
"""Tokens used of a million: above the soft cap in SETTINGS, and below the agent's own compaction."""
SETTINGS = "capacity = { warn = 0.5, fork = 0.6 }\n"
REMARK = "REMARK-OMEGA: say why the note is needed"
REASON = "ANSWER-OMEGA: we keep the note short because the reader is in a hurry"

PLAN = {
    "tasks": [
        {"id": "note", "title": "Write the note", "description": f"Write {NOTE}. (STORY-ALPHA)"},
        {"id": "text", "title": "Say something", "description": "Say it. (STORY-BETA)", "depends_on": ["note"]},
        {"id": "long", "title": "Run a long command", "description": "Run it. (STORY-GAMMA)", "depends_on": ["text"]},
    ]
}
MEMORIES = (
    ("the issue", TITLE),
    ("the tasks that are done", "✓ [text] Say something"),
    ("the file that was written", NOTE),
    ("the decision, with its reason", REASON),
)
"""Required content of the second session's first request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryRow:
    """Row of the story in `build/story.json`."""

    agent: str
    version: str
    verdict: str
    evidence: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    seconds: float = 0.0
    checked: str = ""

    def document(self) -> dict[str, object]:
        return asdict(self)


@dataclass(slots=True)
class Seen(Witness):
    """Observations of the story."""

    proposed: tuple[str, ...] = ()
    end: WorkflowView | None = None


def certify_story(candidate: CertifiedAgent, root: Path, today: str) -> StoryRow:
    """Play the story, and judge it."""
    begin = monotonic()
    with staged([candidate], root, _rules, settings=SETTINGS) as (stage, actor, log):
        seen = _perform(stage, actor, log, candidate)
    checks = list(_checks(seen))
    problems = [sentence for holds, sentence in checks if not holds]
    return StoryRow(
        agent=candidate.name,
        version=installed_programs.versions(candidate.name),
        verdict="failed" if problems else "verified",
        evidence=[sentence for holds, sentence in checks if holds],
        problems=problems,
        seconds=round(monotonic() - begin, 1),
        checked=today,
    )


def _rules(worktree: Path) -> list[object]:
    note = {"path": str(worktree / NOTE), "content": "CONTENT-BETA"}
    plan = f"This is how I would do it.\n\n```json\n{json.dumps(PLAN)}\n```"
    unhappy = {"approved": False, "severity": "high", "comments": [REMARK]}
    happy = {"approved": True, "severity": "low", "comments": []}
    return [
        rule("/interrupted in the middle[^$]*STORY-GAMMA/", {"say": "ANSWER-GAMMA"}),
        rule(f"/{NOW}[\\s\\S]*STORY-GAMMA/", long_command(worktree), {"say": "NOT-REACHED"}),
        {**rule("/asked for a review[\\s\\S]*STORY-ALPHA/", {"say": json.dumps(unhappy)}), "times": 1},
        rule("asked for a review", {"say": json.dumps(happy)}),
        rule("REMARK-OMEGA", {"say": f"{REASON}."}),
        rule("## Make a plan", {"say": plan}),
        rule("STORY-BETA", {"say": "ANSWER-BETA", "usage": {"input": WINDOW_USED}}),
        rule("STORY-ALPHA", {"write": note}, {"say": "ANSWER-ALPHA"}),
    ]


def _perform(stage: Stage, actor: Actor, log: Path, candidate: CertifiedAgent) -> Seen:
    seen = Seen()
    with seen.watching(stage, actor, log):
        stage.up()
        actor.begin(TITLE, None, agent=candidate.name, choices={"review": "same"})
        blocked = actor.until_status("blocked", within=WITHIN)
        seen.proposed = tuple(task.title for task in blocked.proposed_plan)
        actor.drain()
        stage.kill()
        stage.up()
        actor.until(e.ApprovalAwaited)
        actor.answer("approve")
        actor.allow_until(completed("note"))
        actor.allow_until(completed("text"))
        until_it_runs(actor)
        stage.kill()
        stage.up()
        actor.drain()
        seen.resumed = actor.resume()
        actor.allow_until(completed("long"))
        seen.end = actor.until_status("completed", within=WITHIN)
    return seen


def _checks(seen: Seen) -> Iterator[tuple[bool, str]]:
    yield not seen.error, f"the story came to its end{f' at: {seen.error}' if seen.error else ''}"
    titles = ", ".join(seen.proposed)
    yield len(seen.proposed) == 3, f"the agent proposed a plan ({titles or 'none'}), which waited through a kill"
    events = [record.event for record in seen.journal]
    reviews = [(each.task_id, each.feedback.approved) for each in events if isinstance(each, e.ReviewGiven)]
    wanted = [("note", False), ("note", True), ("text", True), ("long", True)]
    yield reviews == wanted, f"reviews: {', '.join(f'{task} {_word(approved)}' for task, approved in reviews)}"
    asked = any(each.contains(REMARK) and not each.contains("asked for a review") for each in seen.requests)
    yield asked, "the model's log shows that the agent was told what the reviewer said"
    writers = [each for each in events if isinstance(each, e.SessionCreated) and each.role is Role.WRITER]
    rungs = [each.rung for each in events if isinstance(each, e.CapacityReached)]
    yield len(writers) == 2 and "fork" in rungs, f"at the soft cap a second session went on by itself ({rungs})"
    yield from _second_session(seen)
    if seen.resumed is not None:
        way = f"after the kill session {seen.resumed.session_number} was resumed: {seen.resumed.way}"
        yield (seen.resumed.session_number, seen.resumed.way) == (2, Way.NATIVE), f"{way} ({seen.resumed.reason})"
    done = sum(isinstance(each, e.TaskCompleted) for each in events)
    yield seen.end is not None and done == 3, f"tasks done, each once: {done}"
    yield from seen.checks()


def _second_session(seen: Seen) -> Iterator[tuple[bool, str]]:
    request = next((each for each in seen.requests if each.tools and NOW in each.prompt), None)
    if request is None:
        yield False, "the model never got the first request of the second session"
        return
    held = [name for name, words in MEMORIES if request.contains(words)]
    missing = [name for name, _ in MEMORIES if name not in held]
    yield not missing, f"its first request holds {', '.join(held) or 'nothing'}"
    if missing:
        yield False, f"it lacks {', '.join(missing)}"
    exams = [each.event.exam for each in seen.journal if isinstance(each.event, e.ContextCarried) and each.event.exam]
    yield bool(exams), f"the exam of its context: {exams[-1].score:.0%}" if exams else "its context had no exam"


def _word(approved: bool) -> str:
    return "approved" if approved else "not approved"
