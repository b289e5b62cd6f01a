"""Reading events and checkpoints back, and checking that nobody touched them."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, or_, select

from segue.journal.chain import GENESIS, link, read_row
from segue.journal.rows import workflow_named
from segue.model.checkpoint import SCHEMA_VERSION, Checkpoint
from segue.model.codec import decode_checkpoint, decode_findings
from segue.model.errors import ChainBroken, CheckpointNotFound, DatabaseTooNew
from segue.model.events import PromptQueued, Record, Stretch, TaskStarted
from segue.model.findings import FINDINGS_VERSION, Findings
from segue.model.ids import CheckpointId, PromptId, Seq, SessionId, TaskId, WorkflowId
from segue.store.tables import checkpoints, events, imports, journal_heads, pictures, prompts

VERIFY_PAGE = 1_000
EVERYTHING = 1_000_000_000
SHORT = re.compile(r"[0-9]{1,6}")
"""A checkpoint's number, as its id ends with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a check of the hash chain found."""

    events: int
    problem: str | None = None

    @property
    def verified(self) -> bool:
        return self.problem is None


def records_after(connection: Connection, workflow_id: WorkflowId, seq: int, limit: int) -> list[Record]:
    """What a watcher that has seen everything up to `seq` still has to see, at most `limit` of it."""
    return [read_row(row) for row in _rows_after(connection, workflow_id, seq, limit)]


def record_at(connection: Connection, workflow_id: WorkflowId, seq: int) -> Record:
    query = select(events).where(events.c.workflow_id == workflow_id, events.c.seq == seq)
    return read_row(connection.execute(query).one())


def queued_prompt(connection: Connection, prompt_id: PromptId) -> PromptQueued:
    """The event that has a prompt's words."""
    row = connection.execute(select(prompts.c.workflow_id, prompts.c.seq).where(prompts.c.id == prompt_id)).one()
    event = record_at(connection, row.workflow_id, row.seq).event
    assert isinstance(event, PromptQueued), "a prompt's row names the event that has its words"
    return event


def shown_with(connection: Connection, prompt: PromptQueued) -> list[bytes]:
    """The pictures that go with a prompt."""
    row = connection.execute(select(prompts.c.workflow_id).where(prompts.c.id == prompt.prompt_id)).one()
    wanted = [each.sha256 for each in prompt.pictures]
    query = select(pictures.c.sha256, pictures.c.data)
    query = query.where(pictures.c.workflow_id == row.workflow_id, pictures.c.sha256.in_(wanted))
    found = {row.sha256: row.data for row in connection.execute(query)}
    return [found[each] for each in wanted]


def last_records(
    connection: Connection,
    workflow_id: WorkflowId,
    kinds: Collection[str],
    limit: int,
    within: Stretch | None = None,
    aside: Collection[SessionId] = (),
) -> list[Record]:
    """The latest events of some kinds, newest first; with `within`, only those of that stretch, and not of sessions
    that are left aside."""
    query = select(events).where(events.c.workflow_id == workflow_id, events.c.kind.in_(kinds))
    if within is not None:
        query = query.where(events.c.seq > within.after, events.c.seq <= within.until)
    if aside:
        query = query.where(or_(events.c.session_id.is_(None), events.c.session_id.not_in(aside)))
    return [read_row(row) for row in connection.execute(query.order_by(events.c.seq.desc()).limit(limit))]


def _rows_after(connection: Connection, workflow_id: WorkflowId, seq: int, limit: int) -> list[Row[Any]]:
    query = (
        select(events)
        .where(events.c.workflow_id == workflow_id, events.c.seq > seq)
        .order_by(events.c.seq)
        .limit(limit)
    )
    return list(connection.execute(query))


def checkpoint_named(connection: Connection, workflow_id: WorkflowId, name: str) -> Checkpoint:
    """By its id, or by its number alone: `003`."""
    named = checkpoints.c.id == name
    if SHORT.fullmatch(name):
        named = or_(named, checkpoints.c.number == int(name))
    row = connection.execute(select(checkpoints).where(checkpoints.c.workflow_id == workflow_id, named)).first()
    if row is None:
        raise CheckpointNotFound(
            f"This workflow has no checkpoint {name!r}.",
            hint="`segue logs` shows their ids; `segue snapshots list` the snapshots.",
        )
    return _read_checkpoint(row)


def snapshots_of(connection: Connection, workflow_id: WorkflowId, limit: int | None = None) -> list[Checkpoint]:
    """The workflow's snapshots, newest first."""
    query = (
        select(checkpoints)
        .where(checkpoints.c.workflow_id == workflow_id, checkpoints.c.snapshot)
        .order_by(checkpoints.c.number.desc())
        .limit(limit)
    )
    return [_read_checkpoint(row) for row in connection.execute(query)]


def snapshot_ids(connection: Connection, workflow_id: WorkflowId) -> list[CheckpointId]:
    """The names of the workflow's snapshots, newest first."""
    query = select(checkpoints.c.id).where(checkpoints.c.workflow_id == workflow_id, checkpoints.c.snapshot)
    return [CheckpointId(row.id) for row in connection.execute(query.order_by(checkpoints.c.number.desc()))]


def times_of(connection: Connection, workflow_id: WorkflowId, seqs: Collection[int]) -> dict[int, datetime]:
    """When some events were written."""
    query = select(events.c.seq, events.c.at).where(events.c.workflow_id == workflow_id, events.c.seq.in_(seqs))
    return {row.seq: datetime.fromisoformat(row.at) for row in connection.execute(query)}


def sessions_of(connection: Connection, workflow_id: WorkflowId, seqs: Collection[int]) -> dict[Seq, SessionId | None]:
    query = select(events.c.seq, events.c.session_id).where(events.c.workflow_id == workflow_id, events.c.seq.in_(seqs))
    return {row.seq: row.session_id for row in connection.execute(query)}


def task_starts(connection: Connection, workflow_id: WorkflowId) -> list[tuple[int, TaskId]]:
    """The events at which tasks began, oldest first."""
    query = select(events).where(events.c.workflow_id == workflow_id, events.c.kind == "task.started")
    records = [read_row(row) for row in connection.execute(query.order_by(events.c.seq))]
    return [(record.seq, record.event.task_id) for record in records if isinstance(record.event, TaskStarted)]


def findings_of(connection: Connection, workflow_id: WorkflowId, name: str) -> Findings | None:
    """What the second look at a snapshot found, or None while nobody has looked."""
    query = select(checkpoints.c.findings).where(checkpoints.c.workflow_id == workflow_id, checkpoints.c.id == name)
    document = connection.execute(query).scalar()
    return None if document is None else _read_findings(name, document)


def all_findings(connection: Connection, workflow_id: WorkflowId) -> dict[CheckpointId, Findings]:
    """What was found in the workflow's snapshots, as far as somebody has looked."""
    query = select(checkpoints.c.id, checkpoints.c.findings).where(
        checkpoints.c.workflow_id == workflow_id, checkpoints.c.findings.is_not(None)
    )
    return {CheckpointId(row.id): _read_findings(row.id, row.findings) for row in connection.execute(query)}


def _read_findings(name: str, document: str) -> Findings:
    findings = decode_findings(document)
    if findings.schema_version > FINDINGS_VERSION:
        raise DatabaseTooNew(f"The findings of checkpoint {name} were written by a newer Segue.")
    return findings


def imported_as(connection: Connection, sha256: str) -> WorkflowId | None:
    """The workflow that a session file's content was made into."""
    return connection.execute(select(imports.c.workflow_id).where(imports.c.sha256 == sha256)).scalar()


def _read_checkpoint(row: Row[Any]) -> Checkpoint:
    if hashlib.sha256(row.document.encode()).hexdigest() != row.hash:
        raise ChainBroken(f"Checkpoint {row.id} is not what was written.")
    checkpoint = decode_checkpoint(row.document)
    if checkpoint.schema_version > SCHEMA_VERSION:
        raise DatabaseTooNew(f"Checkpoint {row.id} was written by a newer Segue.")
    return checkpoint


def verify_chain(connection: Connection, workflow_id: WorkflowId) -> Verdict:
    """Recompute every hash from the first event to the head."""
    workflow_named(connection, workflow_id)
    head = connection.execute(select(journal_heads).where(journal_heads.c.workflow_id == workflow_id)).one()
    seq, previous = 0, GENESIS
    # Others may be writing: what came after the head was read is not looked at.
    while page := _rows_after(connection, workflow_id, seq, min(VERIFY_PAGE, head.seq - seq)):
        for row in page:
            seq += 1
            if row.seq != seq:
                return Verdict(events=seq - 1, problem=f"Event {seq} is missing.")
            previous = link(previous, row.workflow_id, row.seq, row.at, row.session_id, row.run, row.body)
            if previous != row.hash:
                return Verdict(events=seq - 1, problem=f"Event {seq} is not what was written.")
    if (Seq(head.seq), head.hash) != (seq, previous):
        return Verdict(events=seq, problem=f"The journal should end with event {head.seq}, but ends with {seq}.")
    return Verdict(events=seq)
