"""Checkpoints, snapshots and the findings of their study."""

import hashlib
import re
from typing import Any

from sqlalchemy import Connection, Row, insert, or_, select, update

from segue.journal.database import Database
from segue.journal.redaction import redact
from segue.journal.workflows import LockedWorkflow
from segue.model.checkpoint import SCHEMA_VERSION, Checkpoint, CheckpointType
from segue.model.codec import decode_checkpoint, decode_findings, encode_checkpoint, encode_findings
from segue.model.errors import ChainBroken, CheckpointNotFound, DatabaseTooNew
from segue.model.events import CheckpointCreated, SnapshotStudied
from segue.model.findings import FINDINGS_VERSION, Findings
from segue.model.ids import CheckpointId, SessionId, WorkflowId, checkpoint_id
from segue.state.fold import WorkflowState
from segue.store.tables import checkpoints

SHORT = re.compile(r"[0-9]{1,6}")
"""Number of a checkpoint, as its id ends with it."""

# ── queries ─────────────────────────────────────────────────────────────────────────────────────────


def checkpoint_named(connection: Connection, workflow_id: WorkflowId, name: str) -> Checkpoint:
    """Select a checkpoint by its id, or by its number alone: `003`; raise CheckpointNotFound if there is none."""
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


def has_checkpoints(connection: Connection, workflow_id: WorkflowId) -> bool:
    """Return True if the workflow has any checkpoint."""
    query = select(checkpoints.c.number).where(checkpoints.c.workflow_id == workflow_id).limit(1)
    return connection.execute(query).first() is not None


def snapshots_of(connection: Connection, workflow_id: WorkflowId, limit: int | None = None) -> list[Checkpoint]:
    """Select the workflow's snapshots, newest first."""
    query = (
        select(checkpoints)
        .where(checkpoints.c.workflow_id == workflow_id, checkpoints.c.snapshot)
        .order_by(checkpoints.c.number.desc())
        .limit(limit)
    )
    return [_read_checkpoint(row) for row in connection.execute(query)]


def snapshot_ids(connection: Connection, workflow_id: WorkflowId) -> list[CheckpointId]:
    """Select the ids of the workflow's snapshots, newest first."""
    query = select(checkpoints.c.id).where(checkpoints.c.workflow_id == workflow_id, checkpoints.c.snapshot)
    return [CheckpointId(row.id) for row in connection.execute(query.order_by(checkpoints.c.number.desc()))]


def findings_of(connection: Connection, workflow_id: WorkflowId, name: str) -> Findings | None:
    """Select the findings of a snapshot; None while it has not been studied, or does not exist."""
    query = select(checkpoints.c.findings).where(checkpoints.c.workflow_id == workflow_id, checkpoints.c.id == name)
    document = connection.execute(query).scalar()
    return None if document is None else _read_findings(name, document)


def all_findings(connection: Connection, workflow_id: WorkflowId) -> dict[CheckpointId, Findings]:
    """Select the findings of all the workflow's snapshots that have been studied, by checkpoint id."""
    query = select(checkpoints.c.id, checkpoints.c.findings).where(
        checkpoints.c.workflow_id == workflow_id, checkpoints.c.findings.is_not(None)
    )
    return {CheckpointId(row.id): _read_findings(row.id, row.findings) for row in connection.execute(query)}


def _read_checkpoint(row: Row[Any]) -> Checkpoint:
    """Decode a checkpoint's row; raise ChainBroken if it is not what was written, DatabaseTooNew if a newer Segue
    wrote it."""
    if hashlib.sha256(row.document.encode()).hexdigest() != row.hash:
        raise ChainBroken(f"Checkpoint {row.id} is not what was written.")
    checkpoint = decode_checkpoint(row.document)
    if checkpoint.schema_version > SCHEMA_VERSION:
        raise DatabaseTooNew(f"Checkpoint {row.id} was written by a newer Segue.")
    return checkpoint


def _read_findings(name: str, document: str) -> Findings:
    """Decode findings; raise DatabaseTooNew if a newer Segue wrote them."""
    findings = decode_findings(document)
    if findings.schema_version > FINDINGS_VERSION:
        raise DatabaseTooNew(f"The findings of checkpoint {name} were written by a newer Segue.")
    return findings


class CheckpointReads:
    """Reads of checkpoints, snapshots and findings."""

    def __init__(self, database: Database) -> None:
        self._read = database.read

    async def get(self, workflow_id: WorkflowId, name: str) -> Checkpoint:
        """Return a checkpoint by its id, or by its number alone: `003`; raise CheckpointNotFound if there is none."""
        return await self._read(checkpoint_named, workflow_id, name)

    async def base(self, workflow_id: WorkflowId, state: WorkflowState) -> Checkpoint | None:
        """Return the checkpoint that the work goes on from, the newest snapshot or the one it was rewound to; None
        before the first."""
        return await self.get(workflow_id, state.last_snapshot) if state.last_snapshot else None

    async def exist(self, workflow_id: WorkflowId) -> bool:
        """Return True if the workflow has any checkpoint."""
        return await self._read(has_checkpoints, workflow_id)

    async def snapshots(self, workflow_id: WorkflowId, limit: int | None = None) -> list[Checkpoint]:
        """Return the workflow's snapshots, newest first, at most `limit`."""
        return await self._read(snapshots_of, workflow_id, limit)

    async def snapshot_ids(self, workflow_id: WorkflowId) -> list[CheckpointId]:
        """Return the ids of the workflow's snapshots, newest first."""
        return await self._read(snapshot_ids, workflow_id)

    async def findings(self, workflow_id: WorkflowId, checkpoint: CheckpointId) -> Findings | None:
        """Return the findings of a snapshot, or None while it has not been studied."""
        return await self._read(findings_of, workflow_id, checkpoint)

    async def all_findings(self, workflow_id: WorkflowId) -> dict[CheckpointId, Findings]:
        """Return the findings of all the workflow's snapshots that have been studied, by checkpoint id."""
        return await self._read(all_findings, workflow_id)


# ── in a transaction ────────────────────────────────────────────────────────────────────────────────


class CheckpointWrites:
    """Checkpoints of a locked workflow."""

    def __init__(self, workflow: LockedWorkflow) -> None:
        self._workflow = workflow

    def next_id(self, kind: CheckpointType | None = None) -> CheckpointId:
        """Return the id of the next checkpoint of this type."""
        return checkpoint_id(self._workflow.now, self._next_number(kind))

    def _next_number(self, kind: CheckpointType | None) -> int:
        """Return the number of the next checkpoint; a checkpoint of the start has number 0."""
        # The start is number 0, and is not counted.
        return 0 if kind is CheckpointType.START else self._workflow.row.checkpoint_count + 1

    def save(self, checkpoint: Checkpoint, run: int | None) -> None:
        """Insert a checkpoint, redacted and with its hash, and append its event."""
        number = self._next_number(checkpoint.type)
        document = redact(encode_checkpoint(checkpoint))
        self._workflow.update(checkpoint_count=number)
        row = {
            "workflow_id": self._workflow.id,
            "id": checkpoint.id,
            "number": number,
            "session_id": checkpoint.session_id,
            "type": checkpoint.type,
            "trigger": checkpoint.trigger,
            "snapshot": checkpoint.snapshot,
            "created_at": checkpoint.created_at,
            "document": document.decode(),
            "hash": hashlib.sha256(document).hexdigest(),
        }
        self._workflow.connection.execute(insert(checkpoints), row)
        created = CheckpointCreated(
            checkpoint_id=checkpoint.id,
            type=checkpoint.type,
            snapshot=checkpoint.snapshot,
            clean_boundary=checkpoint.clean_boundary,
            commit=checkpoint.commit,
            after=checkpoint.after,
        )
        self._workflow.append(created, session_id=checkpoint.session_id, run=run)

    def save_findings(self, findings: Findings, session_id: SessionId) -> None:
        """Store the findings of a snapshot's study, redacted and in place of earlier ones, and append their event."""
        document = redact(encode_findings(findings)).decode()
        mine = (checkpoints.c.workflow_id == self._workflow.id, checkpoints.c.id == findings.checkpoint_id)
        self._workflow.connection.execute(update(checkpoints).where(*mine).values(findings=document))
        self._workflow.append(SnapshotStudied(findings=findings), session_id=session_id)
