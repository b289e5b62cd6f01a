"""Interface to the memory: recall over everything, and entries that are stored, changed, read, searched and deleted."""

from dataclasses import replace
from datetime import datetime

from segue.journal import Journal, MemoryStore
from segue.journal.redaction import redact_text
from segue.memory.index import SearchIndexer
from segue.memory.memorizing import (
    LONGEST,
    check,
    entry_named,
    private_in,
    sections_of,
    store_new,
    store_or_update,
    update,
    workflow_to_tell,
)
from segue.memory.recall import MEMORIZED, answers, by_words, is_over, judged
from segue.memory.scan import without_private
from segue.memory.workflow_summary import in_sections
from segue.model.checkpoint import Checkpoint
from segue.model.errors import BadInput, MemoryNotFound, MemoryUnclear, SecretFound
from segue.model.findings import Findings
from segue.model.memories import (
    AccessRecord,
    Forgotten,
    Found,
    Keeping,
    Memorized,
    MemorizeMode,
    MemoryEntry,
    MemoryId,
    Note,
    RecallQuery,
    Recollection,
)


class Memory:
    """Memory of past work; every operation is logged, refused ones too."""

    def __init__(self, journal: Journal) -> None:
        """Open the memory over a journal; nothing is indexed yet."""
        self._journal = journal
        self._index = SearchIndexer(journal)

    @property
    def _now(self) -> datetime:
        return self._journal.clock.now()

    # ── recall ──────────────────────────────────────────────────────────────────────────────────────

    async def recall(self, question: RecallQuery) -> Recollection:
        """Search past work, after new events are indexed; return the results with a verdict. Only the access is
        logged."""
        question = replace(question, query=question.query.replace("\0", " ").strip())
        if not question.query:
            raise BadInput("There is nothing to look for.", hint="Give some words, or the name of a workflow.")
        await self._index.catch_up()
        now = self._now
        results = await self._journal.read_memories(lambda store: answers(store, question, now))
        verdict, found, others = judged(results)
        query = redact_text(question.query)
        log_id = await self._log("recall", verdict, detail={"query": query, "results": str(len(results))})
        return Recollection(
            verdict=verdict, query=query, results=(*found, *others), found=len(found), access_log_id=log_id
        )

    async def search(
        self, query: str, *, limit: int = 5, threshold: float = 0.70, semantic: bool = False
    ) -> list[Found]:
        """Return the memory entries that contain at least the share `threshold` of the query's terms; `semantic` is
        refused."""
        if semantic:
            raise BadInput("Entries are searched by their words; there are no vectors to compare meanings with.")
        await self._index.catch_up()
        now = self._now
        found = await self._journal.read_memories(lambda store: by_words(store, query, limit, now, MEMORIZED))
        await self._log("search", "done", detail={"query": redact_text(query)})
        return [each for each in found if each.score >= threshold]

    # ── entries ─────────────────────────────────────────────────────────────────────────────────────

    async def store_memory(
        self, content: str, *, importance: float = 0.5, tags: tuple[str, ...] = (), domain: str = "general"
    ) -> MemoryEntry:
        """Store a new entry and return it, or the existing one with the same content."""
        note = Note(content=content, importance=importance, tags=tags, domain=domain)
        return (await self.memorize(note, "new")).memory

    async def update_memory(
        self,
        memory_id: MemoryId,
        content: str,
        *,
        importance: float | None = None,
        tags: tuple[str, ...] | None = None,
    ) -> MemoryEntry:
        """Replace the content of an entry and return it; None leaves a field as it is."""
        note = Note(content=content, importance=importance, tags=tags)
        return (await self.memorize(note, "update", memory_id)).memory

    async def get_memory_by_id(self, name: str) -> MemoryEntry:
        """Return the entry with this id or tag, and log the access; raise MemoryNotFound if there is none or it has
        expired."""
        entry = (await self._journal.read_memories(lambda store: entry_named(store, name))).entry
        await self._log("read", "done", entry.id)
        if is_over(entry, self._now):
            raise MemoryNotFound(f"The entry {name!r} has expired.", hint="`segue memorize update` brings it back.")
        return entry

    async def delete(self, name: str) -> Forgotten:
        """Delete the entry with this id or tag and log it; raise MemoryNotFound if there is none."""
        now = self._now

        def delete(store: MemoryStore) -> Forgotten:
            found = entry_named(store, name)
            store.index.remove_memory(found.number)
            store.entries.erase(found.entry.id)
            log_id = store.entries.log_access(now, "delete", "done", found.entry.id)
            return Forgotten(memory_id=found.entry.id, access_log_id=log_id)

        return await self._journal.write_memories(delete)

    async def accesses(self, memory_id: str) -> list[AccessRecord]:
        """Return the log of an entry, even after its deletion."""
        return await self._journal.read_memories(lambda store: store.entries.accesses(MemoryId(memory_id)))

    # ── memorize ────────────────────────────────────────────────────────────────────────────────────

    async def memorize(self, note: Note, mode: MemorizeMode, name: str | None = None) -> Memorized:
        """Store a note: `new` as a new entry, `update` in place of an entry by id or tag or a workflow's by id or
        slug, `auto` as one of the two. Raise if it holds private data, or if `auto` cannot decide; both are logged."""
        try:
            check(note)
        except SecretFound:
            await self._log(mode, "blocked", detail={"found": ", ".join(private_in(note))})
            raise
        now = self._now
        if mode == "update":
            return await self._journal.write_memories(lambda store: update(store, name or "", note, now))
        if mode == "new":
            return await self._journal.write_memories(lambda store: store_new(store, note, now))
        try:
            return await self._journal.write_memories(lambda store: store_or_update(store, note, now))
        except MemoryUnclear:
            await self._log("auto", "unclear")
            raise

    async def memorize_workflow(self, name: str) -> Memorized:
        """Store the current state of a workflow, in sections; each workflow has one such entry."""
        now = self._now

        def memorize(store: MemoryStore) -> Memorized:
            workflow = workflow_to_tell(store, name)
            content = without_private(sections_of(store, workflow))
            note = Note(content=content, domain="workflow", keeping=Keeping.PERSISTENT, workflow=workflow.id)
            return update(store, workflow.slug, note, now)

        return await self._journal.write_memories(memorize)

    async def memorize_checkpoint(self, checkpoint: Checkpoint, findings: Findings) -> Memorized:
        """Store the state of the work at a checkpoint, in sections; a repetition stores nothing."""
        now = self._now

        def memorize(store: MemoryStore) -> Memorized:
            workflow = store.workflow(checkpoint.workflow_id)
            note = Note(
                content=without_private(in_sections(workflow, checkpoint, findings))[:LONGEST],
                domain="workflow",
                keeping=Keeping.WORKING,
                workflow=workflow.id,
                key=f"{workflow.id}/{checkpoint.id}",
            )
            return store_new(store, note, now)

        return await self._journal.write_memories(memorize)

    async def _log(
        self, operation: str, outcome: str, memory_id: MemoryId | None = None, detail: dict[str, str] | None = None
    ) -> int:
        """Write an access to the log and return its number."""
        now = self._now
        return await self._journal.write_memories(
            lambda store: store.entries.log_access(now, operation, outcome, memory_id, detail)
        )
