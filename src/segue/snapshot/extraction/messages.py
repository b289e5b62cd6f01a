"""What was said, as somebody gets it who reads along: the latest messages, each in bounds and with its event."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from segue.model import events as e
from segue.model.ids import Seq, TaskId
from segue.model.transcript import UserSaid
from segue.snapshot.facts.journal import lines_of
from segue.snapshot.facts.outcomes import tests_failed

Role = Literal["user", "agent", "tool"]

KINDS = (
    "workflow.created",
    "task.started",
    "prompt.queued",
    "permission.answered",
    "user.spoke",
    "agent.message",
    "tool.finished",
    "agent.reported",
)
"""The events that messages and reports are read from."""
MOST_MESSAGES = 50
LONGEST_MESSAGE = 4_000
LONGEST_CONVERSATION = 60_000
"""Characters of all messages together; the oldest are left out first."""
CUT = " […] "


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One message, with the event it begins in."""

    seq: Seq
    role: Role
    text: str
    at: datetime
    task_id: TaskId | None = None


def spoken_in(records: Iterable[e.Record]) -> list[Spoken]:
    """Return the messages of a journal, oldest first: of people, of the agent, and the output of failed tools or
    tests."""
    found: list[Spoken] = []
    task: TaskId | None = None
    before: e.Record | None = None
    for record in records:
        if isinstance(record.event, e.TaskStarted):
            task = record.event.task_id
        for role, text in _said(record):
            if before is not None and _goes_on(before, record):
                found[-1] = replace(found[-1], text=found[-1].text + text)
            else:
                found.append(Spoken(seq=record.seq, role=role, text=text, at=record.at, task_id=task))
        before = record
    return found


def reports_in(records: Iterable[e.Record]) -> list[str]:
    """Return the agent's answers to report requests since the last task began, oldest first."""
    found: list[str] = []
    for record in records:
        match record.event:
            case e.TaskStarted():
                found.clear()
            case e.AgentReported(text=text):
                found.append(text)
            case _:
                pass
    return found


def _goes_on(before: e.Record, record: e.Record) -> bool:
    """Return True if both records are pieces of one streamed message."""
    both = isinstance(before.event, e.AgentMessage) and isinstance(record.event, e.AgentMessage)
    return both and before.seq + 1 == record.seq


def _said(record: e.Record) -> Iterator[tuple[Role, str]]:
    """Yield the role and text of each message in a record; of tools only failures."""
    for line in lines_of([record]):
        match line.said:
            case UserSaid(text=text):
                yield "user", text
            case e.AgentMessage(text=text):
                yield "agent", text
            case e.ToolFinished(status=status, output=output) if status == "failed" or tests_failed(output):
                yield "tool", output
            case _:
                pass


def recent(messages: Sequence[Spoken], most: int = MOST_MESSAGES) -> list[Spoken]:
    """Return the latest messages that are not empty, oldest first and long ones cut, as many as there is room for."""
    spoken = [message for message in messages if message.text.strip()][-most:]
    room = LONGEST_CONVERSATION
    kept: list[Spoken] = []
    for message in reversed(spoken):
        cut = replace(message, text=_cut(message.text.strip()))
        room -= len(cut.text)
        if room < 0:
            break
        kept.append(cut)
    return kept[::-1]


def _cut(text: str) -> str:
    """Return a long text as its beginning and end, since the end shows the outcome."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = (LONGEST_MESSAGE - len(CUT)) // 2
    return text[:half] + CUT + text[-half:]
