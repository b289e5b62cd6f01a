"""Keeping the index up: what is new in the journal is clipped when somebody asks, in small steps."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import anyio

from segue.journal import Journal, MemoryStore
from segue.journal.search import Shelf
from segue.memory.clippings import RULES, Known, clip
from segue.memory.terms import names
from segue.model.checkpoint import Checkpoint
from segue.model.errors import CheckpointNotFound, StoreError
from segue.model.events import CheckpointCreated, Record, SnapshotStudied, Stretch
from segue.model.findings import Findings
from segue.model.ids import NOTHING_SEEN, CheckpointId, Seq, SessionId
from segue.model.memories import Clipping, MemoryEntry

STEP = 100
"""Events that are clipped under one lock: whoever appends to a journal waits no longer than that."""


@dataclass(frozen=True, slots=True)
class _Batch:
    upto: Seq
    clippings: list[Clipping]
    names: list[str]


class SearchIndexer:
    """The search index, as something that is behind and catches up."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._catching_up = anyio.Lock()

    async def catch_up(self) -> None:
        """Costs what is new, not what there is; the index of other rules is thrown away first."""
        async with self._catching_up:
            if await self._journal.read_memories(lambda store: store.index.has_other_rules(RULES)):
                await self._journal.write_memories(lambda store: store.index.clear())
            await self._tidy_memories()
            for shelf in await self._journal.read_memories(lambda store: store.index.behind()):
                await self._catch_up(shelf)

    async def _catch_up(self, shelf: Shelf | None) -> None:
        while shelf is not None:
            batch = await self._journal.read_memories(lambda store, shelf=shelf: _next_batch(store, shelf))
            if batch is None:
                return
            shelf = await self._journal.write_memories(
                lambda store, shelf=shelf, batch=batch: store.index.add(
                    shelf, batch.upto, batch.clippings, batch.names, RULES
                )
            )

    async def _tidy_memories(self) -> None:
        """What has expired is found no more, and erased when it need not be kept."""
        now = self._journal.clock.now()
        if await self._journal.read_memories(lambda store: store.entries.need_maintenance(now)):
            await self._journal.write_memories(lambda store: _tidy(store, now))


def _tidy(store: MemoryStore, now: datetime) -> None:
    for each in store.entries.not_indexed(now):
        put_entry(store, each.number, each.entry)
    for each in store.entries.expired(now):
        store.index.remove_memory(each.number)
        store.entries.log_access(now, "expire", "done", each.entry.id)
    for each in store.entries.past_retention(now):
        store.entries.erase(each.entry.id)
        store.entries.log_access(now, "erase", "done", each.entry.id)


def put_entry(store: MemoryStore, number: int, entry: MemoryEntry) -> None:
    """Let an entry be found by its words, its tags and its domain."""
    labels = " ".join((entry.tag, *entry.tags, entry.domain))
    clipping = Clipping(kind="memory", text=entry.content, at=entry.updated_at)
    store.index.put_memory(number, clipping, f"{names(entry.content)} {labels}")


def _next_batch(store: MemoryStore, shelf: Shelf) -> _Batch | None:
    records = store.records_after(shelf.workflow_id, shelf.seq, STEP)
    if not records:
        return None
    known = Known(
        checkpoints=_checkpoints(store, records),
        studies=_studies_before(store, records),
        sessions=_sessions(store, records),
    )
    clippings = [clipping for record in records for clipping in clip(record, known)]
    return _Batch(records[-1].seq, clippings, [names(clipping.text) for clipping in clippings])


def _checkpoints(store: MemoryStore, records: list[Record]) -> dict[CheckpointId, Checkpoint]:
    """The checkpoints that these records speak of; one that cannot be read is not found, and hides nothing else."""
    found: dict[CheckpointId, Checkpoint] = {}
    for record in records:
        if isinstance(record.event, CheckpointCreated):
            with suppress(CheckpointNotFound, StoreError):
                id = record.event.checkpoint_id
                found[id] = store.checkpoint(record.workflow_id, id)
    return found


def _studies_before(store: MemoryStore, records: list[Record]) -> dict[Seq, Findings]:
    """For each study among these records, what the workflow's last study before it had found."""
    studies = [record for record in records if isinstance(record.event, SnapshotStudied)]
    if not studies:
        return {}
    earlier = Stretch(after=NOTHING_SEEN, until=Seq(studies[0].seq - 1))
    last = store.last_records(studies[0].workflow_id, ("snapshot.studied",), 1, earlier)
    # Where there is none before the first, the first has no other to be compared with.
    pairs = pairwise((*last, *studies))
    return {this.seq: before.event.findings for before, this in pairs if isinstance(before.event, SnapshotStudied)}


def _sessions(store: MemoryStore, records: list[Record]) -> dict[Seq, SessionId | None]:
    """The sessions of the events that findings among these records come from."""
    studies = [record.event.findings for record in records if isinstance(record.event, SnapshotStudied)]
    seqs = {each.seq for study in studies for each in (*study.decisions, *study.errors) if each.seq is not None}
    return store.session_ids_at(records[0].workflow_id, seqs) if seqs else {}
