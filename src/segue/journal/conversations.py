"""Copies of agents' own conversations: entries are added and read, never changed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from anyio.to_thread import run_sync
from sqlalchemy import ColumnElement, Connection, Row, and_, insert, select, update

from segue.journal.database import Database
from segue.journal.redaction import redact_all
from segue.model.conversations import ConversationKey, ConversationSummary, EntryPage
from segue.model.events import JsonObject
from segue.model.ids import SessionId
from segue.store import tables as t

# Characters after which a page ends; an entry may be a picture, and is not cut.
_PAGE = 1024 * 1024
_MOST_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """Entry as it is stored, without secrets."""

    name: str | None
    text: str


class ConversationStore:
    """Copies of agents' conversations, in the journal's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, key: ConversationKey, entries: Sequence[JsonObject], session_id: SessionId, now: datetime
    ) -> None:
        """Add entries to a conversation; an entry whose name is stored already is left out."""
        # Redaction takes time, so it is done before the database is locked.
        stored = await run_sync(_encode, entries)
        await self._database.write_exclusively(lambda connection: _add(connection, key, stored, session_id, now))

    async def page(self, key: ConversationKey, after: int) -> EntryPage:
        """Return the entries after this number; none for an unknown conversation."""
        return await self._database.read(_page_of, key, after)

    async def find(self, project: str | None, conversation: str | None) -> list[ConversationSummary]:
        """Return the conversations of a directory, or the parts of one conversation, the latest first."""
        return await self._database.read(_find, project, conversation)


def _encode(entries: Sequence[JsonObject]) -> list[StoredEntry]:
    texts = redact_all(
        [json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") for entry in entries]
    )
    return [StoredEntry(_name(entry), text.decode()) for entry, text in zip(entries, texts, strict=True)]


def _name(entry: JsonObject) -> str | None:
    name = entry.get("uuid")
    return name if isinstance(name, str) else None


def _add(
    connection: Connection, key: ConversationKey, entries: Sequence[StoredEntry], session_id: SessionId, now: datetime
) -> None:
    if not entries:
        return
    head = _head(connection, key) or _begin(connection, key, session_id, now)
    new = _without_known(connection, head.id, entries)
    if not new:
        return
    numbered = enumerate(new, start=head.entries + 1)
    connection.execute(
        insert(t.kept_entries),
        [{"kept_id": head.id, "number": number, "name": each.name, "entry": each.text} for number, each in numbered],
    )
    last = next((each.name for each in reversed(new) if each.name), head.last)
    connection.execute(
        update(t.kept_conversations)
        .where(t.kept_conversations.c.id == head.id)
        .values(entries=head.entries + len(new), last=last, at=now)
    )


def _without_known(connection: Connection, kept_id: int, entries: Sequence[StoredEntry]) -> list[StoredEntry]:
    names = {each.name for each in entries if each.name}
    known = select(t.kept_entries.c.name).where(t.kept_entries.c.kept_id == kept_id, t.kept_entries.c.name.in_(names))
    seen = set(connection.execute(known).scalars())
    new: list[StoredEntry] = []
    for each in entries:
        if each.name is None or each.name not in seen:
            new.append(each)
            seen.add(each.name)
    return new


def _begin(connection: Connection, key: ConversationKey, session_id: SessionId, now: datetime) -> Row[tuple[object]]:
    row = {"project": key.project, "conversation": key.conversation, "part": key.part}
    connection.execute(insert(t.kept_conversations), {**row, "session_id": session_id, "entries": 0, "at": now})
    head = _head(connection, key)
    assert head is not None, "the row was inserted in this transaction"
    return head


def _head(connection: Connection, key: ConversationKey) -> Row[tuple[object]] | None:
    return connection.execute(select(t.kept_conversations).where(_has_key(key))).first()


def _page_of(connection: Connection, key: ConversationKey, after: int) -> EntryPage:
    head = _head(connection, key)
    if head is None:
        return EntryPage(entries=(), next=None)
    query = (
        select(t.kept_entries.c.number, t.kept_entries.c.entry)
        .where(t.kept_entries.c.kept_id == head.id, t.kept_entries.c.number > after)
        .order_by(t.kept_entries.c.number)
        .limit(_MOST_ENTRIES)
    )
    entries: list[JsonObject] = []
    size = 0
    for row in connection.execute(query):
        entries.append(json.loads(row.entry))
        after = row.number
        size += len(row.entry)
        if size >= _PAGE:
            break
    return EntryPage(entries=tuple(entries), next=after if after < head.entries else None)


def _find(connection: Connection, project: str | None, conversation: str | None) -> list[ConversationSummary]:
    kept = t.kept_conversations.c
    asked = ((kept.project, project), (kept.conversation, conversation))
    conditions = [column == value for column, value in asked if value is not None]
    if not conditions:
        return []
    query = select(t.kept_conversations).where(*conditions).order_by(kept.at.desc(), kept.id.desc())
    return [
        ConversationSummary(
            key=ConversationKey(project=row.project, conversation=row.conversation, part=row.part),
            at=row.at,
            last=row.last,
        )
        for row in connection.execute(query)
    ]


def _has_key(key: ConversationKey) -> ColumnElement[bool]:
    kept = t.kept_conversations.c
    return and_(kept.conversation == key.conversation, kept.project == key.project, kept.part == key.part)
