"""The vendors' dialects, one module each: parsing of requests, and encoding of answers.

None knows another. Each has the same five functions; this page is their interface, and the table of the doors.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, cast

from segue.testing.model.answers import DialectName
from segue.testing.model.dialects import anthropic, augment, chat, gemini, responses
from segue.testing.model.exchange import JsonObject, ModelError, ModelReply, ModelRequest


class Dialect(Protocol):
    """Interface of a vendor's dialect."""

    def read(self, body: JsonObject, path: str) -> ModelRequest: ...
    def whole(self, reply: ModelReply) -> JsonObject:
        """Encode an answer as one document."""
        ...

    def pieces(self, reply: ModelReply) -> Iterable[JsonObject | str]:
        """Encode an answer as the data of server-sent events; text is sent as it is."""
        ...

    def trouble(self, trouble: ModelError) -> tuple[int, JsonObject, dict[str, str]]:
        """Encode an error: status, body and headers."""
        ...

    def counted(self, tokens: int) -> JsonObject:
        """Encode the answer to a request for a token count."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Endpoint of a dialect."""

    path: re.Pattern[str]
    dialect: DialectName
    counting: bool = False
    lines: bool = False
    """Stream answers as lines of JSON, not as server-sent events."""


ENDPOINTS = (
    Endpoint(re.compile(r"/messages/count_tokens$"), "anthropic", counting=True),
    Endpoint(re.compile(r"/messages$"), "anthropic"),
    Endpoint(re.compile(r"/responses$"), "responses"),
    Endpoint(re.compile(r"/chat/completions$"), "chat"),
    Endpoint(re.compile(r":countTokens$"), "gemini", counting=True),
    Endpoint(re.compile(r":(stream)?[gG]enerateContent$"), "gemini"),
    Endpoint(re.compile(r"/chat-stream$"), "augment", lines=True),
)

_MODULES: Mapping[DialectName, ModuleType] = {
    "anthropic": anthropic,
    "responses": responses,
    "chat": chat,
    "gemini": gemini,
    "augment": augment,
}


def endpoint_at(path: str) -> Endpoint | None:
    """Return the endpoint at this path, or None."""
    return next((door for door in ENDPOINTS if door.path.search(path)), None)


def dialect(name: DialectName) -> Dialect:
    """Return the module that speaks this dialect."""
    return cast(Any, _MODULES[name])
