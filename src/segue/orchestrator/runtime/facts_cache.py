"""Cache of the facts of each workflow, so that only new events have to be read."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import anyio
from anyio.to_thread import run_sync

from segue.exam import Evidence, entries_of_journal
from segue.journal import Journal
from segue.model.checkpoint import Checkpoint
from segue.model.events import Record, Stretch
from segue.model.facts import SessionFacts
from segue.model.ids import Seq, SessionId, WorkflowId
from segue.snapshot.facts import Collector
from segue.snapshot.facts.journal import lines_of
from segue.snapshot.findings import Calendar, seqs_of
from segue.state.fold import WorkflowState, fold
from segue.state.story import story

MOST_KEPT = 8
"""Number of workflows that are kept; others are read again when they are needed."""
MOST_RECORDS = 500
JUDGEMENTS = ("tests.ran", "review.given", "feedback.addressed", "plan.adopted")
"""Kinds of events that judge the work, or make a judgement void."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A part of a story that stands in one journal without a gap."""

    workflow_id: WorkflowId
    stretch: Stretch
    offset: int
    """How many lines of other journals come before this journal's first."""
    aside: frozenset[SessionId] = field(default=frozenset(), compare=False)
    """Sessions of reviewers and fixers, which are no part of the story."""

    def holds(self, number: int) -> bool:
        """Return True if this line number of the whole story belongs to one of the chapter's events."""
        return self.stretch.after < number - self.offset <= self.stretch.until


@dataclass(frozen=True, slots=True)
class Digest:
    """Facts of a workflow's conversations, and the record that an examiner asks about."""

    facts: SessionFacts
    evidence: Evidence


@dataclass(slots=True)
class _Reading:
    collector: Collector = field(default_factory=Collector)
    evidence: Evidence = field(default_factory=Evidence)
    read_so_far: list[Chapter] = field(default_factory=list[Chapter])
    """The last chapter, as far as it was read."""
    turn: anyio.Lock = field(default_factory=anyio.Lock)

    def precedes(self, chapters: Sequence[Chapter]) -> bool:
        """Return True if what was read is the beginning of this story, or nothing was read."""
        if not self.read_so_far:
            return True
        *whole, last = self.read_so_far
        if len(self.read_so_far) > len(chapters) or whole != list(chapters[: len(whole)]):
            return False
        now = chapters[len(whole)]
        return last.stretch.until <= now.stretch.until and _up_to(now, last.stretch.until) == last

    def reached(self, index: int, chapter: Chapter) -> Seq:
        """Return the last event of this chapter that was read, or its beginning if none was."""
        return self.read_so_far[index].stretch.until if index < len(self.read_so_far) else chapter.stretch.after

    def read(self, index: int, chapter: Chapter, records: list[Record]) -> None:
        """Add a page of records of a chapter to the facts and the evidence; forget everything if that fails
        half-way."""
        try:
            kept = [record for record in records if record.session_id not in chapter.aside]
            for line in lines_of(kept, chapter.offset):
                self.collector.hear(line)
            for entry in entries_of_journal(kept, chapter.offset):
                self.evidence.add(entry)
        except BaseException:
            # A page was read in part; the next reader must not read it twice.
            self.forget()
            raise
        self.read_so_far[index:] = [_up_to(chapter, records[-1].seq)]

    def forget(self) -> None:
        """Begin anew, with nothing read."""
        self.collector, self.evidence, self.read_so_far = Collector(), Evidence(), []

    def digest(self) -> Digest:
        """Return the facts read so far, with a copy of the evidence."""
        return Digest(self.collector.facts(), self.evidence.copy())


class FactsCache:
    """Cache of facts collected from the journal, for the workflows that were used last."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: OrderedDict[WorkflowId, _Reading] = OrderedDict()

    async def facts(self, workflow_id: WorkflowId) -> SessionFacts:
        """Return the facts of the workflow's conversations up to now, after reading new events."""
        return (await self.digest(workflow_id)).facts

    async def digest(self, workflow_id: WorkflowId) -> Digest:
        """Return the facts up to now with their evidence; only new events are read, or all of them after a rewind."""
        reading = self._keep(workflow_id)
        async with reading.turn:
            chapters = await self._chapters(workflow_id, await self._journal.state(workflow_id))
            if not reading.precedes(chapters):
                # Some of what was read has been undone, so the rest is read again.
                reading.forget()
            return await self._read_on(reading, chapters)

    async def facts_at(self, checkpoint: Checkpoint) -> tuple[Digest, Calendar]:
        """Return the facts up to a checkpoint with their evidence, and the times of the facts and of the tasks."""
        chapters = await self._chapters_until(checkpoint.workflow_id, checkpoint.after)
        reading = self._keep(checkpoint.workflow_id)
        digest: Digest | None = None
        async with reading.turn:
            if reading.precedes(chapters):
                digest = await self._read_on(reading, chapters)
        digest = digest or await self._read_on(_Reading(), chapters)
        calendar = Calendar(times={}, default=checkpoint.created_at)
        for chapter in chapters:
            numbers = {number - chapter.offset for number in seqs_of(digest.facts) if chapter.holds(number)}
            times = await self._journal.event_times(chapter.workflow_id, numbers)
            starts = await self._journal.task_starts(chapter.workflow_id)
            placed = [(chapter.offset + seq, task) for seq, task in starts]
            calendar = replace(
                calendar,
                times={**calendar.times, **{chapter.offset + seq: at for seq, at in times.items()}},
                starts=[*calendar.starts, *(start for start in placed if chapter.holds(start[0]))],
            )
        return digest, calendar

    async def last_records(
        self, workflow_id: WorkflowId, kinds: Collection[str], state: WorkflowState | None = None
    ) -> list[Record]:
        """Return the latest records of some kinds that belong to the workflow's valid history, a fork's origin
        included, newest first, up to a maximum."""
        found: list[Record] = []
        for chapter in reversed(await self._chapters(workflow_id, state or await self._journal.state(workflow_id))):
            left = MOST_RECORDS - len(found)
            if left:
                found += await self._journal.last_records(
                    chapter.workflow_id, kinds, limit=left, within=chapter.stretch, aside=chapter.aside
                )
        return found

    async def judgements_at(self, checkpoint: Checkpoint) -> WorkflowState:
        """Return a state with only the tests and reviews at a checkpoint."""
        found: list[Record] = []
        for chapter in await self._chapters_until(checkpoint.workflow_id, checkpoint.after):
            records = await self._journal.last_records(chapter.workflow_id, JUDGEMENTS, within=chapter.stretch)
            found += records[::-1]
        return fold(found)

    def _keep(self, workflow_id: WorkflowId) -> _Reading:
        """Return the cached reading of a workflow, or a new one, as the latest used; the one unused for longest may
        be dropped."""
        reading = self._kept.pop(workflow_id, None) or _Reading()
        self._kept[workflow_id] = reading
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return reading

    def forget(self, workflow_id: WorkflowId) -> None:
        """Drop the workflow's facts from the cache, if they are in it."""
        self._kept.pop(workflow_id, None)

    async def _chapters_until(self, workflow_id: WorkflowId, last: Seq) -> list[Chapter]:
        """Return a workflow's story up to this event."""
        return await self._chapters(workflow_id, replace(await self._journal.state(workflow_id), seq=last))

    async def _chapters(self, workflow_id: WorkflowId, state: WorkflowState) -> list[Chapter]:
        """Return a workflow's story up to the state; that of a fork begins with its origin's."""
        before: list[Chapter] = []
        offset = 0
        if (origin := state.forked_from) is not None:
            before = await self._chapters_until(origin.workflow_id, origin.after)
            offset = before[-1].offset + origin.after
        stretches = story(state.rewinds, state.seq)
        return [*before, *(Chapter(workflow_id, stretch, offset, state.helpers) for stretch in stretches)]

    async def _read_on(self, reading: _Reading, chapters: Sequence[Chapter]) -> Digest:
        """Read the events of these chapters that were not read yet, and return the digest."""
        for index, chapter in list(enumerate(chapters))[max(0, len(reading.read_so_far) - 1) :]:
            while (after := reading.reached(index, chapter)) < chapter.stretch.until:
                page = await self._journal.records(chapter.workflow_id, after)
                heard = [record for record in page if record.seq <= chapter.stretch.until]
                # What a thread began is finished by it, or the next one would hear half a page twice.
                with anyio.CancelScope(shield=True):
                    await run_sync(reading.read, index, chapter, heard)
        return await run_sync(reading.digest)


def _up_to(chapter: Chapter, until: Seq) -> Chapter:
    """Return the chapter, cut after this event."""
    return replace(chapter, stretch=replace(chapter.stretch, until=until))
