"""Update of the search index: new events are clipped before a search, in small steps."""

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
"""Maximum events that are clipped under one lock, which limits the wait of writers to the journal."""


@dataclass(frozen=True, slots=True)
class _Batch:
    upto: Seq
    clippings: list[Clipping]
    names: list[str]


class SearchIndexer:
    """Updater of the search index."""

    def __init__(self, journal: Journal) -> None:
        """Prepare the updates of the index, one at a time."""
        self._journal = journal
        self._catching_up = anyio.Lock()

    async def catch_up(self) -> None:
        """Index the new events and entries; an index of other rules is cleared first."""
        async with self._catching_up:
            if await self._journal.read_memories(lambda store: store.index.has_other_rules(RULES)):
                await self._journal.write_memories(lambda store: store.index.clear())
            await self._tidy_memories()
            for shelf in await self._journal.read_memories(lambda store: store.index.behind()):
                await self._catch_up(shelf)

    async def _catch_up(self, shelf: Shelf | None) -> None:
        """Index a workflow's new events in batches, until none is left or another caller has indexed them."""
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
        """Index missing entries, remove expired ones from the index, and erase those past their retention."""
        now = self._journal.clock.now()
        if await self._journal.read_memories(lambda store: store.entries.need_maintenance(now)):
            await self._journal.write_memories(lambda store: _tidy(store, now))


def _tidy(store: MemoryStore, now: datetime) -> None:
    """Index missing entries, remove expired ones from the index and erase those past retention, with a line in the
    log for each of these two."""
    for each in store.entries.not_indexed(now):
        put_entry(store, each.number, each.entry)
    for each in store.entries.expired(now):
        store.index.remove_memory(each.number)
        store.entries.log_access(now, "expire", "done", each.entry.id)
    for each in store.entries.past_retention(now):
        store.entries.erase(each.entry.id)
        store.entries.log_access(now, "erase", "done", each.entry.id)


def put_entry(store: MemoryStore, number: int, entry: MemoryEntry) -> None:
    """Index an entry by its text, its tags and its domain, in place of its earlier text."""
    labels = " ".join((entry.tag, *entry.tags, entry.domain))
    clipping = Clipping(kind="memory", text=entry.content, at=entry.updated_at)
    store.index.put_memory(number, clipping, f"{names(entry.content)} {labels}")


def _next_batch(store: MemoryStore, shelf: Shelf) -> _Batch | None:
    """Return the clippings of a shelf's next events; None if there are none."""
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
    """Return the checkpoints of these records; one that cannot be read is left out."""
    found: dict[CheckpointId, Checkpoint] = {}
    for record in records:
        if isinstance(record.event, CheckpointCreated):
            with suppress(CheckpointNotFound, StoreError):
                id = record.event.checkpoint_id
                found[id] = store.checkpoint(record.workflow_id, id)
    return found


def _studies_before(store: MemoryStore, records: list[Record]) -> dict[Seq, Findings]:
    """Return for each study among these records the findings of the study before it; a first study has none."""
    studies = [record for record in records if isinstance(record.event, SnapshotStudied)]
    if not studies:
        return {}
    earlier = Stretch(after=NOTHING_SEEN, until=Seq(studies[0].seq - 1))
    last = store.last_records(studies[0].workflow_id, ("snapshot.studied",), 1, earlier)
    # Without an earlier study the first one is compared with nothing.
    pairs = pairwise((*last, *studies))
    return {this.seq: before.event.findings for before, this in pairs if isinstance(before.event, SnapshotStudied)}


def _sessions(store: MemoryStore, records: list[Record]) -> dict[Seq, SessionId | None]:
    """Return by event number the sessions of the events that the findings among these records come from."""
    studies = [record.event.findings for record in records if isinstance(record.event, SnapshotStudied)]
    seqs = {each.seq for study in studies for each in (*study.decisions, *study.errors) if each.seq is not None}
    return store.session_ids_at(records[0].workflow_id, seqs) if seqs else {}
