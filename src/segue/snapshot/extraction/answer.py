"""What a reader answers, and how that is read from free text."""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ValidationError

from segue.model.codec import adapter
from segue.model.findings import DecisionType, Resolution

T = TypeVar("T")

LONGEST_ANSWER = 200_000
MOST_TRIES = 20
_FENCE = re.compile(r"```[\w-]*\s*\n(.*?)```", re.DOTALL)


# Where there is nothing to say, some say null.
Text = Annotated[str, BeforeValidator(lambda given: "" if given is None else given)]
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda given: () if given is None else given)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedDecision:
    """Decision as a model or an agent reported it."""

    decision_type: DecisionType
    description: str
    quote: str
    rationale: Text = ""
    alternatives_considered: Texts = ()
    event: int | None = None
    taken_back: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedError:
    """Error as a model or an agent reported it."""

    error_type: str
    error_message: str
    context: Text = ""
    resolution: Resolution = "unresolved"
    resolution_notes: Text = ""
    event: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    """The decisions and errors of a conversation."""

    decisions: tuple[ExtractedDecision, ...] = ()
    errors: tuple[ExtractedError, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An answer that could not be read, and why, in words for whoever gave it."""

    reason: str


def read_answer(text: str) -> ExtractionResult | Unreadable:
    """Read a model's answer as decisions and errors; return Unreadable with the reason if that fails."""
    return read_object(text, ExtractionResult, ("decisions", "errors"))


def read_object(text: str, kind: type[T], keys: Collection[str]) -> T | Unreadable:
    """Read the first valid JSON object in a text that has one of the keys; return Unreadable if there is none."""
    problem = f"The answer holds no JSON object with {' and '.join(keys)}."
    for document in _objects(text[:LONGEST_ANSWER]):
        if not document.keys() & set(keys):
            continue
        try:
            return adapter(kind).validate_python(document)
        except ValidationError as error:
            problem = _told(error)
    return Unreadable(problem)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, those in fences first."""
    for part in (*_FENCE.findall(text), text):
        place = part.find("{")
        for _ in range(MOST_TRIES):
            if place < 0:
                break
            value, end = _decoded(part, place)
            if isinstance(value, dict):
                yield value
            place = part.find("{", end)


def _decoded(text: str, place: int) -> tuple[Any, int]:
    """Return the JSON value that begins at `place` and the place after it; None and the next place if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, place)
    except (ValueError, RecursionError):
        return None, place + 1


def _told(error: ValidationError) -> str:
    """Return the first faults of a validation in one line."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:5])
