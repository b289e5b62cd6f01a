"""What was put down to be remembered, and the log of everything done with it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, delete, exists, func, insert, or_, select, update

from segue.model.ids import WorkflowId
from segue.model.memories import RETENTION, AccessRecord, MemoryEntry, MemoryId, Provenance
from segue.store import tables as t


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry with its place among the clippings and the key it was stored under."""

    number: int
    entry: MemoryEntry
    key: str | None = None


_COLUMNS = ("id", "tag", "content", "content_sha256", "importance", "domain", "keeping", "revision")
_TIMES = ("created_at", "updated_at", "expires_at")


def memory_named(connection: Connection, name: str) -> Kept | None:
    """The entry with this id or tag."""
    return _first(connection, _entries().where(or_(t.memories.c.id == name, t.memories.c.tag == name)))


def memory_with_key(connection: Connection, key: str) -> Kept | None:
    return _first(connection, _entries().where(t.memories.c.key == key))


def memory_with_content(connection: Connection, sha256: str) -> Kept | None:
    return _first(connection, _entries().where(t.memories.c.content_sha256 == sha256))


def memory_numbered(connection: Connection, number: int) -> Kept | None:
    return _first(connection, _entries().where(t.memories.c.number == number))


def memories_of(connection: Connection, workflow_id: WorkflowId) -> list[Kept]:
    """What was memorized of a workflow, the latest first."""
    query = _entries().where(t.memories.c.workflow_id == workflow_id).order_by(t.memories.c.updated_at.desc())
    return [_read(row) for row in connection.execute(query)]


def tags_like(connection: Connection, beginning: str) -> set[str]:
    query = select(t.memories.c.tag).where(t.memories.c.tag.startswith(beginning, autoescape=True))
    return set(connection.execute(query).scalars())


def add_memory(connection: Connection, entry: MemoryEntry, key: str | None) -> Kept:
    number = (connection.execute(select(func.max(t.memories.c.number))).scalar() or 0) + 1
    connection.execute(insert(t.memories), {**_written(entry), "number": number, "key": key})
    return Kept(number, entry, key)


def change_memory(connection: Connection, entry: MemoryEntry) -> None:
    connection.execute(update(t.memories).where(t.memories.c.id == entry.id).values(**_written(entry)))


def erase_memory(connection: Connection, memory_id: MemoryId) -> None:
    connection.execute(delete(t.memories).where(t.memories.c.id == memory_id))


# ── what time does to it ────────────────────────────────────────────────────────────────────────────


def without_clipping(connection: Connection, now: datetime) -> list[Kept]:
    """Entries that could be found and cannot, since the index was taken down."""
    return _where(connection, _without_clipping(now))


def expired(connection: Connection, now: datetime) -> list[Kept]:
    """Entries whose time is over, and which are found still."""
    return _where(connection, _expired(now))


def outlived(connection: Connection, now: datetime) -> list[Kept]:
    """Entries that expired so long ago that they are not to be kept."""
    return _where(connection, _outlived(now))


def untidy(connection: Connection, now: datetime) -> bool:
    """Whether there is any entry of these three sorts."""
    sorts = (_without_clipping(now), _expired(now), _outlived(now))
    return connection.execute(select(or_(*(exists().where(sort) for sort in sorts)))).scalar_one()


def _without_clipping(now: datetime) -> ColumnElement[bool]:
    return and_(or_(t.memories.c.expires_at.is_(None), t.memories.c.expires_at > now), ~_clipped())


def _expired(now: datetime) -> ColumnElement[bool]:
    return and_(t.memories.c.expires_at <= now, _clipped())


def _outlived(now: datetime) -> ColumnElement[bool]:
    return t.memories.c.expires_at <= now - RETENTION


def _clipped() -> ColumnElement[bool]:
    return exists().where(t.clippings.c.id == t.memories.c.number).correlate(t.memories)


# ── the log ─────────────────────────────────────────────────────────────────────────────────────────


def log_access(
    connection: Connection,
    at: datetime,
    operation: str,
    outcome: str,
    memory_id: MemoryId | None = None,
    detail: Mapping[str, str] | None = None,
) -> int:
    row = {
        "at": at,
        "operation": operation,
        "outcome": outcome,
        "memory_id": memory_id,
        "detail": json.dumps(detail or {}, ensure_ascii=False),
    }
    key = connection.execute(insert(t.memory_log), row).inserted_primary_key
    assert key is not None, "an entry of the log gets its number from the database"
    return key[0]


def accesses(connection: Connection, memory_id: MemoryId) -> list[AccessRecord]:
    """Everything done with one entry, also after it was deleted, oldest first."""
    query = select(t.memory_log).where(t.memory_log.c.memory_id == memory_id).order_by(t.memory_log.c.id)
    return [
        AccessRecord(
            id=row.id,
            at=row.at,
            operation=row.operation,
            outcome=row.outcome,
            memory_id=row.memory_id,
            detail=json.loads(row.detail),
        )
        for row in connection.execute(query)
    ]


# ── rows and values ─────────────────────────────────────────────────────────────────────────────────


def _entries() -> Select[Any]:
    """Entries, each with its workflow's slug."""
    return select(t.memories, t.workflows.c.slug).join(
        t.workflows, t.workflows.c.id == t.memories.c.workflow_id, isouter=True
    )


def _where(connection: Connection, condition: ColumnElement[bool]) -> list[Kept]:
    return [_read(row) for row in connection.execute(_entries().where(condition))]


def _first(connection: Connection, query: Select[Any]) -> Kept | None:
    row = connection.execute(query).first()
    return None if row is None else _read(row)


def _read(row: Row[Any]) -> Kept:
    provenance = Provenance(
        workflow_id=row.workflow_id, workflow=row.slug, session_id=row.session_id, seq=row.seq, memory_id=row.id
    )
    plain = {name: getattr(row, name) for name in (*_COLUMNS, *_TIMES)}
    return Kept(row.number, MemoryEntry(**plain, tags=tuple(json.loads(row.tags)), provenance=provenance), row.key)


def _written(entry: MemoryEntry) -> dict[str, Any]:
    return {
        **{name: getattr(entry, name) for name in (*_COLUMNS, *_TIMES)},
        "tags": json.dumps(entry.tags, ensure_ascii=False),
        "workflow_id": entry.provenance.workflow_id,
        "session_id": entry.provenance.session_id,
        "seq": entry.provenance.seq,
    }
