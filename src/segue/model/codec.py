"""Lossless encoding of values as JSON."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from pydantic_core import SchemaSerializer

from segue.model.checkpoint import Checkpoint
from segue.model.events import Event, PermissionRequested
from segue.model.findings import Findings

T = TypeVar("T")

STORED_NAMES: Mapping[type[Event], Mapping[str, str]] = {
    PermissionRequested: {"free_text": "words"},
}
"""Stored names of fields that have another name in Python. Stored bodies are hashed, so their names never change."""

for _kind, _names in STORED_NAMES.items():
    # Taken over by each adapter that is made from here on.
    with_config(ConfigDict(alias_generator=lambda name, names=_names: names.get(name, name), serialize_by_alias=True))(
        _kind
    )


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the cached validator and serializer of a type."""
    return TypeAdapter(kind)


_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


@cache
def _serializer(kind: type[Event]) -> SchemaSerializer:
    """Return the serializer of one kind; the union's would take twice as long, and this is the busiest path."""
    serializer = adapter(kind).serializer
    assert isinstance(serializer, SchemaSerializer)
    return serializer


def encode_event(event: Event) -> bytes:
    """Return an event as it is stored in the journal."""
    return _serializer(type(event)).to_json(event)


def decode_event(body: str | bytes) -> Event:
    """Return the stored event; raise a validation error if it is invalid or of an unknown kind."""
    return _EVENT.validate_json(body)


def decode_events(bodies: Iterable[str | bytes]) -> list[Event]:
    return [_EVENT.validate_json(body) for body in bodies]


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as it is stored."""
    return adapter(Checkpoint).dump_json(checkpoint)


def decode_checkpoint(document: str | bytes) -> Checkpoint:
    """Return the stored checkpoint; raise a validation error if it is invalid."""
    return adapter(Checkpoint).validate_json(document)


def encode_findings(findings: Findings) -> bytes:
    """Return findings as they are stored."""
    return adapter(Findings).dump_json(findings)


def decode_findings(document: str | bytes) -> Findings:
    """Return the stored findings; raise a validation error if they are invalid."""
    return adapter(Findings).validate_json(document)


def encode(value: object) -> bytes:
    """Return any value of the model as JSON."""
    return adapter(type(value)).dump_json(value)


def decode(kind: type[T], document: str | bytes) -> T:
    """Return the value of this type that JSON contains; raise a validation error if it is invalid."""
    return adapter(kind).validate_json(document)
