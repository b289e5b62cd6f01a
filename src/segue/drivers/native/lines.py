"""A file of JSON lines as the objects in it. One line is held at a time, so a large file costs no memory."""

import codecs
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard, cast

from segue.model.errors import NotASession

JsonObject = dict[str, Any]
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a character, as JavaScript writes one that was cut in two; whole ones look like this too."""
LONGEST_LINE = 64 * 1024 * 1024
"""A longer line is no message: it is left out as broken, and read in pieces so that it costs no memory."""


@dataclass(slots=True)
class Tally:
    """Counts of a file's lines, taken while it is read."""

    lines: int = 0
    unknown: int = 0
    """Lines of a kind that the reader does not know."""
    broken: int = 0
    """Lines that are no JSON object: torn, filled with zeros, or too long."""
    torn: bool = False
    """True if the last line is one of those."""
    conversation: str = ""
    """The agent's own name for the conversation."""
    size: int = 0
    sha256: str = ""

    @property
    def unread(self) -> int:
        return self.unknown + self.broken


class Prefix:
    """A file up to where it reached when it was opened: what its agent adds meanwhile is left for another time."""

    def __init__(self, stream: BinaryIO) -> None:
        """Note the present size of the file; later additions are not read."""
        self._stream = stream
        self._left = os.fstat(stream.fileno()).st_size
        self._digest = hashlib.sha256()
        self.size = 0

    def readline(self) -> bytes:
        """Return the next line, or a part of one that is too long; empty at the noted end. Size and digest grow."""
        line = self._stream.readline(min(self._left, LONGEST_LINE))
        self._left -= len(line)
        self.size += len(line)
        self._digest.update(line)
        return line

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Return True if a value is a JSON object."""
    return isinstance(value, dict)


def json_lines(file: Path, tally: Tally) -> Iterator[tuple[int, JsonObject]]:
    """Yield each object of the file with its line number from 1; the tally counts lines, broken ones and the digest."""
    number = 0
    try:
        with file.open("rb") as stream:
            content = Prefix(stream)
            while line := content.readline():
                number += 1
                text = line.strip(b"\0 \t\r\n")
                if not text and b"\0" not in line:
                    continue
                tally.lines += 1
                whole = len(line) < LONGEST_LINE or line.endswith(b"\n")
                while not whole and (rest := content.readline()):
                    whole = rest.endswith(b"\n")
                found = _object(text) if len(line) < LONGEST_LINE else None
                tally.torn = found is None
                if found is None:
                    tally.broken += 1
                else:
                    yield number, found
            tally.size, tally.sha256 = content.size, content.sha256
    except OSError as error:
        raise NotASession(f"{file.name} cannot be read: {error.strerror or error}.") from error


def _object(text: bytes) -> JsonObject | None:
    """Return the JSON object in a line, or None if it is none."""
    try:
        value = json.loads(text.removeprefix(codecs.BOM_UTF8).decode(errors="replace"))
        if _SURROGATE.search(text):
            value = _whole(value)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _whole(value: Any) -> Any:
    """Replace every half of a character in a value: no encoder takes one."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case list():
            return [_whole(each) for each in cast(list[Any], value)]
        case dict():
            return {_whole(key): _whole(each) for key, each in cast(JsonObject, value).items()}
        case _:
            return value


def text_of(content: object) -> str:
    """Return the text of a message's content: a string, or a list of blocks of which some hold text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks: list[object] = content  # pyright: ignore[reportUnknownVariableType]
        return "\n".join(part for part in map(_block_text, blocks) if part)
    return ""


def _block_text(block: object) -> str:
    """Return the text of a block, its own or its content's; empty if it has none."""
    if not is_object(block):
        return block if isinstance(block, str) else ""
    text = block.get("text")
    return text if isinstance(text, str) else text_of(block.get("content"))


def number_of(value: object) -> int | None:
    """Return the value if it is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def objects_of(value: object) -> list[JsonObject]:
    """Return the objects in a list; its other items are ignored."""
    if not isinstance(value, list):
        return []
    items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
    return [item for item in items if is_object(item)]


def string_of(value: object) -> str:
    """Return the value if it is text, else an empty text."""
    return value if isinstance(value, str) else ""
