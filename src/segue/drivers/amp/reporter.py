"""Amp's output during a turn, one JSON object per line, as updates of the protocol."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from segue.drivers.amp.command import fields
from segue.drivers.amp.permission_socket import AmpQuestion
from segue.drivers.skeleton import payloads
from segue.drivers.skeleton.jsonrpc import INTERNAL_ERROR, RequestError
from segue.drivers.skeleton.payloads import Payload, ToolKind
from segue.drivers.text import shortened

LONGEST_TITLE = 200
_SOON = 1.0
Send = Callable[[Any], Awaitable[None]]

_KINDS: Mapping[str, ToolKind] = {
    "Read": "read",
    "view_media": "read",
    "Glob": "search",
    "glob": "search",
    "Grep": "search",
    "finder": "search",
    "edit_file": "edit",
    "create_file": "edit",
    "apply_patch": "edit",
    "delete_file": "delete",
    "Bash": "execute",
    "shell_command": "execute",
    "async_shell_command": "execute",
    "web_search": "fetch",
    "read_web_page": "fetch",
}
_ASKED = ("edit", "delete", "execute")
"""Kinds of tools that Amp runs on this machine, and never without permission; its server has tools of its own."""
_PATHS = ("path", "file_path", "absolute_path")
_SHOWN = ("cmd", "command", *_PATHS, "pattern", "query", "url")


@dataclass(slots=True)
class _Call:
    tool: str
    input: Mapping[str, Any]
    asked: bool = False
    open: bool = True


@dataclass(slots=True)
class _Tokens:
    """Tokens of the messages of a turn; those that were read from a cache are no input."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def add(self, usage: Mapping[str, Any]) -> int:
        """Count a message, and return the tokens that the conversation has with it."""
        new = _count(usage, "input_tokens") + _count(usage, "cache_creation_input_tokens")
        cached, output = _count(usage, "cache_read_input_tokens"), _count(usage, "output_tokens")
        self.input, self.output, self.cached = self.input + new, self.output + output, self.cached + cached
        return new + cached + output

    def of_the_turn(self) -> Payload | None:
        """Return the tokens of the turn as a payload; None if none were counted."""
        used = self.input + self.output + self.cached
        return payloads.tokens(self.input, self.output, self.cached) if used else None


@dataclass(slots=True)
class AmpReporter:
    """Updates of one turn."""

    send: Send
    _calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    _tokens: _Tokens = field(default_factory=_Tokens)
    _spoke: bool = False
    """True if the last update was text of a message, so that the next one begins a paragraph."""
    _early: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    """Calls whose permission was requested before they were reported."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, said: Mapping[str, Any]) -> None:
        """Report one object of Amp's output; kinds without meaning here are ignored."""
        message = fields(said.get("message"))
        match said.get("type"):
            case "assistant":
                await self._assistant(message)
            case "user":
                for block in _blocks(message):
                    if block.get("type") == "tool_result":
                        content = block.get("content")
                        output = content if isinstance(content, str) else _json(content)
                        await self._end(str(block.get("tool_use_id")), output, block)
            case _:
                pass

    def usage(self) -> Payload | None:
        """Return the tokens of the turn, or None if none were counted."""
        return self._tokens.of_the_turn()

    async def fail_open_calls(self, how: str) -> None:
        """Report all open calls as failed, with the reason (`how` the turn ended)."""
        words = f"The turn {how} before this call was finished. Its effect may be absent or partial."
        for call_id in [call_id for call_id, call in self._calls.items() if call.open]:
            await self._end(call_id, words, {"is_error": True})

    # ── what Amp asks ───────────────────────────────────────────────────────────────────────────────

    async def asks(self, question: AmpQuestion) -> str:
        """Return the call that a question is about; one that is never reported (a subagent's) gets a new id."""
        found = self._asked(question)
        with suppress(TimeoutError):
            # A question may overtake the call that it is about.
            async with asyncio.timeout(_SOON):
                while found is None:
                    self._news.clear()
                    await self._news.wait()
                    found = self._asked(question)
        if found is None:
            self._early.append((question.tool, question.input))
            return f"asked-{len(self._early)}"
        self._calls[found].asked = True
        return found

    def _asked(self, question: AmpQuestion) -> str | None:
        """Return the open call that a question is about, by id, input or tool; None if none fits yet."""
        waiting = {
            call_id: call
            for call_id, call in self._calls.items()
            if call.open and not call.asked and call.tool == question.tool
        }
        same = (call_id for call_id, call in waiting.items() if call.input == question.input)
        return question.call if question.call in waiting else next(same, next(iter(waiting), None))

    async def answered(self, call_id: str, *, allowed: bool) -> None:
        """Report the end of a call that was asked for and never reported, since no result will come."""
        if call_id not in self._calls:
            status = "completed" if allowed else "failed"
            await self.send(payloads.call_ended(call_id, status))

    # ── what Amp tells ──────────────────────────────────────────────────────────────────────────────

    async def _assistant(self, message: Mapping[str, Any]) -> None:
        """Report text, thoughts, new calls and tokens of a message."""
        for block in _blocks(message):
            match block:
                case {"type": "text", "text": str(text)} if text:
                    await self.send(payloads.message(f"\n\n{text}" if self._spoke else text))
                    self._spoke = True
                case {"type": "thinking", "thinking": str(thought)} if thought:
                    await self.send(payloads.thought(thought))
                case {"type": "tool_use", "id": str(call_id), "name": str(tool)} if call_id not in self._calls:
                    await self._begin(call_id, tool, fields(block.get("input")))
                case _:
                    pass
        if usage := fields(message.get("usage")):
            used = self._tokens.add(usage)
            await self.send(payloads.window(used, 0))

    async def _begin(self, call_id: str, tool: str, given: Mapping[str, Any]) -> None:
        """Note and report a new call."""
        self._spoke = False
        self._calls[call_id] = _Call(tool, given, asked=(tool, given) in self._early)
        self._news.set()
        await self.send(payloads.call_started(call(call_id, tool, given), "in_progress"))

    async def _end(self, call_id: str, output: str, result: Mapping[str, Any]) -> None:
        """Report the end of an open call; raise an error if it needed permission and Amp did not ask."""
        if (call := self._calls.get(call_id)) is None or not call.open:
            return
        self._spoke = call.open = False
        status = "failed" if result.get("is_error") else "completed"
        await self.send(payloads.call_ended(call_id, status, output))
        if status == "completed" and not call.asked and _KINDS.get(call.tool) in _ASKED:
            raise RequestError(INTERNAL_ERROR, f"Amp used {call.tool} without asking, so its turn was stopped.")


def call(call_id: str, tool: str, given: Mapping[str, Any]) -> Payload:
    """Return a call of a tool, as the protocol writes it."""
    paths = [given[key] for key in _PATHS if isinstance(given.get(key), str)]
    return payloads.call(call_id, title(tool, given), _KINDS.get(tool, "other"), paths=paths, given=given)


def title(tool: str, given: Mapping[str, Any]) -> str:
    """Return the title of a call: its tool and main argument, shortened."""
    shown = next((str(given[key]) for key in _SHOWN if given.get(key)), "") or (_json(given) if given else "")
    return shortened(f"{tool} {shown}".strip(), LONGEST_TITLE)


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the content blocks of a message; empty if it has none."""
    content = message.get("content")
    return [fields(block) for block in cast(list[object], content)] if isinstance(content, list) else []


def _json(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False)


def _count(usage: Mapping[str, Any], name: str) -> int:
    """Return a count of the usage, 0 if it is missing or negative."""
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0
