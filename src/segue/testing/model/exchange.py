"""Requests and answers, in one form for every dialect."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """Call of a tool; the arguments are free text for tools that take no JSON."""

    id: str
    name: str
    arguments: JsonObject | str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Result of a tool call."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Message of the conversation; one with tool results has the role `tool`."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Parsed request."""

    messages: tuple[Message, ...]
    tools: Mapping[str, JsonObject]
    """Offered tools, each with the JSON schema of its arguments; empty for a tool that takes free text."""
    model: str = ""
    stream: bool = False
    wanted: JsonObject | None = None
    """JSON schema of the answer, if the agent requests JSON."""
    size: int = 0
    """Characters of the request."""

    @property
    def prompt(self) -> str:
        """Last prompt of the user; adjacent messages are one prompt, since agents add reminders to it."""
        turns = groupby(self._spoken, key=lambda message: message.role)
        prompts = ["\n".join(message.text for message in group) for role, group in turns if role == "user"]
        return prompts[-1] if prompts else ""

    @property
    def rounds(self) -> int:
        """Tool answers since the last prompt; results of one message count once."""
        turns = [role for role, _ in groupby(self._spoken, key=lambda message: message.role)]
        last = max((place for place, role in enumerate(turns) if role == "user"), default=-1)
        return turns[last + 1 :].count("tool")

    @property
    def _spoken(self) -> list[Message]:
        return [message for message in self.messages if message.role != "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """Answer of the model, with its usage."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    model: str = "scripted"
    input_tokens: int = 0
    """All input tokens, cached ones included."""
    cached_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelError:
    """Error answer of the model."""

    status: int
    kind: str
    message: str
    retry_after: int | None = None
    """Seconds."""
    reset: str | None = None
    """Time at which the quota resets, as ISO 8601."""
