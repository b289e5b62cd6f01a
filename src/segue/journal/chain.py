"""The hash chain: the one place where events become rows."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, cast

from pydantic_core import PydanticSerializationError
from sqlalchemy import Connection, Row
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError

from segue.journal.redaction import redact_all
from segue.model.codec import adapter, decode_events, encode_event
from segue.model.crash import crash_point
from segue.model.errors import WorkflowNotFound
from segue.model.events import Event, Record
from segue.model.ids import AttemptId, Seq, SessionId, WorkflowId
from segue.store.tables import events, write_time

GENESIS = "0" * 64
"""Hash before a workflow's first event."""


@dataclass(slots=True)
class Entry:
    """Event that is about to be appended; not frozen, because freezing costs time on the busiest path."""

    event: Event
    at: datetime
    session_id: SessionId | None = None
    run: int | None = None
    attempt: AttemptId | None = None
    """Attempt that reports the event; the event is dropped when the attempt no longer owns its run."""


def append_in(connection: Connection, workflow_id: WorkflowId, entries: Sequence[Entry]) -> Seq:
    """Append to one workflow inside the caller's transaction, and return the last sequence number."""
    return append_all_in(connection, {workflow_id: entries})[workflow_id]


def append_all_in(connection: Connection, entries: Mapping[WorkflowId, Sequence[Entry]]) -> dict[WorkflowId, Seq]:
    """Append to several workflows, in no more statements than to one, and return each one's last sequence number."""
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    # The driver's own cursor: for many small rows, SQLAlchemy's statements would cost more than the database's work.
    cursor = connection.connection.cursor()
    try:
        return _append(cursor, mark, entries)
    except connection.dialect.loaded_dbapi.Error as error:
        lost = connection.dialect.is_disconnect(error, connection.connection, cursor)
        if lost:
            connection.invalidate(error)
        kind = connection.dialect.loaded_dbapi.Error
        raise DBAPIError.instance(
            None, None, error, kind, connection_invalidated=lost, dialect=connection.dialect
        ) from error
    finally:
        cursor.close()


def _append(cursor: DBAPICursor, mark: str, entries: Mapping[WorkflowId, Sequence[Entry]]) -> dict[WorkflowId, Seq]:
    # The first statement takes the workflows' locks; a head that was read before it may be stale.
    cursor.execute(_lock(mark, len(entries)), tuple(entries))
    heads = {workflow_id: _Head(seq, digest) for workflow_id, seq, digest in cursor.fetchall()}
    for workflow_id in entries:
        if workflow_id not in heads:
            raise WorkflowNotFound(f"No workflow has the id {workflow_id!r}.")
    if rows := _chain(heads, _without_late(cursor, mark, entries)):
        cursor.executemany(_insert(mark), rows)
        cursor.executemany(_seal(mark), [(head.seq, head.hash, name) for name, head in heads.items()])
        crash_point("journal.append")
    return {workflow_id: Seq(head.seq) for workflow_id, head in heads.items()}


def _without_late(
    cursor: DBAPICursor, mark: str, entries: Mapping[WorkflowId, Sequence[Entry]]
) -> Mapping[WorkflowId, Sequence[Entry]]:
    """Drop the entries of attempts that no longer own their run, and count them."""
    attempts = {entry.attempt for new in entries.values() for entry in new} - {None}
    if not attempts:
        return entries
    cursor.execute(_held(mark, len(attempts)), tuple(attempts))
    held: set[AttemptId | None] = {row[0] for row in cursor.fetchall()}
    if attempts == held:
        return entries
    held.add(None)
    late = Counter(entry.session_id for new in entries.values() for entry in new if entry.attempt not in held)
    cursor.executemany(_drop(mark), [(number, session_id) for session_id, number in late.items()])
    return {name: [entry for entry in new if entry.attempt in held] for name, new in entries.items()}


@cache
def _lock(mark: str, count: int) -> str:
    names = ", ".join([mark] * count)
    return f"UPDATE journal_heads SET seq = seq WHERE workflow_id IN ({names}) RETURNING workflow_id, seq, hash"


@cache
def _held(mark: str, count: int) -> str:
    return f"SELECT attempt FROM runs WHERE status = 'active' AND attempt IN ({', '.join([mark] * count)})"


@cache
def _drop(mark: str) -> str:
    return f"UPDATE runtimes SET dropped_events = dropped_events + {mark} WHERE session_id = {mark}"


@cache
def _insert(mark: str) -> str:
    return f"INSERT INTO events ({', '.join(events.c.keys())}) VALUES ({', '.join([mark] * len(events.c))})"


@cache
def _seal(mark: str) -> str:
    return f"UPDATE journal_heads SET seq = {mark}, hash = {mark} WHERE workflow_id = {mark}"


@dataclass(slots=True)
class _Head:
    """End of a workflow's chain."""

    seq: int
    hash: str


_Row = tuple[str, int, str, str, str | None, int | None, str, str]
"""Values of a row, in the order of the table's columns."""


def _chain(heads: Mapping[WorkflowId, _Head], entries: Mapping[WorkflowId, Sequence[Entry]]) -> list[_Row]:
    """Make the rows to insert, and move the heads to the last of them."""
    bodies = iter(redact_all([_encode(entry.event) for new in entries.values() for entry in new]))
    rows: list[_Row] = []
    for workflow_id, new in entries.items():
        head = heads[workflow_id]
        for entry in new:
            at, body, session_id, run = write_time(entry.at), next(bodies).decode(), entry.session_id, entry.run
            head.seq += 1
            head.hash = link(head.hash, workflow_id, head.seq, at, session_id, run, body)
            rows.append((workflow_id, head.seq, at, entry.event.kind, session_id, run, body, head.hash))
    return rows


def link(previous: str, workflow_id: str, seq: int, at: str, session_id: str | None, run: int | None, body: str) -> str:
    """Return the hash of one row, chained to the row before it."""
    text = f"{previous}\0{workflow_id}\0{seq}\0{at}\0{session_id or ''}\0{run or ''}\0{body}"
    return hashlib.sha256(text.encode()).hexdigest()


def _encode(event: Event) -> bytes:
    try:
        return encode_event(event)
    except PydanticSerializationError:
        # Half a surrogate pair, which a cut-off emoji leaves behind, has no UTF-8 form.
        return json.dumps(
            _replace_surrogates(adapter(type(event)).dump_python(event)), ensure_ascii=False, default=str
        ).encode()


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {
            _replace_surrogates(key): _replace_surrogates(item) for key, item in cast(dict[Any, Any], value).items()
        }
    if isinstance(value, list | tuple):
        return [_replace_surrogates(item) for item in cast(list[Any], value)]
    return value


def read_rows(rows: Sequence[Row[Any]]) -> list[Record]:
    """Decode rows of the table of events."""
    return [
        Record(
            workflow_id=row.workflow_id,
            seq=row.seq,
            at=datetime.fromisoformat(row.at),
            session_id=row.session_id,
            run=row.run,
            event=event,
            hash=row.hash,
        )
        for row, event in zip(rows, decode_events(row.body for row in rows), strict=True)
    ]
