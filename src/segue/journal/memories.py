"""Memory entries, the log of all accesses to them, and the store that memory operations work on."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, delete, exists, func, insert, or_, select, update

from segue.journal import checkpoints, records, sessions, workflows
from segue.journal.rows import SessionRow, WorkflowRow
from segue.journal.search import SearchIndex
from segue.model.checkpoint import Checkpoint
from segue.model.events import Record, Stretch
from segue.model.findings import Findings
from segue.model.ids import CheckpointId, Seq, SessionId, WorkflowId
from segue.model.memories import RETENTION, AccessRecord, MemoryEntry, MemoryId, Provenance
from segue.store import tables as t


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """Entry with its number in the search index and the key it was stored under."""

    number: int
    entry: MemoryEntry
    key: str | None = None


_COLUMNS = ("id", "tag", "content", "content_sha256", "importance", "domain", "keeping", "revision")
_TIMES = ("created_at", "updated_at", "expires_at")


class MemoryEntries:
    """Memory entries and the access log, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # ── finding ─────────────────────────────────────────────────────────────────────────────────────

    def named(self, name: str) -> StoredMemory | None:
        """Return the entry with this id or tag; None if there is none."""
        return self._first(or_(t.memories.c.id == name, t.memories.c.tag == name))

    def with_key(self, key: str) -> StoredMemory | None:
        """Return the entry stored under this key; None if there is none."""
        return self._first(t.memories.c.key == key)

    def with_content(self, sha256: str) -> StoredMemory | None:
        """Return the entry whose content has this hash; None if there is none."""
        return self._first(t.memories.c.content_sha256 == sha256)

    def numbered(self, number: int) -> StoredMemory | None:
        """Return the entry with this number in the search index; None if there is none."""
        return self._first(t.memories.c.number == number)

    def of_workflow(self, workflow_id: WorkflowId) -> list[StoredMemory]:
        """Return a workflow's entries, the latest first."""
        query = (
            _select_entries().where(t.memories.c.workflow_id == workflow_id).order_by(t.memories.c.updated_at.desc())
        )
        return [_read(row) for row in self._connection.execute(query)]

    def tags_like(self, beginning: str) -> set[str]:
        """Return the tags that begin with this text."""
        query = select(t.memories.c.tag).where(t.memories.c.tag.startswith(beginning, autoescape=True))
        return set(self._connection.execute(query).scalars())

    # ── changing ────────────────────────────────────────────────────────────────────────────────────

    def add(self, entry: MemoryEntry, key: str | None) -> StoredMemory:
        """Insert an entry under the next number and return it as stored; the search index is not changed."""
        number = (self._connection.execute(select(func.max(t.memories.c.number))).scalar() or 0) + 1
        self._connection.execute(insert(t.memories), {**_row(entry), "number": number, "key": key})
        return StoredMemory(number, entry, key)

    def change(self, entry: MemoryEntry) -> None:
        """Update the row of the entry with the same id; the search index is not changed."""
        self._connection.execute(update(t.memories).where(t.memories.c.id == entry.id).values(**_row(entry)))

    def erase(self, memory_id: MemoryId) -> None:
        """Delete an entry; the access log keeps its history."""
        self._connection.execute(delete(t.memories).where(t.memories.c.id == memory_id))

    # ── expiry ──────────────────────────────────────────────────────────────────────────────────────

    def not_indexed(self, now: datetime) -> list[StoredMemory]:
        """Return valid entries that are missing in the search index."""
        return self._where(_not_indexed(now))

    def expired(self, now: datetime) -> list[StoredMemory]:
        """Return expired entries that are still in the search index."""
        return self._where(_expired(now))

    def past_retention(self, now: datetime) -> list[StoredMemory]:
        """Return entries that expired longer ago than the retention time."""
        return self._where(_past_retention(now))

    def need_maintenance(self, now: datetime) -> bool:
        """Return True if any entry is not indexed, expired but indexed, or past retention."""
        conditions = (_not_indexed(now), _expired(now), _past_retention(now))
        query = select(or_(*(exists().where(condition) for condition in conditions)))
        return self._connection.execute(query).scalar_one()

    # ── access log ──────────────────────────────────────────────────────────────────────────────────

    def log_access(
        self,
        at: datetime,
        operation: str,
        outcome: str,
        memory_id: MemoryId | None = None,
        detail: Mapping[str, str] | None = None,
    ) -> int:
        """Add a row to the access log, and return its number."""
        row = {
            "at": at,
            "operation": operation,
            "outcome": outcome,
            "memory_id": memory_id,
            "detail": json.dumps(detail or {}, ensure_ascii=False),
        }
        key = self._connection.execute(insert(t.memory_log), row).inserted_primary_key
        assert key is not None, "the database numbers the rows of the log"
        return key[0]

    def accesses(self, memory_id: MemoryId) -> list[AccessRecord]:
        """Return all accesses to an entry, also to a deleted one, oldest first."""
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
            for row in self._connection.execute(query)
        ]

    def _where(self, condition: ColumnElement[bool]) -> list[StoredMemory]:
        """Select the entries that meet the condition."""
        return [_read(row) for row in self._connection.execute(_select_entries().where(condition))]

    def _first(self, condition: ColumnElement[bool]) -> StoredMemory | None:
        """Select an entry that meets the condition; None if there is none."""
        row = self._connection.execute(_select_entries().where(condition)).first()
        return None if row is None else _read(row)


class MemoryStore:
    """Memory entries, the search index, and the reads of the journal that they need, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.entries = MemoryEntries(connection)
        self.index = SearchIndex(connection)

    def workflow(self, name: str) -> WorkflowRow:
        """Return the workflow with this id or slug; raise WorkflowNotFound if there is none."""
        return workflows.workflow_named(self._connection, name)

    def head(self, workflow_id: WorkflowId) -> Seq:
        """Return the number of a workflow's last event."""
        return records.head_of(self._connection, workflow_id)

    def session(self, session_id: str) -> SessionRow:
        """Return the session with this id; raise SessionNotFound if there is none."""
        return sessions.session_by_id(self._connection, session_id)

    def current_session(self, workflow_id: WorkflowId) -> SessionRow:
        """Return a workflow's latest session."""
        return sessions.current_session(self._connection, workflow_id)

    def records_after(self, workflow_id: WorkflowId, seq: Seq, limit: int) -> list[Record]:
        """Return the events after this number, at most `limit`."""
        return records.records_after(self._connection, workflow_id, seq, limit)

    def last_records(
        self, workflow_id: WorkflowId, kinds: Collection[str], limit: int, within: Stretch
    ) -> list[Record]:
        """Return the latest events of some kinds in a stretch, newest first."""
        return records.last_records(self._connection, workflow_id, kinds, limit, within)

    def session_ids_at(self, workflow_id: WorkflowId, seqs: Collection[int]) -> dict[Seq, SessionId | None]:
        """Return the session of each event with these numbers; None for an event of no session."""
        return records.session_ids_at(self._connection, workflow_id, seqs)

    def checkpoint(self, workflow_id: WorkflowId, name: str) -> Checkpoint:
        """Return a checkpoint by its id or number; raise CheckpointNotFound if there is none."""
        return checkpoints.checkpoint_named(self._connection, workflow_id, name)

    def last_snapshot(self, workflow_id: WorkflowId) -> Checkpoint | None:
        """Return the workflow's newest snapshot; None if it has none."""
        return next(iter(checkpoints.snapshots_of(self._connection, workflow_id, limit=1)), None)

    def findings(self, workflow_id: WorkflowId, checkpoint: CheckpointId) -> Findings | None:
        """Return the findings of a snapshot, or None while it has not been studied."""
        return checkpoints.findings_of(self._connection, workflow_id, checkpoint)


# ── conditions ──────────────────────────────────────────────────────────────────────────────────────


def _not_indexed(now: datetime) -> ColumnElement[bool]:
    """Build the condition for entries that have not expired and are missing in the search index."""
    return and_(or_(t.memories.c.expires_at.is_(None), t.memories.c.expires_at > now), ~_indexed())


def _expired(now: datetime) -> ColumnElement[bool]:
    """Build the condition for expired entries that are in the search index."""
    return and_(t.memories.c.expires_at <= now, _indexed())


def _past_retention(now: datetime) -> ColumnElement[bool]:
    """Build the condition for entries that expired longer ago than the retention time."""
    return t.memories.c.expires_at <= now - RETENTION


def _indexed() -> ColumnElement[bool]:
    """Build the condition for entries that are in the search index."""
    return exists().where(t.clippings.c.id == t.memories.c.number).correlate(t.memories)


# ── rows and values ─────────────────────────────────────────────────────────────────────────────────


def _select_entries() -> Select[Any]:
    """Select entries, each with its workflow's slug."""
    return select(t.memories, t.workflows.c.slug).join(
        t.workflows, t.workflows.c.id == t.memories.c.workflow_id, isouter=True
    )


def _read(row: Row[Any]) -> StoredMemory:
    """Convert a row to a memory entry with its provenance."""
    provenance = Provenance(
        workflow_id=row.workflow_id, workflow=row.slug, session_id=row.session_id, seq=row.seq, memory_id=row.id
    )
    plain = {name: getattr(row, name) for name in (*_COLUMNS, *_TIMES)}
    return StoredMemory(
        row.number, MemoryEntry(**plain, tags=tuple(json.loads(row.tags)), provenance=provenance), row.key
    )


def _row(entry: MemoryEntry) -> dict[str, Any]:
    """Convert an entry to the columns of its row."""
    return {
        **{name: getattr(entry, name) for name in (*_COLUMNS, *_TIMES)},
        "tags": json.dumps(entry.tags, ensure_ascii=False),
        "workflow_id": entry.provenance.workflow_id,
        "session_id": entry.provenance.session_id,
        "seq": entry.provenance.seq,
    }
