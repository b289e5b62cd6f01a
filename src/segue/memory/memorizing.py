"""Writing of entries: a new one, an update, or automatically one of the two."""

import hashlib
import re
from dataclasses import replace
from datetime import datetime
from typing import Literal
from uuid import uuid4

from segue.journal import MemoryStore
from segue.journal.memories import StoredMemory
from segue.journal.rows import WorkflowRow
from segue.memory.index import put_entry
from segue.memory.recall import MEMORIZED, by_words, is_over
from segue.memory.scan import found_in, refuse_private
from segue.memory.terms import likeness, query_terms
from segue.memory.workflow_summary import in_sections
from segue.model.errors import BadInput, MemoryNotFound, MemoryUnclear, WorkflowNotFound
from segue.model.ids import slugify
from segue.model.memories import (
    LIFETIMES,
    Keeping,
    Memorized,
    MemorizeMode,
    MemoryEntry,
    MemoryId,
    Note,
    Provenance,
)

SAME, ALIKE = 0.85, 0.70
"""Similarities from which an entry counts as the same, or a person must decide."""
MOST_LIKE = 5
TELLING = 5
"""Terms of an entry's first line that form its tag."""
LONGEST = 20_000
"""Maximum characters of one entry."""

_TAG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*_[a-z0-9]+(?:-[a-z0-9]+)*_\d{4}")


def check(note: Note) -> None:
    """Raise an error unless the note can be stored: empty, too long, out of range, or with private data."""
    if not note.content.strip():
        raise BadInput("There is nothing to memorize.", hint="Give the words, @FILE, or - for standard input.")
    if "\0" in _stored(note):
        raise BadInput("This is no text: it holds a NUL.", hint="Give what it says as text.")
    if len(note.content) > LONGEST:
        raise BadInput(
            f"The text has {len(note.content):,} characters; an entry may have {LONGEST:,}.",
            hint="Put down what matters, or several entries.",
        )
    if note.importance is not None and not 0 <= note.importance <= 1:
        raise BadInput("The importance must be from 0 to 1.")
    if note.tag is not None and not _TAG.fullmatch(note.tag):
        raise BadInput(
            f"The tag {note.tag!r} has another form than topic_context_YYYY.",
            hint="Write words in small letters joined by hyphens: retry-policy_payments_2026.",
        )
    refuse_private(private_in(note))


def private_in(note: Note) -> list[str]:
    """Return the kinds of private data in any field of a note."""
    return list(dict.fromkeys(found_in(_stored(note))))


def _stored(note: Note) -> str:
    """Return all text of a note that would be written to disk."""
    return "\n".join((note.content, note.domain or "", note.tag or "", note.key or "", *(note.tags or ())))


def entry_named(store: MemoryStore, name: str) -> StoredMemory:
    """Return the entry with this id or tag; raise MemoryNotFound if there is none."""
    found = store.entries.named(name)
    if found is None:
        raise MemoryNotFound(f"Nothing was memorized as {name!r}.", hint="`segue recall` finds entries by their words.")
    return found


# ── new ─────────────────────────────────────────────────────────────────────────────────────────────


def store_new(store: MemoryStore, note: Note, now: datetime) -> Memorized:
    """Store a new entry; the same key or content again stores nothing, unless that entry has expired and is renewed."""
    sha256 = _sha256(note.content)
    before = store.entries.with_key(note.key) if note.key else None
    if before is not None and before.entry.content_sha256 != sha256:
        raise BadInput(f"Something else was stored under the key {note.key!r}.", hint="Use another key, or update it.")
    before = before or store.entries.with_content(sha256)
    if before is not None and not is_over(before.entry, now):
        return _told(store, "new", "unchanged", before.entry, now)
    if before is not None:
        return _change(store, before, note, now)
    return _store(store, note, note.tag or _free_tag(store, note, now), now)


def _refuse_taken(store: MemoryStore, tag: str) -> None:
    """Raise BadInput if an entry has this tag already."""
    if store.entries.named(tag) is not None:
        raise BadInput(f"The tag {tag!r} is taken.", hint=f"Change that entry with: segue memorize update {tag}")


def _store(store: MemoryStore, note: Note, tag: str, now: datetime) -> Memorized:
    """Store a note as a new entry under this tag, index it and log it."""
    _refuse_taken(store, tag)
    keeping = note.keeping or Keeping.LONG_TERM
    id = MemoryId(str(uuid4()))
    entry = MemoryEntry(
        id=id,
        tag=tag,
        tags=note.tags or (),
        content=note.content,
        content_sha256=_sha256(note.content),
        importance=0.5 if note.importance is None else note.importance,
        domain=note.domain or "general",
        keeping=keeping,
        revision=1,
        created_at=now,
        updated_at=now,
        expires_at=_end(keeping, now),
        provenance=replace(_provenance(store, note), memory_id=id),
    )
    stored = store.entries.add(entry, note.key)
    put_entry(store, stored.number, entry)
    return _told(store, "new", "stored", entry, now)


def _provenance(store: MemoryStore, note: Note) -> Provenance:
    """Return the note's workflow with its session and last event; empty for a note of no workflow."""
    if note.workflow is None:
        return Provenance()
    workflow = store.workflow(note.workflow)
    return Provenance(
        workflow_id=workflow.id,
        workflow=workflow.slug,
        session_id=store.current_session(workflow.id).id,
        seq=store.head(workflow.id),
    )


def _free_tag(store: MemoryStore, note: Note, now: datetime) -> str:
    """Make a tag that no entry has, from the first line's terms, the domain and the year."""
    first_line = next(line for line in note.content.splitlines() if line.strip())
    topic = slugify(" ".join(query_terms(first_line).words[:TELLING]))
    return _numbered(store, topic, slugify(note.domain or "general", 32), now)


def _numbered(store: MemoryStore, topic: str, context: str, now: datetime) -> str:
    """Make the tag of a topic, a context and this year, with a number if it is taken."""
    taken = store.entries.tags_like(topic)
    number, tag = 1, f"{topic}_{context}_{now:%Y}"
    while tag in taken:
        number += 1
        tag = f"{topic}-{number}_{context}_{now:%Y}"
    return tag


# ── update ──────────────────────────────────────────────────────────────────────────────────────────


def update(store: MemoryStore, name: str, note: Note, now: datetime) -> Memorized:
    """Update an entry, or a workflow's latest entry of the note's domain, which is created if it is missing; raise
    MemoryNotFound if the name is neither."""
    found = store.entries.named(name)
    if found is not None:
        return _change(store, found, note, now)
    try:
        workflow = store.workflow(name)
    except WorkflowNotFound:
        raise MemoryNotFound(
            f"Nothing was memorized as {name!r}, and no workflow is called that.",
            hint="`segue recall` finds entries by their words; `segue memorize new` makes one.",
        ) from None
    note = replace(note, domain=note.domain or "workflow", workflow=workflow.id)
    entries = [each for each in store.entries.of_workflow(workflow.id) if each.entry.domain == note.domain]
    if entries:
        return _change(store, entries[0], note, now)
    return _store(store, note, note.tag or _numbered(store, workflow.slug, "workflow", now), now)


def _change(store: MemoryStore, before: StoredMemory, note: Note, now: datetime) -> Memorized:
    """Update an entry by the note, index and log it; fields that the note leaves out stay."""
    old = before.entry
    if note.tag not in (None, old.tag):
        _refuse_taken(store, note.tag)
    keeping = note.keeping or old.keeping
    provenance = replace(_provenance(store, note), memory_id=old.id) if note.workflow else old.provenance
    entry = replace(
        old,
        tag=note.tag or old.tag,
        tags=old.tags if note.tags is None else note.tags,
        content=note.content,
        content_sha256=_sha256(note.content),
        importance=old.importance if note.importance is None else note.importance,
        domain=note.domain or old.domain,
        keeping=keeping,
        revision=old.revision + 1,
        updated_at=now,
        expires_at=_end(keeping, now),
        provenance=provenance,
    )
    store.entries.change(entry)
    put_entry(store, before.number, entry)
    return _told(store, "update", "updated", entry, now, {"sha256_before": old.content_sha256})


# ── auto ────────────────────────────────────────────────────────────────────────────────────────────


def store_or_update(store: MemoryStore, note: Note, now: datetime) -> Memorized:
    """Update the entry with this tag or nearly the same text, raise MemoryUnclear if there are only similar ones,
    else store a new one."""
    if note.tag is not None and (named := store.entries.named(note.tag)) is not None:
        return _change(store, named, note, now)
    like = _most_like(store, note.content, now)
    if not like or like[0][0] < ALIKE:
        return store_new(store, note, now)
    if like[0][0] >= SAME:
        return _change(store, like[0][1], note, now)
    raise _unclear([(likeness, each) for likeness, each in like if likeness >= ALIKE])


def _most_like(store: MemoryStore, content: str, now: datetime) -> list[tuple[float, StoredMemory]]:
    """Return the entries most like this content with their likeness, the highest first."""
    found = by_words(store, content, MOST_LIKE, now, MEMORIZED)
    entries = [entry_named(store, each.provenance.memory_id or "") for each in found]
    return sorted(
        ((likeness(content, each.entry.content), each) for each in entries), key=lambda pair: pair[0], reverse=True
    )


def _unclear(like: list[tuple[float, StoredMemory]]) -> MemoryUnclear:
    """Build the error that names the similar entries."""
    listed = ", ".join(f"{each.entry.tag} ({likeness:.0%} alike)" for likeness, each in like)
    return MemoryUnclear(
        f"Nothing was stored: it is not clear whether this replaces {listed}.",
        hint=f"Say so with: segue memorize update {like[0][1].entry.tag} …; or keep both with: segue memorize new …",
    )


# ── helpers ────────────────────────────────────────────────────────────────────────────────────


def workflow_to_tell(store: MemoryStore, name: str) -> WorkflowRow:
    """Return the workflow whose state is memorized; raise BadInput if the name is an entry's, which needs new
    content instead."""
    try:
        return store.workflow(name)
    except WorkflowNotFound:
        if store.entries.named(name) is None:
            raise
        raise BadInput(
            f"CONTENT is missing: what the entry {name!r} is to say.",
            hint=f"Give it as text, @FILE, or -: segue memorize update {name} TEXT",
        ) from None


def sections_of(store: MemoryStore, workflow: WorkflowRow) -> str:
    """Return a workflow's summary in sections, from its last snapshot if it has one."""
    snapshot = store.last_snapshot(workflow.id)
    findings = store.findings(workflow.id, snapshot.id) if snapshot else None
    return in_sections(workflow, snapshot, findings)


def _told(
    store: MemoryStore,
    operation: MemorizeMode,
    status: Literal["stored", "updated", "unchanged"],
    entry: MemoryEntry,
    now: datetime,
    detail: dict[str, str] | None = None,
) -> Memorized:
    """Log the operation and return its result."""
    written = {"sha256": entry.content_sha256, **(detail or {})}
    log_id = store.entries.log_access(now, operation, status, entry.id, written)
    return Memorized(status=status, memory=entry, access_log_id=log_id)


def _end(keeping: Keeping, now: datetime) -> datetime | None:
    """Return when an entry that is kept in this way expires; None if never."""
    lifetime = LIFETIMES[keeping]
    return None if lifetime is None else now + lifetime


def _sha256(content: str) -> str:
    return hashlib.sha256(content.encode(errors="replace")).hexdigest()
