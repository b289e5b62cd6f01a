"""The vendors' dialects, one module each: parsing of requests, and encoding of answers.

None knows another. Each has the same five functions; this page is their interface, and the table of the doors.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, cast

from segue.testing.model.conversation import Asked, JsonObject, Reply, Trouble
from segue.testing.model.dialects import anthropic, augment, chat, gemini, responses
from segue.testing.model.script import DialectName


class Dialect(Protocol):
    """Interface of a vendor's dialect."""

    def read(self, body: JsonObject, path: str) -> Asked: ...
    def whole(self, reply: Reply) -> JsonObject:
        """Encode an answer as one document."""
        ...

    def pieces(self, reply: Reply) -> Iterable[JsonObject | str]:
        """Encode an answer as the data of server-sent events; text is sent as it is."""
        ...

    def trouble(self, trouble: Trouble) -> tuple[int, JsonObject, dict[str, str]]:
        """Encode an error: status, body and headers."""
        ...

    def counted(self, tokens: int) -> JsonObject:
        """Encode the answer to a request for a token count."""
        ...


@dataclass(frozen=True, slots=True)
class Door:
    """Endpoint of a dialect."""

    path: re.Pattern[str]
    dialect: DialectName
    counting: bool = False
    lines: bool = False
    """Stream answers as lines of JSON, not as server-sent events."""


DOORS = (
    Door(re.compile(r"/messages/count_tokens$"), "anthropic", counting=True),
    Door(re.compile(r"/messages$"), "anthropic"),
    Door(re.compile(r"/responses$"), "responses"),
    Door(re.compile(r"/chat/completions$"), "chat"),
    Door(re.compile(r":countTokens$"), "gemini", counting=True),
    Door(re.compile(r":(stream)?[gG]enerateContent$"), "gemini"),
    Door(re.compile(r"/chat-stream$"), "augment", lines=True),
)

_MODULES: Mapping[DialectName, ModuleType] = {
    "anthropic": anthropic,
    "responses": responses,
    "chat": chat,
    "gemini": gemini,
    "augment": augment,
}


def door_to(path: str) -> Door | None:
    return next((door for door in DOORS if door.path.search(path)), None)


def dialect(name: DialectName) -> Dialect:
    return cast(Any, _MODULES[name])
