"""The search index: clippings of the journal, and where a word occurs in them.

SQLite searches with FTS5, PostgreSQL with its own text search; what is asked and answered is the same for both.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, TextClause, delete, func, insert, or_, select, text, update

from segue.model.ids import Seq, SessionId, WorkflowId
from segue.model.memories import Clipping, ClippingKind
from segue.store import tables as t

SHELF = 1 << 24
"""How many clippings a shelf has room for; the first shelf holds what was memorized."""
EVERYWHERE = range(1 << 62)

COMMON = 5
"""A word that stands in one of so many clippings tells little."""
SMALL = 200
"""Unless it stands in no more than so many."""
_SATURATION = 2.2
"""What one word can contribute at most in FTS5's ranking, as a multiple of the word's rarity (k1 + 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """How far a workflow's journal has been clipped."""

    workflow_id: WorkflowId
    number: int | None
    """None while it has no shelf yet."""
    seq: Seq
    clippings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippingRow:
    id: int
    workflow_id: WorkflowId | None
    session_id: SessionId | None
    seq: Seq | None
    at: datetime
    kind: ClippingKind
    text: str


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Where a word occurs: in how many clippings, and how strongly (0 to 1) in those where it is strongest."""

    clippings: int
    strengths: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How one engine keeps and asks its index."""

    add: TextClause
    remove: TextClause
    clear: TextClause
    count: TextClause
    find: TextClause


_SQLITE = _Dialect(
    add=text(
        "INSERT INTO clipping_index (rowid, text, names) SELECT id, text, names FROM clippings "
        "WHERE id BETWEEN :first AND :last"
    ),
    remove=text(
        "INSERT INTO clipping_index (clipping_index, rowid, text, names) SELECT 'delete', id, text, names "
        "FROM clippings WHERE id = :id"
    ),
    clear=text("INSERT INTO clipping_index (clipping_index) VALUES ('delete-all')"),
    count=text("SELECT count(*) FROM clipping_index WHERE clipping_index MATCH :word"),
    find=text(
        "SELECT rowid AS id, -rank AS strength FROM clipping_index WHERE clipping_index MATCH :word "
        "AND rowid BETWEEN :first AND :last ORDER BY rank LIMIT :most"
    ),
)
# Punctuation becomes space first: PostgreSQL would take a path or a host for one word.
_POSTGRES = _Dialect(
    add=text(
        "INSERT INTO clipping_index (id, words) SELECT id, to_tsvector('english', "
        "regexp_replace(text || ' ' || names, '[^[:alnum:]]+', ' ', 'g')) FROM clippings "
        "WHERE id BETWEEN :first AND :last"
    ),
    remove=text("DELETE FROM clipping_index WHERE id = :id"),
    clear=text("DELETE FROM clipping_index"),
    count=text("SELECT count(*) FROM clipping_index WHERE words @@ plainto_tsquery('english', :word)"),
    find=text(
        "SELECT id, ts_rank('{1, 1, 1, 1}', words, plainto_tsquery('english', :word), 1) AS strength "
        "FROM clipping_index WHERE words @@ plainto_tsquery('english', :word) "
        "AND id BETWEEN :first AND :last ORDER BY strength DESC, id LIMIT :most"
    ),
)
_DIALECTS = {"sqlite": _SQLITE, "postgresql": _POSTGRES}


def _dialect(connection: Connection) -> _Dialect:
    return _DIALECTS[connection.dialect.name]


# ── keeping up ──────────────────────────────────────────────────────────────────────────────────────


def behind(connection: Connection) -> list[Shelf]:
    """The workflows with events that have not been clipped yet."""
    heads, shelves = t.journal_heads, t.shelves
    query = (
        select(heads.c.workflow_id, shelves.c.number, shelves.c.seq, shelves.c.clippings)
        .join(shelves, shelves.c.workflow_id == heads.c.workflow_id, isouter=True)
        .where(or_(shelves.c.seq.is_(None), shelves.c.seq < heads.c.seq))
        .order_by(heads.c.workflow_id)
    )
    return [
        Shelf(workflow_id=row.workflow_id, number=row.number, seq=row.seq or Seq(0), clippings=row.clippings or 0)
        for row in connection.execute(query)
    ]


def clipped_by_other_rules(connection: Connection, rules: int) -> bool:
    query = select(t.shelves.c.number).where(t.shelves.c.rules != rules).limit(1)
    return connection.execute(query).first() is not None


def forget_clippings(connection: Connection) -> None:
    """Take down everything; the journal and the memories have all of it still."""
    connection.execute(_dialect(connection).clear)
    connection.execute(delete(t.clippings))
    connection.execute(delete(t.shelves))


def shelve(
    connection: Connection, shelf: Shelf, upto: Seq, new: Sequence[Clipping], names: Sequence[str], rules: int
) -> Shelf | None:
    """Put the next clippings of a workflow on its shelf; None when somebody else did meanwhile."""
    number = shelf.number if shelf.number is not None else _new_shelf(connection, shelf.workflow_id, rules)
    moved = connection.execute(
        update(t.shelves)
        .where(t.shelves.c.number == number, t.shelves.c.seq == shelf.seq)
        .values(seq=upto, clippings=shelf.clippings + len(new))
    )
    if moved.rowcount != 1:
        return None
    first = number * SHELF + shelf.clippings + 1
    rows = [
        _row(first + place, shelf.workflow_id, clipping, name)
        for place, (clipping, name) in enumerate(zip(new, names, strict=True))
    ]
    if rows:
        connection.execute(insert(t.clippings), rows)
        _add(connection, range(first, first + len(rows)))
    return Shelf(workflow_id=shelf.workflow_id, number=number, seq=upto, clippings=shelf.clippings + len(rows))


def _new_shelf(connection: Connection, workflow_id: WorkflowId, rules: int) -> int:
    row = {"workflow_id": workflow_id, "seq": 0, "clippings": 0, "rules": rules}
    key = connection.execute(insert(t.shelves), row).inserted_primary_key
    assert key is not None, "a shelf gets its number from the database"
    return key[0]


def put_memory(connection: Connection, number: int, clipping: Clipping, names: str) -> None:
    """Let a memory be found by its present words."""
    take_memory(connection, number)
    connection.execute(insert(t.clippings), _row(number, None, clipping, names))
    _add(connection, range(number, number + 1))


def take_memory(connection: Connection, number: int) -> None:
    """Let a memory be found no more."""
    connection.execute(_dialect(connection).remove, {"id": number})
    connection.execute(delete(t.clippings).where(t.clippings.c.id == number))


def _row(id: int, workflow_id: WorkflowId | None, clipping: Clipping, names: str) -> dict[str, Any]:
    return {
        "id": id,
        "workflow_id": workflow_id,
        "session_id": clipping.session_id,
        "seq": clipping.seq,
        "at": clipping.at,
        "kind": clipping.kind,
        "text": clipping.text,
        "names": names,
    }


def _add(connection: Connection, ids: range) -> None:
    connection.execute(_dialect(connection).add, {"first": ids.start, "last": ids.stop - 1})


# ── asking ──────────────────────────────────────────────────────────────────────────────────────────


def count_clippings(connection: Connection) -> int:
    memorized = select(func.count()).select_from(t.memories)
    clipped = select(func.coalesce(func.sum(t.shelves.c.clippings), 0))
    return connection.execute(memorized).scalar_one() + connection.execute(clipped).scalar_one()


def occurrences(
    connection: Connection, words: Collection[str], total: int, *, rarest: int, most: int, within: range = EVERYWHERE
) -> dict[str, Occurrences]:
    """Where each of these words occurs, for the `rarest` of them that occur at all; the others are only counted."""
    asked = _dialect(connection)
    counts = {word: connection.execute(asked.count, {"word": _quoted(word)}).scalar_one() for word in words}
    found = {word: Occurrences(count, {}) for word, count in counts.items()}
    for word in _telling(counts, total)[:rarest]:
        place = {"first": within.start, "last": within.stop - 1, "most": most, "word": _quoted(word)}
        most_possible = _most_possible(connection, counts[word], total)
        rows = connection.execute(asked.find, place).all()
        found[word] = Occurrences(counts[word], {id: strength / most_possible for id, strength in rows})
    return found


def _telling(counts: Mapping[str, int], total: int) -> list[str]:
    """The words that occur, the rarest first, without those that are nearly everywhere, unless all are."""
    known = sorted((word for word in counts if counts[word]), key=lambda word: (counts[word], word))
    common = max(SMALL, total // COMMON)
    return [word for word in known if counts[word] <= common] or known


def _quoted(word: str) -> str:
    return f'"{word}"'


def _most_possible(connection: Connection, count: int, total: int) -> float:
    """FTS5 multiplies by the word's rarity, which is ours to weigh."""
    if connection.dialect.name != "sqlite":
        return 1.0
    rarity = math.log((total - count + 0.5) / (count + 0.5)) if 2 * count < total else 0.0
    # A word that is everywhere has a rarity of next to nothing there.
    return _SATURATION * max(rarity, 1e-6)


def clippings_with(connection: Connection, ids: Collection[int]) -> dict[int, ClippingRow]:
    found = connection.execute(select(t.clippings).where(t.clippings.c.id.in_(ids)))
    return {row.id: _read(row) for row in found}


def latest_clippings(
    connection: Connection, kinds: Collection[ClippingKind], limit: int, **of: str
) -> list[ClippingRow]:
    """The newest clippings of some kinds, of one workflow or session, newest first."""
    query = select(t.clippings).where(t.clippings.c.kind.in_(kinds), *(t.clippings.c[key] == of[key] for key in of))
    return [_read(row) for row in connection.execute(query.order_by(t.clippings.c.id.desc()).limit(limit))]


def clippings_of_event(connection: Connection, workflow_id: WorkflowId, seq: int) -> list[ClippingRow]:
    query = select(t.clippings).where(t.clippings.c.workflow_id == workflow_id, t.clippings.c.seq == seq)
    return [_read(row) for row in connection.execute(query.order_by(t.clippings.c.id))]


def shelf_of(connection: Connection, workflow_id: WorkflowId) -> range:
    """The ids that the clippings of a workflow have."""
    query = select(t.shelves.c.number).where(t.shelves.c.workflow_id == workflow_id)
    number = connection.execute(query).scalar()
    return range(0) if number is None else range(number * SHELF, (number + 1) * SHELF)


def _read(row: Row[Any]) -> ClippingRow:
    return ClippingRow(**{field.name: getattr(row, field.name) for field in fields(ClippingRow)})
