"""A workflow's journal as the messages that went to and fro. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from segue.model import events as e
from segue.model.ids import PromptId
from segue.model.snapshots import Message
from segue.snapshot.facts.text import joined

KINDS = ("prompt.sent", "user.spoke", "agent.message", "agent.summarised", "tool.called", "turn.ended")
"""What was said, and what ends a message of the agent's."""


def messages(records: Iterable[e.Record], words: Mapping[PromptId, e.PromptQueued]) -> tuple[Message, ...]:
    """Return the messages of these records in order; the pieces of an agent's message are joined."""
    told: list[Message] = []
    before: e.Record | None = None
    for record in records:
        message = _said(record, words)
        if message is not None and before is not None and _goes_on(before, record):
            told[-1] = replace(told[-1], text=joined(told[-1].text, message.text))
        elif message is not None:
            told.append(message)
        before = record
    return tuple(told)


def _goes_on(before: e.Record, record: e.Record) -> bool:
    """Return True if both records are pieces of one message of the agent."""
    spoken = isinstance(before.event, e.AgentMessage) and isinstance(record.event, e.AgentMessage)
    return spoken and before.session_id == record.session_id


def _said(record: e.Record, words: Mapping[PromptId, e.PromptQueued]) -> Message | None:
    """Return the message of one record, or None; a sent prompt's text comes from `words`."""
    match record.event:
        case e.PromptSent(prompt_id=prompt_id):
            return replace(_message(record, "user", words[prompt_id].text), task_id=words[prompt_id].task_id)
        case e.UserSpoke(text=text):
            return _message(record, "user", text)
        case e.AgentMessage(text=text) | e.AgentSummarised(text=text):
            return _message(record, "agent", text)
        case _:
            return None


def _message(record: e.Record, role: Literal["user", "agent"], text: str) -> Message:
    """Return a record's message with this role and text."""
    return Message(seq=record.seq, at=record.at, session_id=record.session_id, role=role, text=text)
