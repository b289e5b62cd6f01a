"""Events of the journal, read back and verified."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, or_, select

from segue.journal.chain import GENESIS, link, read_rows
from segue.journal.workflows import workflow_named
from segue.model.events import Record, Stretch, TaskStarted
from segue.model.ids import Seq, SessionId, TaskId, WorkflowId
from segue.store.tables import events, journal_heads

VERIFY_PAGE = 1_000
NO_LIMIT = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCheck:
    """Result of verifying a workflow's hash chain."""

    events: int
    problem: str | None = None

    @property
    def verified(self) -> bool:
        return self.problem is None


def head_of(connection: Connection, workflow_id: WorkflowId) -> Seq:
    """Select the number of the workflow's last event."""
    query = select(journal_heads.c.seq).where(journal_heads.c.workflow_id == workflow_id)
    return connection.execute(query).scalar_one()


def records_after(connection: Connection, workflow_id: WorkflowId, seq: int, limit: int) -> list[Record]:
    """Select the events that a follower at `seq` has not received yet, at most `limit`."""
    return read_rows(_rows_after(connection, workflow_id, seq, limit))


def record_at(connection: Connection, workflow_id: WorkflowId, seq: int) -> Record:
    query = select(events).where(events.c.workflow_id == workflow_id, events.c.seq == seq)
    return read_rows([connection.execute(query).one()])[0]


def last_records(
    connection: Connection,
    workflow_id: WorkflowId,
    kinds: Collection[str],
    limit: int,
    within: Stretch | None = None,
    aside: Collection[SessionId] = (),
) -> list[Record]:
    """Select the latest events of some kinds, newest first, in a stretch if given, and without sessions `aside`."""
    query = select(events).where(events.c.workflow_id == workflow_id, events.c.kind.in_(kinds))
    if within is not None:
        query = query.where(events.c.seq > within.after, events.c.seq <= within.until)
    if aside:
        query = query.where(or_(events.c.session_id.is_(None), events.c.session_id.not_in(aside)))
    return read_rows(connection.execute(query.order_by(events.c.seq.desc()).limit(limit)).all())


def _rows_after(connection: Connection, workflow_id: WorkflowId, seq: int, limit: int) -> list[Row[Any]]:
    query = (
        select(events)
        .where(events.c.workflow_id == workflow_id, events.c.seq > seq)
        .order_by(events.c.seq)
        .limit(limit)
    )
    return list(connection.execute(query))


def last_event_at(connection: Connection, workflow_id: WorkflowId) -> datetime | None:
    """Select the time of the workflow's last event."""
    query = select(events.c.at).where(events.c.workflow_id == workflow_id).order_by(events.c.seq.desc()).limit(1)
    text = connection.execute(query).scalar()
    return None if text is None else datetime.fromisoformat(text)


def times_of(connection: Connection, workflow_id: WorkflowId, seqs: Collection[int]) -> dict[int, datetime]:
    """Select the times of some events."""
    query = select(events.c.seq, events.c.at).where(events.c.workflow_id == workflow_id, events.c.seq.in_(seqs))
    return {row.seq: datetime.fromisoformat(row.at) for row in connection.execute(query)}


def session_ids_at(
    connection: Connection, workflow_id: WorkflowId, seqs: Collection[int]
) -> dict[Seq, SessionId | None]:
    """Select the sessions of some events."""
    query = select(events.c.seq, events.c.session_id).where(events.c.workflow_id == workflow_id, events.c.seq.in_(seqs))
    return {row.seq: row.session_id for row in connection.execute(query)}


def task_starts(connection: Connection, workflow_id: WorkflowId) -> list[tuple[int, TaskId]]:
    """Select the events at which tasks began, oldest first."""
    query = select(events).where(events.c.workflow_id == workflow_id, events.c.kind == "task.started")
    records = read_rows(connection.execute(query.order_by(events.c.seq)).all())
    return [(record.seq, record.event.task_id) for record in records if isinstance(record.event, TaskStarted)]


def verify_chain(connection: Connection, workflow_id: WorkflowId) -> ChainCheck:
    """Recompute every hash from the first event to the head."""
    workflow_named(connection, workflow_id)
    head = connection.execute(select(journal_heads).where(journal_heads.c.workflow_id == workflow_id)).one()
    seq, previous = 0, GENESIS
    # Other writers may append meanwhile: events after this head are not checked.
    while page := _rows_after(connection, workflow_id, seq, min(VERIFY_PAGE, head.seq - seq)):
        for row in page:
            seq += 1
            if row.seq != seq:
                return ChainCheck(events=seq - 1, problem=f"Event {seq} is missing.")
            previous = link(previous, row.workflow_id, row.seq, row.at, row.session_id, row.run, row.body)
            if previous != row.hash:
                return ChainCheck(events=seq - 1, problem=f"Event {seq} is not what was written.")
    if (Seq(head.seq), head.hash) != (seq, previous):
        return ChainCheck(events=seq, problem=f"The journal should end with event {head.seq}, but ends with {seq}.")
    return ChainCheck(events=seq)
