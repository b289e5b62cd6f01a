"""Search index: clippings of the journal, and the occurrences of a term in them.

SQLite searches with FTS5, PostgreSQL with its own text search; questions and answers are the same for both.
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
"""Number of clippings on one shelf; the first shelf holds the memory entries."""
EVERYWHERE = range(1 << 62)

COMMON = 5
"""A term is common when more than one clipping in this many has it; a common term is not searched for."""
SMALL = 200
"""A term is never common when this many clippings or fewer have it."""
_SATURATION = 2.2
"""Largest contribution of one term in FTS5's ranking, as a multiple of the term's rarity (k1 + 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Progress of indexing a workflow's journal: the ids reserved for its clippings, and the last event indexed."""

    workflow_id: WorkflowId
    number: int | None
    """None before the first clipping."""
    seq: Seq
    clippings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippingRow:
    """Clipping as it is stored."""

    id: int
    workflow_id: WorkflowId | None
    session_id: SessionId | None
    seq: Seq | None
    at: datetime
    kind: ClippingKind
    text: str


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Occurrences of a term: the number of clippings, and its strength (0 to 1) in those where it is strongest."""

    clippings: int
    strengths: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Statements with which one engine writes and searches its index."""

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
# Punctuation becomes space first, because PostgreSQL would treat a path or a host as one word.
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


class SearchIndex:
    """Search index, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = _DIALECTS[connection.dialect.name]

    # ── indexing ────────────────────────────────────────────────────────────────────────────────────

    def behind(self) -> list[Shelf]:
        """Return the shelves of the workflows with events that are not indexed yet; a new workflow's has no number."""
        heads, shelves = t.journal_heads, t.shelves
        query = (
            select(heads.c.workflow_id, shelves.c.number, shelves.c.seq, shelves.c.clippings)
            .join(shelves, shelves.c.workflow_id == heads.c.workflow_id, isouter=True)
            .where(or_(shelves.c.seq.is_(None), shelves.c.seq < heads.c.seq))
            .order_by(heads.c.workflow_id)
        )
        return [
            Shelf(workflow_id=row.workflow_id, number=row.number, seq=row.seq or Seq(0), clippings=row.clippings or 0)
            for row in self._connection.execute(query)
        ]

    def has_other_rules(self, rules: int) -> bool:
        """Return True if anything was indexed by other rules than these."""
        query = select(t.shelves.c.number).where(t.shelves.c.rules != rules).limit(1)
        return self._connection.execute(query).first() is not None

    def clear(self) -> None:
        """Remove everything; it can be made again from the journal and the memory entries."""
        self._connection.execute(self._dialect.clear)
        self._connection.execute(delete(t.clippings))
        self._connection.execute(delete(t.shelves))

    def add(self, shelf: Shelf, upto: Seq, new: Sequence[Clipping], names: Sequence[str], rules: int) -> Shelf | None:
        """Insert a workflow's next clippings and return its new shelf; None, with nothing added, when another caller
        added them meanwhile."""
        number = shelf.number if shelf.number is not None else self._new_shelf(shelf.workflow_id, rules)
        moved = self._connection.execute(
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
            self._connection.execute(insert(t.clippings), rows)
            self._add(range(first, first + len(rows)))
        return Shelf(workflow_id=shelf.workflow_id, number=number, seq=upto, clippings=shelf.clippings + len(rows))

    def _new_shelf(self, workflow_id: WorkflowId, rules: int) -> int:
        """Insert an empty shelf for a workflow and return its number."""
        row = {"workflow_id": workflow_id, "seq": 0, "clippings": 0, "rules": rules}
        key = self._connection.execute(insert(t.shelves), row).inserted_primary_key
        assert key is not None, "the database numbers the shelves"
        return key[0]

    def put_memory(self, number: int, clipping: Clipping, names: str) -> None:
        """Index a memory entry by its present text, in place of an earlier one."""
        self.remove_memory(number)
        self._connection.execute(insert(t.clippings), _row(number, None, clipping, names))
        self._add(range(number, number + 1))

    def remove_memory(self, number: int) -> None:
        """Remove a memory entry from the index."""
        self._connection.execute(self._dialect.remove, {"id": number})
        self._connection.execute(delete(t.clippings).where(t.clippings.c.id == number))

    def _add(self, ids: range) -> None:
        """Add these clippings to the full-text index."""
        self._connection.execute(self._dialect.add, {"first": ids.start, "last": ids.stop - 1})

    # ── searching ───────────────────────────────────────────────────────────────────────────────────

    def count(self) -> int:
        """Return the number of clippings, memory entries included."""
        memorized = select(func.count()).select_from(t.memories)
        clipped = select(func.coalesce(func.sum(t.shelves.c.clippings), 0))
        return self._connection.execute(memorized).scalar_one() + self._connection.execute(clipped).scalar_one()

    def occurrences(
        self, words: Collection[str], total: int, *, rarest: int, most: int, within: range = EVERYWHERE
    ) -> dict[str, Occurrences]:
        """Return how often each of these terms occurs, and for the `rarest` of them also where, with a strength from
        0 to 1 by clipping id."""
        counts = {
            word: self._connection.execute(self._dialect.count, {"word": _quoted(word)}).scalar_one() for word in words
        }
        found = {word: Occurrences(count, {}) for word, count in counts.items()}
        for word in _telling(counts, total)[:rarest]:
            place = {"first": within.start, "last": within.stop - 1, "most": most, "word": _quoted(word)}
            strongest = self._strongest(counts[word], total)
            rows = self._connection.execute(self._dialect.find, place).all()
            found[word] = Occurrences(counts[word], {id: strength / strongest for id, strength in rows})
        return found

    def _strongest(self, count: int, total: int) -> float:
        """Return the largest possible strength. FTS5 multiplies by the term's rarity, which `memory` weighs itself."""
        if self._connection.dialect.name != "sqlite":
            return 1.0
        rarity = math.log((total - count + 0.5) / (count + 0.5)) if 2 * count < total else 0.0
        # FTS5 gives a term that is everywhere a rarity of nearly zero.
        return _SATURATION * max(rarity, 1e-6)

    def clippings(self, ids: Collection[int]) -> dict[int, ClippingRow]:
        """Return the clippings with these ids, by id; unknown ones are left out."""
        found = self._connection.execute(select(t.clippings).where(t.clippings.c.id.in_(ids)))
        return {row.id: _read(row) for row in found}

    def latest(self, kinds: Collection[ClippingKind], limit: int, **of: str) -> list[ClippingRow]:
        """Return the newest clippings of some kinds whose columns have the values `of`, newest first."""
        query = select(t.clippings).where(t.clippings.c.kind.in_(kinds), *(t.clippings.c[key] == of[key] for key in of))
        return [_read(row) for row in self._connection.execute(query.order_by(t.clippings.c.id.desc()).limit(limit))]

    def of_event(self, workflow_id: WorkflowId, seq: int) -> list[ClippingRow]:
        """Return the clippings of one event."""
        query = select(t.clippings).where(t.clippings.c.workflow_id == workflow_id, t.clippings.c.seq == seq)
        return [_read(row) for row in self._connection.execute(query.order_by(t.clippings.c.id))]

    def ids_of(self, workflow_id: WorkflowId) -> range:
        """Return the range of ids reserved for a workflow's clippings; empty if it has no shelf yet."""
        query = select(t.shelves.c.number).where(t.shelves.c.workflow_id == workflow_id)
        number = self._connection.execute(query).scalar()
        return range(0) if number is None else range(number * SHELF, (number + 1) * SHELF)


def _telling(counts: Mapping[str, int], total: int) -> list[str]:
    """Sort the terms that occur, the rarest first; leave out common ones unless all are common."""
    known = sorted((word for word in counts if counts[word]), key=lambda word: (counts[word], word))
    common = max(SMALL, total // COMMON)
    return [word for word in known if counts[word] <= common] or known


def _quoted(word: str) -> str:
    """Quote a term for the full-text query."""
    return f'"{word}"'


def _row(id: int, workflow_id: WorkflowId | None, clipping: Clipping, names: str) -> dict[str, Any]:
    """Build the row of a clipping."""
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


def _read(row: Row[Any]) -> ClippingRow:
    """Convert a row to a clipping."""
    return ClippingRow(**{field.name: getattr(row, field.name) for field in fields(ClippingRow)})
