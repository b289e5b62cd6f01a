"""Stream of a running graph as updates: its messages, the calls of its tools, and its tokens."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from segue.drivers.langgraph.graph_messages import answered_in, calls_in, messages_in
from segue.drivers.skeleton import payloads
from segue.drivers.skeleton.payloads import Payload
from segue.drivers.text import shortened

LONGEST_TITLE = 200
Send = Callable[[Any], Awaitable[None]]


class GraphReporter:
    """Updates of one turn. Messages that were in the thread before it are not reported."""

    def __init__(self, send: Send, known: object, *, nodes: bool) -> None:
        """Note the calls and results that are known before the turn, which are not reported."""
        self._send = send
        self._nodes = nodes
        """True if the graph's own nodes are reported as calls: a graph without messages has nothing else to show."""
        messages = list(messages_in(known))
        self._called = {call["id"] for call in calls_in(messages)}
        self._finished = answered_in(messages)
        self._open: set[str] = set()
        self._tasks: dict[str, str] = {}
        self._speaker: str | None = None
        """Message of the last text update, if nothing happened since."""
        self._tokens = _Tokens()

    async def take(self, part: dict[str, Any]) -> None:
        """Report one part of LangGraph's stream: a message, a node's update, or a node as a call."""
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

    async def report_thought(self, text: str) -> None:
        """Report a thought."""
        self._speaker = None
        await self._send(payloads.thought(f"{text}\n"))

    async def answered(self, call_id: str, *, allowed: bool, words: str) -> None:
        """End a question that was not the call of a tool; the others end with the tool."""
        if call_id not in self._called:
            said = words or ("yes" if allowed else "no")
            await self._end(call_id, said, failed=not allowed)

    async def fail_open_calls(self, how: str) -> None:
        """Report all open calls as failed, with the reason (`how` the turn ended)."""
        words = f"The turn {how} before this call was finished. Its effect may be absent or partial."
        for call_id in tuple(self._open):
            await self._end(call_id, words, failed=True)

    def usage(self) -> Payload | None:
        """Return the tokens of the turn, or None if none were counted."""
        return self._tokens.of_the_turn()

    def by_model(self) -> dict[str, Any]:
        """Return the tokens of each model for the answer's `_meta`; empty if no message names one."""
        listed = self._tokens.by_model()
        return {"quota": {"model_usage": listed}} if any(each["model"] for each in listed) else {}

    # ── messages ────────────────────────────────────────────────────────────────────────────────────

    async def _message(self, message: BaseMessage) -> None:
        """Report text, thoughts and tokens of a message; its calls only if it is whole."""
        if isinstance(message, AIMessage):
            await self._speak(message)
            if (counted := self._tokens.count(message)) is not None:
                named = {"_claude/model": counted.model} if counted.model else None
                await self._send(payloads.window(counted.total, 0, meta=named))
        # The calls in a part of a message are not whole yet; they come with the node's update.
        if not isinstance(message, AIMessageChunk):
            await self._calls(message)

    async def _speak(self, message: AIMessage) -> None:
        """Report the text and the thoughts of a message or a part of one."""
        for block in message.content_blocks:
            if block["type"] == "text" and block["text"]:
                another = self._speaker is not None and self._speaker != message.id
                self._speaker = message.id
                await self._send(payloads.message(f"\n\n{block['text']}" if another else block["text"]))
            elif block["type"] == "reasoning" and block.get("reasoning"):
                await self._send(payloads.thought(block.get("reasoning", "")))

    # ── calls ───────────────────────────────────────────────────────────────────────────────────────

    async def _calls(self, message: BaseMessage) -> None:
        """Report the new calls or the result in a message."""
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
        """Report the begin or the end of a node as a call."""
        if "input" in task:
            self._tasks[task["id"]] = call_id = f"node-{task['name']}-{token_hex(4)}"
            await self._begin(call_id, f"node {task['name']}", {"node": task["name"]})
        elif (call_id := self._tasks.pop(task["id"], None)) is not None:
            asked = "It asked a question." if task.get("interrupts") else ""
            result = asked or json.dumps(task.get("result"), default=str, ensure_ascii=False)
            await self._end(call_id, task.get("error") or result, failed=bool(task.get("error")))

    async def _begin(self, call_id: str, title: str, given: dict[str, Any]) -> None:
        """Note and report a new call."""
        self._speaker = None
        self._called.add(call_id)
        self._open.add(call_id)
        await self._send(payloads.call_started(payloads.call(call_id, title, "other", given=given), "in_progress"))

    async def _end(self, call_id: str, output: str, *, failed: bool) -> None:
        """Note and report the end of a call."""
        self._speaker = None
        self._finished.add(call_id)
        self._open.discard(call_id)
        status = "failed" if failed else "completed"
        await self._send(payloads.call_ended(call_id, status, output))


def call_title(call: ToolCall) -> str:
    """Return the title of a call, its name and arguments, shortened."""
    return shortened(f"{call['name']}({json.dumps(call['args'], ensure_ascii=False, default=str)})", LONGEST_TITLE)


@dataclass(slots=True)
class _Counted:
    """Tokens of one message, and its model."""

    model: str = ""
    input: int = 0
    output: int = 0
    cached: int = 0
    total: int = 0

    def add(self, used: UsageMetadata) -> None:
        """Add the tokens of a message or a part of one."""
        self.input += used["input_tokens"]
        self.output += used["output_tokens"]
        self.cached += used.get("input_token_details", {}).get("cache_read", 0)
        self.total += used["total_tokens"]

    @property
    def new(self) -> int:
        """As other agents count it: what was read from a cache is no input."""
        return self.input - self.cached


class _Tokens:
    """Tokens of the messages of a turn."""

    def __init__(self) -> None:
        self._messages: dict[str | None, _Counted] = {}

    def count(self, message: AIMessage) -> _Counted | None:
        """Add the tokens of a message, or of a part of one; return its total so far, or None if this part counts
        none."""
        counted = self._messages.setdefault(message.id, _Counted())
        counted.model = _model_of(message) or counted.model
        if not message.usage_metadata:
            return None
        counted.add(message.usage_metadata)
        return counted

    def of_the_turn(self) -> Payload | None:
        """Return the tokens of the turn as a payload; None if none were counted."""
        told = self._messages.values()
        new, output, cached = (sum(getattr(each, name) for each in told) for name in ("new", "output", "cached"))
        return payloads.tokens(new, output, cached) if new + output + cached else None

    def by_model(self) -> list[dict[str, Any]]:
        """Return the tokens by model; those of messages that name no model stand under an empty name."""
        found: dict[str, dict[str, int]] = {}
        for each in self._messages.values():
            if each.total:
                count = found.setdefault(each.model, dict.fromkeys(_COUNTS, 0))
                for name, tokens in zip(_COUNTS, (each.new, each.output, each.cached), strict=True):
                    count[name] += tokens
        return [{"model": model, "token_count": count} for model, count in found.items()]


_COUNTS = ("inputTokens", "outputTokens", "cachedInputTokens")


def _model_of(message: AIMessage) -> str:
    """Return the name of a message's model, or an empty text."""
    said = message.response_metadata
    return next((said[key] for key in ("model_name", "model") if isinstance(said.get(key), str)), "")
