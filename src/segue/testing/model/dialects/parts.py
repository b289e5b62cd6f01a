"""Common parts of the dialects: content as text or list of parts, ids, and text in chunks."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast
from uuid import uuid4

from segue.testing.model.exchange import JsonObject

_PIECE = 24


def new_id(prefix: str) -> str:
    """Return a random id with this prefix."""
    return f"{prefix}{uuid4().hex[:20]}"


def objects(value: object) -> list[JsonObject]:
    """Return the objects in a list; an empty list for other values."""
    if not isinstance(value, list):
        return []
    return [cast(JsonObject, each) for each in cast("list[object]", value) if isinstance(each, dict)]


def table(value: object) -> JsonObject:
    """Return an object unchanged, and an empty one for other values."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def text_of(content: object) -> str:
    """Return the text of a message's content, for all types of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in objects(content) if part.get("text"))


def as_text(value: object) -> str:
    """Return a tool's result as text, for all its forms."""
    return value if isinstance(value, str) else text_of(value) or json.dumps(value, ensure_ascii=False)


def arguments(text: str) -> JsonObject | str:
    """Return the object in a call's arguments; text that is no JSON object as it is."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return cast(JsonObject, value) if isinstance(value, dict) else text


def in_json(value: Mapping[str, Any] | str) -> str:
    """Return a value as JSON; text as it is."""
    return value if isinstance(value, str) else json.dumps(value)


def chunks(text: str) -> Iterator[str]:
    """Yield a text in short pieces."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
