"""What was heard of each workflow's journal so far, so that only what is new has to be read."""

from collections import OrderedDict
from dataclasses import dataclass, field

import anyio
from anyio.to_thread import run_sync

from segue.journal import Journal
from segue.model.events import Record
from segue.model.facts import SessionFacts
from segue.model.ids import NOTHING_SEEN, Seq, WorkflowId
from segue.snapshot.facts import Collector
from segue.snapshot.facts.journal import lines_of

MOST_KEPT = 8
"""Workflows whose hearing is kept; that of another begins anew when it is asked for."""


@dataclass(slots=True)
class _Hearing:
    collector: Collector = field(default_factory=Collector)
    seq: Seq = NOTHING_SEEN
    turn: anyio.Lock = field(default_factory=anyio.Lock)

    def hear(self, records: list[Record]) -> None:
        for line in lines_of(records):
            self.collector.hear(line)
        self.seq = records[-1].seq


class Hearings:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: OrderedDict[WorkflowId, _Hearing] = OrderedDict()

    async def facts(self, workflow_id: WorkflowId) -> SessionFacts:
        """What is known of the workflow's conversations by now."""
        return await self._listen(self._keep(workflow_id), workflow_id, None)

    async def facts_until(self, workflow_id: WorkflowId, last: Seq) -> SessionFacts:
        """What was known when event `last` was written."""
        hearing = self._keep(workflow_id)
        # What was heard cannot be unheard: for a look further back, everything is heard anew.
        return await self._listen(hearing if hearing.seq <= last else _Hearing(), workflow_id, last)

    def _keep(self, workflow_id: WorkflowId) -> _Hearing:
        hearing = self._kept.pop(workflow_id, None) or _Hearing()
        self._kept[workflow_id] = hearing
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return hearing

    async def _listen(self, hearing: _Hearing, workflow_id: WorkflowId, last: Seq | None) -> SessionFacts:
        async with hearing.turn:
            while page := await self._journal.records(workflow_id, hearing.seq):
                heard = [record for record in page if last is None or record.seq <= last]
                if heard:
                    # What a thread began is finished by it, or the next one would hear half a page twice.
                    with anyio.CancelScope(shield=True):
                        await run_sync(hearing.hear, heard)
                if len(heard) < len(page):
                    break
            return await run_sync(hearing.collector.facts)
