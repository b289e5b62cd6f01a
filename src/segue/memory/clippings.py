"""Searchable text of the journal: a table from kinds of events to their text. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from segue.model import events as e
from segue.model.checkpoint import Checkpoint
from segue.model.findings import Decision, ErrorRecord, Findings
from segue.model.ids import CheckpointId, Seq, SessionId
from segue.model.memories import Clipping, ClippingKind
from segue.model.plan import Plan

RULES = 2
"""Version of these rules; a new version makes the index clip all events again."""

PIECE = 3_000
"""Maximum characters of one clipping; longer messages are split into several."""
MOST_PIECES = 12
END = 1_000
"""Characters that are kept from the end of a long output, where its outcome is."""

_FOR_TERMINALS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

Words = Iterator[tuple[ClippingKind, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Data that events refer to without containing it."""

    checkpoints: Mapping[CheckpointId, Checkpoint] = field(default_factory=dict[CheckpointId, Checkpoint])
    studies: Mapping[Seq, Findings] = field(default_factory=dict[Seq, Findings])
    """Findings of the study before, for each event of a study."""
    sessions: Mapping[Seq, SessionId | None] = field(default_factory=dict[Seq, SessionId | None])
    """Session of each event that findings come from."""


def clip(record: e.Record, known: Known) -> list[Clipping]:
    """Return the clippings of an event, without terminal sequences; most kinds have none."""
    if isinstance(record.event, e.SnapshotStudied):
        return list(_studied(record, record.event.findings, known))
    return [
        Clipping(kind=kind, text=text, at=record.at, session_id=record.session_id, seq=record.seq)
        for kind, words in _words(record.event, known)
        if (text := _readable(words))
    ]


def _readable(words: str) -> str:
    """Remove terminal sequences, and NULs, which PostgreSQL cannot store in a text."""
    return _FOR_TERMINALS.sub("", words).replace("\0", " ").strip()


def _words(event: e.Event, known: Known) -> Words:
    """Yield kind and text of an event's clippings, none for most kinds; a checkpoint's text is in `known`."""
    if isinstance(event, e.CheckpointCreated):
        if (checkpoint := known.checkpoints.get(event.checkpoint_id)) is not None:
            yield "checkpoint", _checkpoint(checkpoint)
    elif (words := _WORDS.get(type(event))) is not None:
        yield from words(event)


def _said(kind: ClippingKind) -> Callable[[Any], Words]:
    """Return a function that yields all the text of an event, in pieces."""

    def words(event: e.AgentMessage) -> Words:
        for piece in _pieces(event.text):
            yield kind, piece

    return words


def _created(event: e.WorkflowCreated) -> Words:
    """Yield the issue's text with the titles of the plan's tasks."""
    tasks = _tasks(event.plan) if event.plan else ""
    yield "issue", _cut(f"{event.issue.title}\n{event.issue.description}\n{tasks}")


def _adopted(event: e.PlanAdopted) -> Words:
    """Yield the titles of the adopted plan's tasks."""
    yield "issue", _cut(_tasks(event.plan))


def _tasks(plan: Plan) -> str:
    """List the titles of the plan's tasks."""
    return "\n".join(f"- {task.title}" for task in plan.tasks)


def _called(event: e.ToolCalled) -> Words:
    """Yield a tool call's title, paths and input, shortened."""
    given = json.dumps(event.input, ensure_ascii=False) if event.input else ""
    yield "tool", _cut("\n".join((event.title, *event.paths, given)))


def _finished(event: e.ToolFinished) -> Words:
    """Yield exactly one pair: the kind (error if the call failed) and the shortened output, which may be empty."""
    yield "error" if event.status == "failed" else "output", _cut(event.output)


def _todo(event: e.TodoUpdated) -> Words:
    """Yield the entries in progress of a to-do list; agents rewrite the whole list each time."""
    yield "todo", "\n".join(entry.content for entry in event.entries if entry.status == "in_progress")


def _answered(event: e.PermissionAnswered) -> Words:
    """Yield a person's answer to a permission request, if it has a reason."""
    if event.by == "user" and event.reason:
        yield "decision", f"{event.outcome}: {event.reason}"


def _studied(record: e.Record, findings: Findings, known: Known) -> Iterator[Clipping]:
    """Yield the findings of a study that the study before had not, each at the event that it comes from."""
    before = known.studies.get(record.seq)
    told = {text for _, _, text in _findings(before)} if before else set[str]()
    for kind, finding, text in _findings(findings):
        if text and text not in told:
            seq = record.seq if finding.seq is None else finding.seq
            session_id = known.sessions.get(seq, record.session_id)
            yield Clipping(kind=kind, text=text, at=finding.timestamp, session_id=session_id, seq=seq)


def _findings(findings: Findings) -> Iterator[tuple[ClippingKind, Decision | ErrorRecord, str]]:
    """Yield each decision and error with its kind and its text."""
    for decision in findings.decisions:
        yield "decision", decision, _readable(_cut(_decision(decision)))
    for error in findings.errors:
        yield "error", error, _readable(_cut(_error(error)))


def _decision(decision: Decision) -> str:
    """Format a decision: its description, rationale, alternatives and quote."""
    taken_back = "(taken back later)" if decision.superseded_by else ""
    lines = (decision.description, taken_back, decision.rationale, *decision.alternatives_considered, decision.quote)
    return "\n".join(dict.fromkeys(line for line in lines if line))


def _error(error: ErrorRecord) -> str:
    """Format an error: its message, context and resolution."""
    named = error.error_type in error.error_message
    message = error.error_message if named else f"{error.error_type}: {error.error_message}"
    lines = (message, error.context, error.resolution, error.resolution_notes)
    return "\n".join(line for line in lines if line)


def _went_wrong(*fields: str) -> Callable[[Any], Words]:
    """Return a function that yields these fields of an event as an error."""

    def words(event: object) -> Words:
        yield "error", _cut("\n".join(str(getattr(event, name)) for name in fields))

    return words


_WORDS: Mapping[type[Any], Callable[[Any], Words]] = {
    e.WorkflowCreated: _created,
    e.PlanAdopted: _adopted,
    e.PromptQueued: _said("prompt"),
    e.UserSpoke: _said("prompt"),
    e.AgentMessage: _said("message"),
    e.AgentThought: _said("thought"),
    e.AgentSummarised: _said("summary"),
    e.ToolCalled: _called,
    e.ToolFinished: _finished,
    e.TodoUpdated: _todo,
    e.PermissionAnswered: _answered,
    e.TurnFailed: _went_wrong("message"),
    e.TaskFailed: _went_wrong("reason"),
    e.IncidentLogged: _went_wrong("what", "detail"),
    e.Warned: _went_wrong("message"),
}


def _checkpoint(checkpoint: Checkpoint) -> str:
    """Format a checkpoint: its reason, summary, tasks, next steps, changed files and open calls, shortened."""
    changes = checkpoint.git.changes if checkpoint.git else ()
    lines = (
        f"{checkpoint.id} ({checkpoint.type.replace('_', ' ')})",
        checkpoint.reason,
        checkpoint.summary,
        checkpoint.step,
        *(f"- {task.title}: {task.status}" for task in checkpoint.tasks),
        *(f"next: {step}" for step in checkpoint.next_steps),
        *(f"{change.action} {change.path}" for change in changes),
        *(f"unknown outcome: {call.title}" for call in checkpoint.open_calls),
        checkpoint.problem,
    )
    return _cut("\n".join(line for line in lines if line))


def _pieces(text: str) -> Iterator[str]:
    """Split a text into pieces, at the end of a line where possible; after the last allowed piece, the rest is left
    out."""
    for _ in range(MOST_PIECES):
        if len(text) <= PIECE:
            break
        end = text.rfind("\n", PIECE // 2, PIECE) + 1 or PIECE
        yield text[:end]
        text = text[end:]
    yield text[:PIECE]


def _cut(text: str) -> str:
    """Shorten a long text in the middle; its beginning and end stay."""
    return text if len(text) <= PIECE else f"{text[: PIECE - END]}\n…\n{text[-END:]}"
