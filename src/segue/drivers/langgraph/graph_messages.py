"""Messages of a graph: calls, results, and calls without one."""

from collections.abc import Iterator
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from segue.drivers.langgraph.graphs import MESSAGES

INTERRUPTED = "The work stopped before this call's result was recorded. Its effect may be absent, partial or complete."


def fields_of(value: object) -> dict[str, Any]:
    """Return a value if it is a mapping, and an empty one for any other."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def messages_in(update: object) -> Iterator[BaseMessage]:
    """Yield the messages in a node's result, under whatever key."""
    if isinstance(update, BaseMessage):
        yield update
    elif isinstance(update, list | tuple):
        for each in cast(list[object], update):
            yield from messages_in(each)
    else:
        for each in fields_of(update).values():
            yield from messages_in(each)


def calls_in(messages: list[BaseMessage]) -> list[ToolCall]:
    """Return all tool calls in messages."""
    return [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]


def answered_in(messages: list[BaseMessage]) -> set[str]:
    """Return the ids of the calls that have a result in messages."""
    return {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


def open_calls(values: object) -> list[ToolCall]:
    """Return the calls of a model's last answer that have no result."""
    messages = list(messages_in(fields_of(values).get(MESSAGES)))
    last = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
    answered = answered_in(messages)
    return [call for call in last.tool_calls if call["id"] not in answered] if last else []


def unknown(call: ToolCall) -> ToolMessage:
    """Return the failed result of a call that was interrupted."""
    return ToolMessage(INTERRUPTED, tool_call_id=call["id"] or "", name=call["name"], status="error")
