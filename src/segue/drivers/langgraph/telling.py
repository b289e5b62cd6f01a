"""Tells what a graph does while it runs: its messages, the calls of its tools, and what it used."""

import json
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Any

from acp import (
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
)
from acp.schema import Usage, UsageUpdate
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall, ToolMessage

from segue.drivers.langgraph.messages import answered_in, calls_in, messages_in
from segue.drivers.text import shortened

LONGEST_TITLE = 200
Tell = Callable[[Any], Awaitable[None]]


class Telling:
    """One turn, told as it happens. What stood in the thread before it is no news."""

    def __init__(self, tell: Tell, known: object, *, nodes: bool) -> None:
        self._tell = tell
        self._nodes = nodes
        """Whether the graph's own nodes are told as calls: a graph without messages has nothing else to show."""
        messages = list(messages_in(known))
        self._called = {call["id"] for call in calls_in(messages)}
        self._finished = answered_in(messages)
        self._open: set[str] = set()
        self._tasks: dict[str, str] = {}
        self._speaker: str | None = None
        """The message whose words were told last, if nothing happened since."""
        self._tokens = _Tokens()

    async def hear(self, part: dict[str, Any]) -> None:
        """One part of LangGraph's stream."""
        data = part["data"]
        match part["type"]:
            case "messages":
                await self._message(data[0])
            case "updates":
                for message in messages_in(data):
                    await self._calls(message)
            case "tasks" if self._nodes and not part["ns"]:
                await self._node(data)
            case _:
                pass

    async def say_aside(self, text: str) -> None:
        self._speaker = None
        await self._tell(update_agent_thought_text(f"{text}\n"))

    async def answered(self, call_id: str, *, allowed: bool, words: str) -> None:
        """A question that was no call of a tool ends with its answer; the others end with the tool."""
        if call_id not in self._called:
            said = words or ("yes" if allowed else "no")
            await self._end(call_id, said, failed=not allowed)

    async def broken_off(self, how: str) -> None:
        words = f"The turn {how} before this call was finished. Its effect may be absent or partial."
        for call_id in tuple(self._open):
            await self._end(call_id, words, failed=True)

    def usage(self) -> Usage | None:
        return self._tokens.of_the_turn()

    # ── messages ────────────────────────────────────────────────────────────────────────────────────

    async def _message(self, message: BaseMessage) -> None:
        if isinstance(message, AIMessage):
            await self._speak(message)
            if (context := self._tokens.count(message)) is not None:
                await self._tell(UsageUpdate(session_update="usage_update", used=context, size=0))
        # The calls in a part of a message are not whole yet; they come with the node's update.
        if not isinstance(message, AIMessageChunk):
            await self._calls(message)

    async def _speak(self, message: AIMessage) -> None:
        for block in message.content_blocks:
            if block["type"] == "text" and block["text"]:
                another = self._speaker is not None and self._speaker != message.id
                self._speaker = message.id
                await self._tell(update_agent_message_text(f"\n\n{block['text']}" if another else block["text"]))
            elif block["type"] == "reasoning" and block.get("reasoning"):
                await self._tell(update_agent_thought_text(block.get("reasoning", "")))

    # ── calls ───────────────────────────────────────────────────────────────────────────────────────

    async def _calls(self, message: BaseMessage) -> None:
        match message:
            case AIMessage():
                for call in message.tool_calls:
                    if call["id"] and call["id"] not in self._called:
                        await self._begin(call["id"], call_title(call), call["args"])
            case ToolMessage() if message.tool_call_id not in self._finished:
                await self._end(message.tool_call_id, message.text, failed=message.status == "error")
            case _:
                pass

    async def _node(self, task: dict[str, Any]) -> None:
        if "input" in task:
            self._tasks[task["id"]] = call_id = f"node-{task['name']}-{token_hex(4)}"
            await self._begin(call_id, f"node {task['name']}", {"node": task["name"]})
        elif (call_id := self._tasks.pop(task["id"], None)) is not None:
            asked = "It asked a question." if task.get("interrupts") else ""
            result = asked or json.dumps(task.get("result"), default=str, ensure_ascii=False)
            await self._end(call_id, task.get("error") or result, failed=bool(task.get("error")))

    async def _begin(self, call_id: str, title: str, given: dict[str, Any]) -> None:
        self._speaker = None
        self._called.add(call_id)
        self._open.add(call_id)
        await self._tell(start_tool_call(call_id, title, kind="other", status="in_progress", raw_input=given))

    async def _end(self, call_id: str, output: str, *, failed: bool) -> None:
        self._speaker = None
        self._finished.add(call_id)
        self._open.discard(call_id)
        status = "failed" if failed else "completed"
        await self._tell(update_tool_call(call_id, status=status, content=[tool_content(text_block(output))]))


def call_title(call: ToolCall) -> str:
    return shortened(f"{call['name']}({json.dumps(call['args'], ensure_ascii=False, default=str)})", LONGEST_TITLE)


class _Tokens:
    """What the messages of a turn say that they used."""

    def __init__(self) -> None:
        self._message: str | None = None
        self._context = 0
        self._input = self._output = self._cached = 0

    def count(self, message: AIMessage) -> int | None:
        """How many tokens the conversation holds now; None where the message does not say."""
        used = message.usage_metadata
        if not used:
            return None
        # A message that comes in parts counts each token in one of them.
        self._context = used["total_tokens"] + (self._context if self._message == message.id else 0)
        self._message = message.id
        self._input += used["input_tokens"]
        self._output += used["output_tokens"]
        self._cached += used.get("input_token_details", {}).get("cache_read", 0)
        return self._context

    def of_the_turn(self) -> Usage | None:
        """As other agents count them: what was read from a cache is no input."""
        total = self._input + self._output
        if not total:
            return None
        return Usage(
            input_tokens=self._input - self._cached,
            output_tokens=self._output,
            cached_read_tokens=self._cached,
            total_tokens=total,
        )
