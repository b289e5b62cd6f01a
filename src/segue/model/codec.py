"""Lossless encoding of values as JSON."""

from collections.abc import Mapping
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
    return _serializer(type(event)).to_json(event)


def decode_event(body: str | bytes) -> Event:
    return _EVENT.validate_json(body)


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    return adapter(Checkpoint).dump_json(checkpoint)


def decode_checkpoint(document: str | bytes) -> Checkpoint:
    return adapter(Checkpoint).validate_json(document)


def encode_findings(findings: Findings) -> bytes:
    return adapter(Findings).dump_json(findings)


def decode_findings(document: str | bytes) -> Findings:
    return adapter(Findings).validate_json(document)


def encode(value: object) -> bytes:
    return adapter(type(value)).dump_json(value)


def decode(kind: type[T], document: str | bytes) -> T:
    return adapter(kind).validate_json(document)
