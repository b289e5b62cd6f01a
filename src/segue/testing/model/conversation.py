"""What an agent sent, in words that are the same for every dialect."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool the model wants to have called; free text in place of arguments is for tools that take no JSON."""

    id: str
    name: str
    arguments: JsonObject | str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the conversation; one that brings tool results has the role `tool`."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, understood."""

    messages: tuple[Message, ...]
    tools: Mapping[str, JsonObject]
    """The tools on offer, each with the JSON schema of its arguments; empty for a tool that takes free text."""
    model: str = ""
    stream: bool = False
    wanted: JsonObject | None = None
    """The JSON schema the answer must fit, if the agent asks for JSON."""
    size: int = 0
    """Characters of the request."""

    @property
    def prompt(self) -> str:
        """What the user said last; several messages in a row are one prompt, since agents put reminders beside it."""
        turns = groupby(self._spoken, key=lambda message: message.role)
        prompts = ["\n".join(message.text for message in group) for role, group in turns if role == "user"]
        return prompts[-1] if prompts else ""

    @property
    def rounds(self) -> int:
        """How often tools have answered since then; results that come together are one answer."""
        turns = [role for role, _ in groupby(self._spoken, key=lambda message: message.role)]
        last = max((place for place, role in enumerate(turns) if role == "user"), default=-1)
        return turns[last + 1 :].count("tool")

    @property
    def _spoken(self) -> list[Message]:
        return [message for message in self.messages if message.role != "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answers, and what it says that cost."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    model: str = "scripted"
    input_tokens: int = 0
    """All of them, those read from a cache included."""
    cached_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What the model answers instead of an answer."""

    status: int
    kind: str
    message: str
    retry_after: int | None = None
    """Seconds."""
    reset: str | None = None
    """When a quota is there again, as ISO 8601."""
