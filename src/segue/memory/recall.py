"""Search in past work: by name where the query is one, else by terms."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from segue.journal import MemoryStore
from segue.journal.search import EVERYWHERE, SHELF, ClippingRow, SearchIndex
from segue.memory.ranking import RAREST, STRONGEST, Ranked, rank
from segue.memory.terms import query_terms
from segue.model.errors import NotFound, SessionNotFound, WorkflowNotFound
from segue.model.ids import WorkflowId
from segue.model.memories import STALE_AFTER, ClippingKind, Found, MemoryEntry, Provenance, RecallQuery, Verdict

BANDS: Mapping[Verdict, float] = {"recalled": 0.90, "several": 0.75}
"""Scores from which a result counts as recalled, or as one of several."""
SPARE = 20
"""Multiple of the limit that is looked up, since several results may have the same text."""
MEMORIZED = range(1, SHELF)
"""Numbers of the entries among the clippings."""
WIDTH = 280
SHOWN: tuple[ClippingKind, ...] = ("issue", "prompt", "message", "decision", "error", "checkpoint", "summary")
"""Kinds of clippings that are shown for a workflow that is searched by name."""
FINDINGS: tuple[ClippingKind, ...] = ("decision", "error")
"""Kinds of clippings that later studies repeat in new versions."""

_EVENT = re.compile(r"(\S+)#(\d+)")
_NAME = re.compile(r"\S+")


def answers(store: MemoryStore, question: RecallQuery, now: datetime) -> list[Found]:
    """Return the results for a query, the best first: what it names, else what a search finds, or both for a query
    of one token."""
    named = _direct(store, question, now)
    if not named:
        return _search(store, question, now)
    if not question.query.isalnum():
        return named
    # A single word may be the name of a workflow, or a search term: show both.
    has_word = _search(store, question, now)
    first = named[: question.limit - min(len(has_word), question.limit // 2)]
    shown = {(each.provenance, each.text) for each in first}
    return [*first, *(each for each in has_word if (each.provenance, each.text) not in shown)][: question.limit]


def judged(results: Sequence[Found]) -> tuple[Verdict, list[Found], list[Found]]:
    """Return the verdict of the best band with results, the results in that band, and the others; "not_found" if
    none is in a band."""
    for verdict, band in BANDS.items():
        if found := [each for each in results if each.score >= band]:
            return verdict, found, [each for each in results if each.score < band]
    return "not_found", [], list(results)


# ── by name ─────────────────────────────────────────────────────────────────────────────────────────


def _direct(store: MemoryStore, question: RecallQuery, now: datetime) -> list[Found]:
    """Return the results of the object that the query names, an entry, a workflow, a session or an event
    (`slug#12`); none if it names nothing."""
    name = question.query.strip()
    if not _NAME.fullmatch(name):
        return []
    asked = None if question.workflow is None else store.workflow(question.workflow).id
    for look in _LOOKS:
        found = look(store, name, question.limit, now)
        if found is not None:
            return [each for each in found if asked in (None, each.provenance.workflow_id)]
    return []


def _entry(store: MemoryStore, name: str, _limit: int, now: datetime) -> list[Found] | None:
    """Return the entry with this id or tag; None if there is none or it has expired."""
    kept = store.entries.named(name)
    return None if kept is None or is_over(kept.entry, now) else [_found_entry(kept.entry, "", 1.0, now)]


def _workflow(store: MemoryStore, name: str, limit: int, now: datetime) -> list[Found] | None:
    """Return a workflow's entries and latest clippings; None if no workflow has this name."""
    try:
        workflow = store.workflow(name)
    except WorkflowNotFound:
        return None
    entries = [kept.entry for kept in store.entries.of_workflow(workflow.id) if not is_over(kept.entry, now)]
    unique = _once(store.index.latest(SHOWN, limit * SPARE, workflow_id=workflow.id))
    return [
        *(_found_entry(entry, "", 1.0, now) for entry in entries),
        *(_found(row, workflow.slug, "", 1.0, now) for row in unique),
    ][:limit]


def _session(store: MemoryStore, name: str, limit: int, now: datetime) -> list[Found] | None:
    """Return a session's latest clippings; None if no session has this id."""
    try:
        session = store.session(name)
    except SessionNotFound:
        return None
    slug = store.workflow(session.workflow_id).slug
    unique = _once(store.index.latest(SHOWN, limit * SPARE, session_id=session.id))
    return [_found(row, slug, "", 1.0, now) for row in unique][:limit]


def _event(store: MemoryStore, name: str, limit: int, now: datetime) -> list[Found] | None:
    """Return the clippings of the event `slug#12`; None if the name has another form or the workflow is unknown.

    Raise if the event is missing or has no text.
    """
    if (match := _EVENT.fullmatch(name)) is None:
        return None
    try:
        workflow = store.workflow(match[1])
    except WorkflowNotFound:
        return None
    seq, head = int(match[2]), store.head(workflow.id)
    if not 0 < seq <= head:
        raise NotFound(f"{workflow.slug} has no event {seq}.", hint=f"Its events are numbered from 1 to {head}.")
    rows = store.index.of_event(workflow.id, seq)
    if not rows:
        raise NotFound(f"Event {seq} of {workflow.slug} has no words to recall.")
    return [_found(row, workflow.slug, "", 1.0, now) for row in rows][:limit]


_LOOKS: tuple[Callable[[MemoryStore, str, int, datetime], list[Found] | None], ...] = (
    _entry,
    _workflow,
    _session,
    _event,
)


# ── by words ────────────────────────────────────────────────────────────────────────────────────────


def _search(store: MemoryStore, question: RecallQuery, now: datetime) -> list[Found]:
    """Return the results of a search by terms, in one workflow or in all."""
    within = EVERYWHERE
    if question.workflow is not None:
        within = store.index.ids_of(store.workflow(question.workflow).id)
    return by_words(store, question.query, question.limit, now, within)


def by_words(store: MemoryStore, query: str, limit: int, now: datetime, within: range) -> list[Found]:
    """Return the clippings that match a query, the best first, no two with the same text."""
    total = store.index.count()
    best = ranked(store.index, query, total, limit * SPARE, within)
    rows = store.index.clippings([each.id for each in best])
    scores = {each.id: each.score for each in best}
    slugs: dict[WorkflowId, str] = {}
    unique = _once([rows[each.id] for each in best if each.id in rows])[:limit]
    return [_resolved(store, row, slugs, query, scores[row.id], now) for row in unique]


def ranked(index: SearchIndex, query: str, total: int, limit: int, within: range = EVERYWHERE) -> list[Ranked]:
    """Return the best of `total` clippings for a query, the best first."""
    terms = query_terms(query)
    found = index.occurrences(terms.all, total, rarest=RAREST, most=STRONGEST, within=within)
    return rank(found, frozenset(terms.words), total, limit)


def _once(rows: Sequence[ClippingRow]) -> list[ClippingRow]:
    """Remove repeated texts; of several versions of a finding, keep the latest."""
    unique: list[ClippingRow] = []
    for row in rows:
        place = next((place for place, other in enumerate(unique) if _same(row, other)), None)
        if place is None:
            unique.append(row)
        elif row.id > unique[place].id and _first_line(row) == _first_line(unique[place]):
            unique[place] = row
    return unique


def _same(one: ClippingRow, other: ClippingRow) -> bool:
    """Return True for the same text, or two versions of one finding."""
    if one.workflow_id != other.workflow_id:
        return False
    if one.text == other.text:
        return True
    if one.kind != other.kind or one.kind not in FINDINGS or one.seq != other.seq:
        return False
    return _first_line(one) in other.text or _first_line(other) in one.text


def _first_line(row: ClippingRow) -> str:
    """Return the first line of a clipping's text."""
    return row.text.partition("\n")[0]


def _resolved(
    store: MemoryStore, row: ClippingRow, slugs: dict[WorkflowId, str], query: str, score: float, now: datetime
) -> Found:
    """Build the result of a clipping, a memory entry's or a workflow's; `slugs` keeps the names of workflows."""
    if row.id < SHELF:
        kept = store.entries.numbered(row.id)
        assert kept is not None, "an entry and its clipping come and go together"
        return _found_entry(kept.entry, query, score, now)
    assert row.workflow_id is not None, "only entries belong to no workflow"
    if row.workflow_id not in slugs:
        slugs[row.workflow_id] = store.workflow(row.workflow_id).slug
    return _found(row, slugs[row.workflow_id], query, score, now)


def is_over(entry: MemoryEntry, now: datetime) -> bool:
    """Return True if the entry has expired."""
    return entry.expires_at is not None and entry.expires_at <= now


def _found(row: ClippingRow, slug: str, query: str, score: float, now: datetime) -> Found:
    """Build a result from a clipping, with an excerpt for the query."""
    return Found(
        kind=row.kind,
        text=row.text,
        excerpt=excerpt(row.text, query),
        at=row.at,
        score=round(score, 3),
        stale=now - row.at > STALE_AFTER,
        provenance=Provenance(workflow_id=row.workflow_id, workflow=slug, session_id=row.session_id, seq=row.seq),
    )


def _found_entry(entry: MemoryEntry, query: str, score: float, now: datetime) -> Found:
    """Build a result from a memory entry, with an excerpt for the query."""
    return Found(
        kind="memory",
        text=entry.content,
        excerpt=excerpt(entry.content, query),
        at=entry.updated_at,
        score=round(score, 3),
        stale=now - entry.updated_at > STALE_AFTER,
        provenance=entry.provenance,
    )


# ── excerpts ────────────────────────────────────────────────────────────────────────────────────────


def excerpt(text: str, query: str) -> str:
    """Return the part of a text with the most terms of the query, cut with "…"; a short text whole."""
    text = " ".join(text.split())
    if len(text) <= WIDTH:
        return text
    # A prefix of a term is enough, as with stemming.
    prefixes = [term[: max(4, len(term) - 3)] for term in query_terms(query).all]
    lowered = text.lower()
    places = sorted(match.start() for prefix in prefixes for match in re.finditer(re.escape(prefix), lowered))
    reach = WIDTH * 2 // 3
    begin = max(places, key=lambda place: sum(place <= other < place + reach for other in places), default=0)
    begin = text.rfind(" ", 0, max(0, begin - WIDTH // 6)) + 1
    part = text[begin : begin + WIDTH]
    return f"{'…' if begin else ''}{part}{'…' if begin + WIDTH < len(text) else ''}"
