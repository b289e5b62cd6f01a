"""Appending to the chain: the one place where events become rows."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, cast

from pydantic_core import PydanticSerializationError
from sqlalchemy import Connection, Dialect, Row, bindparam, insert, update

from segue.journal.redaction import redact_all
from segue.model.codec import adapter, decode_event, encode_event
from segue.model.crash import crash_point
from segue.model.errors import WorkflowNotFound
from segue.model.events import Event, Record
from segue.model.ids import Seq, SessionId, WorkflowId
from segue.store.tables import events, journal_heads, write_time

GENESIS = "0" * 64
"""What the first event of a workflow is chained to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An event on its way into the journal."""

    event: Event
    at: datetime
    session_id: SessionId | None = None
    run: int | None = None


def append_in(connection: Connection, workflow_id: WorkflowId, entries: Sequence[Entry]) -> Seq:
    """Append to one workflow inside the caller's transaction, and return the last sequence number."""
    # The first statement takes the workflow's lock; a head read before it, or kept from earlier, may be stale.
    head = connection.execute(_ADVANCE, {"workflow": workflow_id, "count": len(entries)}).one_or_none()
    if head is None:
        raise WorkflowNotFound(f"No workflow has the id {workflow_id!r}.")
    if not entries:
        return Seq(head.seq)
    rows, last = _chain(workflow_id, head.seq - len(entries), head.hash, entries)
    statement, bind = _insertion(connection.dialect)
    connection.exec_driver_sql(statement, [bind(row) for row in rows])
    connection.execute(_SEAL, {"workflow": workflow_id, "last": last})
    crash_point("journal.append")
    return Seq(head.seq)


_ADVANCE = (
    update(journal_heads)
    .where(journal_heads.c.workflow_id == bindparam("workflow"))
    .values(seq=journal_heads.c.seq + bindparam("count"))
    .returning(journal_heads.c.seq, journal_heads.c.hash)
)
_SEAL = update(journal_heads).where(journal_heads.c.workflow_id == bindparam("workflow")).values(hash=bindparam("last"))
_COLUMNS = ("workflow_id", "seq", "at", "kind", "session_id", "run", "body", "hash")
_Row = tuple[str, int, str, str, str | None, int | None, str, str]


@cache
def _insertion(dialect: Dialect) -> tuple[str, Callable[[_Row], Any]]:
    """The INSERT as the driver takes it. Compiled once: for rows by the thousand it is half of the work."""
    compiled = insert(events).compile(dialect=dialect, column_keys=_COLUMNS)
    if compiled.positional:
        return str(compiled), lambda row: row
    return str(compiled), lambda row: dict(zip(_COLUMNS, row, strict=True))


def _chain(workflow_id: WorkflowId, seq: int, previous: str, entries: Sequence[Entry]) -> tuple[list[_Row], str]:
    rows: list[_Row] = []
    bodies = redact_all([_encode(entry.event) for entry in entries])
    for entry, text in zip(entries, bodies, strict=True):
        seq += 1
        at, body = write_time(entry.at), text.decode()
        previous = link(previous, workflow_id, seq, at, entry.session_id, entry.run, body)
        rows.append((workflow_id, seq, at, entry.event.kind, entry.session_id, entry.run, body, previous))
    return rows, previous


def link(previous: str, workflow_id: str, seq: int, at: str, session_id: str | None, run: int | None, body: str) -> str:
    """The hash of one row, chained to the row before it."""
    text = f"{previous}\0{workflow_id}\0{seq}\0{at}\0{session_id or ''}\0{run or ''}\0{body}"
    return hashlib.sha256(text.encode()).hexdigest()


def _encode(event: Event) -> bytes:
    try:
        return encode_event(event)
    except PydanticSerializationError:
        # Half a surrogate pair, as a cut-off emoji leaves it, has no UTF-8 form.
        return json.dumps(_mend(adapter(type(event)).dump_python(event)), ensure_ascii=False, default=str).encode()


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_mend(item) for item in cast(list[Any], value)]
    return value


def read_row(row: Row[Any]) -> Record:
    return Record(
        workflow_id=row.workflow_id,
        seq=row.seq,
        at=datetime.fromisoformat(row.at),
        session_id=row.session_id,
        run=row.run,
        event=decode_event(row.body),
        hash=row.hash,
    )
