"""What of the journal can be found again: a table from kinds of events to their words. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from segue.model import events as e
from segue.model.checkpoint import Checkpoint
from segue.model.findings import Decision, ErrorRecord
from segue.model.ids import CheckpointId
from segue.model.memories import Clipping, ClippingKind

RULES = 1
"""Counted up whenever the same events would be clipped differently: what was clipped before is then clipped again."""

PIECE = 3_000
"""Characters of one clipping; what people and agents say is cut into several."""
MOST_PIECES = 12
END = 1_000
"""Characters of a long output that are kept from its end, where its outcome stands."""

_FOR_TERMINALS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

Checkpoints = Mapping[CheckpointId, Checkpoint]
Words = Iterator[tuple[ClippingKind, str]]


def clip(record: e.Record, checkpoints: Checkpoints) -> list[Clipping]:
    """The clippings of one event; none of most kinds."""
    return [
        Clipping(kind=kind, text=text, at=record.at, session_id=record.session_id, seq=record.seq)
        for kind, words in _words(record.event, checkpoints)
        if (text := _readable(words))
    ]


def _readable(words: str) -> str:
    """Without what only a terminal understands, and without NULs, which no text of PostgreSQL's can hold."""
    return _FOR_TERMINALS.sub("", words).replace("\0", " ").strip()


def _words(event: e.Event, checkpoints: Checkpoints) -> Words:
    if isinstance(event, e.CheckpointCreated):
        if (checkpoint := checkpoints.get(event.checkpoint_id)) is not None:
            yield "checkpoint", _checkpoint(checkpoint)
    elif (words := _WORDS.get(type(event))) is not None:
        yield from words(event)


def _said(kind: ClippingKind) -> Callable[[Any], Words]:
    """Somebody's words, all of them."""

    def words(event: e.AgentMessage) -> Words:
        for piece in _pieces(event.text):
            yield kind, piece

    return words


def _created(event: e.WorkflowCreated) -> Words:
    tasks = "\n".join(f"- {task.title}" for task in event.plan.tasks)
    yield "issue", _cut(f"{event.issue.title}\n{event.issue.description}\n{tasks}")


def _called(event: e.ToolCalled) -> Words:
    given = json.dumps(event.input, ensure_ascii=False) if event.input else ""
    yield "tool", _cut("\n".join((event.title, *event.paths, given)))


def _finished(event: e.ToolFinished) -> Words:
    yield "error" if event.status == "failed" else "output", _cut(event.output)


def _todo(event: e.TodoUpdated) -> Words:
    """Agents write the whole list again and again; what they are at now is what a search can use."""
    yield "todo", "\n".join(entry.content for entry in event.entries if entry.status == "in_progress")


def _answered(event: e.PermissionAnswered) -> Words:
    if event.by == "user" and event.reason:
        yield "decision", f"{event.outcome}: {event.reason}"


def _studied(event: e.SnapshotStudied) -> Words:
    for decision in event.findings.decisions:
        yield "decision", _cut(_decision(decision))
    for error in event.findings.errors:
        yield "error", _cut(_error(error))


def _decision(decision: Decision) -> str:
    taken_back = "(taken back later)" if decision.superseded_by else ""
    lines = (decision.description, taken_back, decision.rationale, *decision.alternatives_considered, decision.quote)
    return "\n".join(dict.fromkeys(line for line in lines if line))


def _error(error: ErrorRecord) -> str:
    lines = (f"{error.error_type}: {error.error_message}", error.context, error.resolution, error.resolution_notes)
    return "\n".join(line for line in lines if line)


def _went_wrong(*fields: str) -> Callable[[Any], Words]:
    """What the user should have seen, in the words of these fields."""

    def words(event: object) -> Words:
        yield "error", _cut("\n".join(str(getattr(event, name)) for name in fields))

    return words


_WORDS: Mapping[type[Any], Callable[[Any], Words]] = {
    e.WorkflowCreated: _created,
    e.PromptQueued: _said("prompt"),
    e.UserSpoke: _said("prompt"),
    e.AgentMessage: _said("message"),
    e.AgentThought: _said("thought"),
    e.AgentSummarised: _said("summary"),
    e.ToolCalled: _called,
    e.ToolFinished: _finished,
    e.TodoUpdated: _todo,
    e.PermissionAnswered: _answered,
    e.SnapshotStudied: _studied,
    e.TurnFailed: _went_wrong("message"),
    e.TaskFailed: _went_wrong("reason"),
    e.IncidentLogged: _went_wrong("what", "detail"),
    e.Warned: _went_wrong("message"),
}


def _checkpoint(checkpoint: Checkpoint) -> str:
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
    """Pieces that end where a line ends, if one does in their second half."""
    for _ in range(MOST_PIECES):
        if len(text) <= PIECE:
            break
        end = text.rfind("\n", PIECE // 2, PIECE) + 1 or PIECE
        yield text[:end]
        text = text[end:]
    yield text[:PIECE]


def _cut(text: str) -> str:
    return text if len(text) <= PIECE else f"{text[: PIECE - END]}\n…\n{text[-END:]}"
