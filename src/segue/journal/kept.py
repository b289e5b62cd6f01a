"""Agents' own conversations, kept for them: added to and read, never changed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, select, update

from segue.journal.redaction import redact_all
from segue.model.events import JsonObject
from segue.model.ids import SessionId
from segue.model.kept import ConversationKey, Kept, Page
from segue.store import tables as t

# Characters after which a page ends; an entry may be a picture, and is not cut.
_PAGE = 1024 * 1024
_MOST_ENTRIES = 200


@dataclass(frozen=True, slots=True)
class Written:
    """An entry as it is stored, without secrets."""

    name: str | None
    text: str


def written(entries: Sequence[JsonObject]) -> list[Written]:
    """Made before the database is locked, since looking for secrets takes time."""
    texts = redact_all(
        [json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") for entry in entries]
    )
    return [Written(_name(entry), text.decode()) for entry, text in zip(entries, texts, strict=True)]


def _name(entry: JsonObject) -> str | None:
    name = entry.get("uuid")
    return name if isinstance(name, str) else None


def add(
    connection: Connection, key: ConversationKey, entries: Sequence[Written], session_id: SessionId, now: datetime
) -> None:
    """Entries whose name is there already are left out: whoever is not sure that they arrived sends them again."""
    if not entries:
        return
    head = _head(connection, key) or _begin(connection, key, session_id, now)
    new = _new(connection, head.id, entries)
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


def _new(connection: Connection, kept_id: int, entries: Sequence[Written]) -> list[Written]:
    names = {each.name for each in entries if each.name}
    known = select(t.kept_entries.c.name).where(t.kept_entries.c.kept_id == kept_id, t.kept_entries.c.name.in_(names))
    seen = set(connection.execute(known).scalars())
    new: list[Written] = []
    for each in entries:
        if each.name is None or each.name not in seen:
            new.append(each)
            seen.add(each.name)
    return new


def _begin(connection: Connection, key: ConversationKey, session_id: SessionId, now: datetime) -> Row[tuple[object]]:
    row = {"project": key.project, "conversation": key.conversation, "part": key.part}
    connection.execute(insert(t.kept_conversations), {**row, "session_id": session_id, "entries": 0, "at": now})
    head = _head(connection, key)
    assert head is not None, "it was begun just now"
    return head


def _head(connection: Connection, key: ConversationKey) -> Row[tuple[object]] | None:
    return connection.execute(select(t.kept_conversations).where(_is(key))).first()


def page_of(connection: Connection, key: ConversationKey, after: int) -> Page:
    """What comes after an entry's number; empty for a conversation that nobody keeps."""
    head = _head(connection, key)
    if head is None:
        return Page(entries=(), next=None)
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
    return Page(entries=tuple(entries), next=after if after < head.entries else None)


def kept_of(connection: Connection, project: str | None, conversation: str | None) -> list[Kept]:
    """The conversations of a directory, or the parts of one conversation; the latest first."""
    kept = t.kept_conversations.c
    asked = ((kept.project, project), (kept.conversation, conversation))
    wanted = [column == value for column, value in asked if value is not None]
    if not wanted:
        return []
    query = select(t.kept_conversations).where(*wanted).order_by(kept.at.desc(), kept.id.desc())
    return [
        Kept(
            key=ConversationKey(project=row.project, conversation=row.conversation, part=row.part),
            at=row.at,
            last=row.last,
        )
        for row in connection.execute(query)
    ]


def _is(key: ConversationKey) -> ColumnElement[bool]:
    kept = t.kept_conversations.c
    return and_(kept.conversation == key.conversation, kept.project == key.project, kept.part == key.part)
