"""Log of the model's requests, in memory and optionally as lines of a file."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from segue.model.codec import adapter
from segue.testing.model.answers import DialectName
from segue.testing.model.exchange import JsonObject, Message, Role, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """Request, raw and parsed."""

    number: int
    dialect: DialectName
    path: str
    stream: bool
    messages: tuple[Message, ...]
    prompt: str
    """Last prompt of the user."""
    tools: tuple[str, ...]
    body: JsonObject
    answer: str
    """Short description of the model's answer."""

    def contains(self, text: str) -> bool:
        """Return True if a text, tool call or tool result of the conversation contains `text`."""
        return any(text in each for each in _texts(self.messages))

    def remembers(self, text: str, role: Role) -> bool:
        """Return True if a message of this role contains `text` before the last prompt."""
        earlier = self.messages[: self._last_prompt]
        return any(text in found for found in _texts(each for each in earlier if each.role == role))

    @property
    def _last_prompt(self) -> int:
        """Index of the last prompt: after the last message that is neither the user's nor the system's."""
        end = max((place for place, each in enumerate(self.messages) if each.role == "user"), default=0)
        while end and self.messages[end - 1].role in ("user", "system"):
            end -= 1
        return end


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts, tool calls and tool results of messages."""
    for message in messages:
        yield message.text
        yield from (result.text for result in message.results)
        yield from (_flat(call) for call in message.calls)


def _flat(call: ToolCall) -> str:
    """Return a call as text: its name and values."""
    given = call.arguments
    return given if isinstance(given, str) else " ".join([call.name, *(str(value) for value in given.values())])


class RequestLog:
    """Requests in the order of their arrival."""

    def __init__(self, file: Path | None = None) -> None:
        self.requests: list[LoggedRequest] = []
        self._file = file

    def add(self, request: LoggedRequest) -> LoggedRequest:
        """Number and keep a request, append it to the file if there is one, and return it."""
        numbered = replace(request, number=len(self.requests) + 1)
        self.requests.append(numbered)
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps(asdict(numbered)) + "\n")
        return numbered


def read_log(file: Path) -> list[LoggedRequest]:
    """Return the requests in a log that another process wrote; empty if there is no file."""
    if not file.exists():
        return []
    return [adapter(LoggedRequest).validate_json(line) for line in file.read_text().splitlines()]
