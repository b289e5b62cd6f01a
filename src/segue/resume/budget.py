"""Choose what to tell within a budget: whatever brings most per token comes first.

A piece is worth what it says itself, and the names it brings along. A name counts once when it is told, and once more
when the words around it explain it; so what was told already adds nothing, and the choice spreads over the session.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heapify, heappop, heappush

from segue.model.naming import names_in
from segue.resume.tokens import weigh

NEAR = 100
"""How many characters around a name belong to it."""
_LONG_WORD = re.compile(r"[A-Za-z0-9_]{4,}")
_PLAIN_WORD = re.compile(r"(?<![\w/.\-@])[a-z]{4,}(?![\w/\-@(]|\.\w)")
UNEXPLAINED = 0.6
"""What it is worth to repeat a line that only names something: little, but more than nothing."""
ENOUGH_WORDS, ENOUGH_PLAIN = 4, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Something that can be told, or left out."""

    section: str
    order: tuple[float, ...]
    """Its place among the pieces of its section."""
    text: str
    value: float
    verbatim: bool = True
    """Whether the words stand together as they did in the session, so that they explain the names among them."""
    weight: float = 1.0
    """How much the names it brings count."""
    telling: bool = False
    """Whether it is told for its names alone, so that its words should explain them."""
    group: str = ""
    """Pieces of one group stand together under its name."""
    slot: str = ""
    """Of several pieces for one slot, a later one replaces the one before."""


@dataclass(slots=True)
class Choice:
    """What was chosen so far."""

    weights: Mapping[str, float]
    """What each name is worth, by its key."""
    overhead: Mapping[str, float]
    """What it costs to open a section."""
    budget: float
    used: float = 0.0
    chosen: list[Piece] = field(default_factory=list[Piece])
    told: dict[str, int] = field(default_factory=dict[str, int])
    """Names that are told: 1 if only named, 2 if explained."""
    opened: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class _Candidate:
    piece: Piece
    cost: float
    names: Mapping[str, int]
    next: "_Candidate | None"
    replaces: Piece | None = None


def choose(pieces: Sequence[Piece], choice: Choice) -> Choice:
    """Take pieces by value per token until nothing more fits."""
    heap = [
        (-_rate(candidate, choice), index, candidate) for index, candidate in enumerate(_candidates(pieces, choice))
    ]
    heapify(heap)
    following = len(heap)
    while heap:
        known, index, candidate = heappop(heap)
        rate = _rate(candidate, choice)
        # Gains only shrink while others are taken: what still beats the next one is the best.
        if heap and -rate > heap[0][0] and -rate > known:
            heappush(heap, (-rate, index, candidate))
            continue
        if rate <= 0:
            break
        if not _take(candidate, choice):
            continue
        if candidate.next is not None:
            heappush(heap, (-_rate(candidate.next, choice), following, candidate.next))
            following += 1
    return choice


def _candidates(pieces: Sequence[Piece], choice: Choice) -> Iterable[_Candidate]:
    slots: dict[str, list[Piece]] = {}
    for index, piece in enumerate(pieces):
        slots.setdefault(piece.slot or f"#{index}", []).append(piece)
    for alternatives in slots.values():
        following: _Candidate | None = None
        for position in range(len(alternatives) - 1, -1, -1):
            before = alternatives[position - 1] if position else None
            following = _candidate(alternatives[position], before, following, choice.weights)
        if following is not None:
            yield following


def _candidate(
    piece: Piece, replaces: Piece | None, following: _Candidate | None, weights: Mapping[str, float]
) -> _Candidate:
    cost = weigh(piece.text) + 1 - (weigh(replaces.text) + 1 if replaces else 0)
    return _Candidate(piece, max(cost, 0.5), told_names(piece, weights), following, replaces)


def told_names(piece: Piece, weights: Mapping[str, float]) -> Mapping[str, int]:
    """The known names that a piece brings: 1 if it only names them, 2 if its words explain them."""
    return {key: level if piece.verbatim else 1 for key, level in _levels(piece.text) if key in weights}


@lru_cache(maxsize=20_000)
def _levels(text: str) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for (key, _, _), at in names_in(text):
        if found.get(key, 0) < 2:
            found[key] = 2 if explained(text, at, len(key)) else 1
    return tuple(found.items())


def explained(text: str, at: int, length: int) -> bool:
    """Whether enough words stand around a name to say what it is about."""
    around = f"{text[max(0, at - NEAR) : at]} \0 {text[at + length : at + length + NEAR]}".lower()
    return (
        len(set(_LONG_WORD.findall(around))) >= ENOUGH_WORDS and len(set(_PLAIN_WORD.findall(around))) >= ENOUGH_PLAIN
    )


def _rate(candidate: _Candidate, choice: Choice) -> float:
    gain = candidate.piece.value - (candidate.replaces.value if candidate.replaces else 0.0)
    told = choice.told
    for key, level in candidate.names.items():
        known = told.get(key, 0)
        if level > known:
            share = UNEXPLAINED if level == 1 and candidate.piece.telling else level - known
            gain += choice.weights[key] * share * candidate.piece.weight
    return gain / candidate.cost


def _take(candidate: _Candidate, choice: Choice) -> bool:
    piece = candidate.piece
    headings = [key for key in (piece.section, piece.group) if key and key not in choice.opened]
    cost = candidate.cost + sum(choice.overhead.get(key, weigh(key) + 2) for key in headings)
    if choice.used + cost > choice.budget:
        return False
    if candidate.replaces is not None:
        choice.chosen.remove(candidate.replaces)
    choice.chosen.append(piece)
    choice.used += cost
    choice.opened.update(headings)
    for key, level in candidate.names.items():
        choice.told[key] = max(level, choice.told.get(key, 0))
    return True
