"""Choose what to tell within a budget: whatever brings most per token comes first.

A piece is worth what it says itself, and the names it brings along. A name counts once when it is told, and once more
when the words around it explain it; so what was told already adds nothing, and the choice spreads over the session.
"""

import re
from collections.abc import Mapping, Sequence
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
# What a name adds, by how it was told before and how it is told now: not at all, only named, explained.
_SAYING = ((0.0, 1.0, 2.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
_TELLING = ((0.0, UNEXPLAINED, 2.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece that waits to be told, what it costs and brings, and the longer one that may come after it."""

    piece: Piece
    cost: float
    names: Mapping[str, int]
    next: "Candidate | None"
    replaces: Piece | None = None


@dataclass(slots=True)
class Choice:
    """What was chosen so far."""

    weights: Mapping[str, float]
    """What each name is worth, by its key."""
    overhead: Mapping[str, float]
    """What it costs to open a section."""
    budget: float
    waiting: list[Candidate]
    """What was not told yet."""
    extra: Mapping[str, float] = field(default_factory=dict[str, float])
    """What some pieces, by their text, are worth besides."""
    used: float = 0.0
    chosen: list[Piece] = field(default_factory=list[Piece])
    told: dict[str, int] = field(default_factory=dict[str, int])
    """Names that are told: 1 if only named, 2 if explained."""
    opened: set[str] = field(default_factory=set[str])


def choose(choice: Choice) -> None:
    """Take pieces by value per token until nothing more fits; what did not fit goes on waiting."""
    room = choice.budget - choice.used
    heap = [
        (-_rate(candidate, choice), index, candidate)
        for index, candidate in enumerate(choice.waiting)
        if candidate.cost <= room
    ]
    choice.waiting = [candidate for candidate in choice.waiting if candidate.cost > room]
    heapify(heap)
    following = len(heap)
    while heap:
        known, index, candidate = heappop(heap)
        if choice.used + candidate.cost > choice.budget:
            choice.waiting.append(candidate)
            continue
        rate = _rate(candidate, choice)
        # Gains only shrink while others are taken: what still beats the next one is the best.
        if heap and -rate > heap[0][0] and -rate > known:
            heappush(heap, (-rate, index, candidate))
            continue
        if rate <= 0:
            break
        if not _take(candidate, choice):
            choice.waiting.append(candidate)
        elif candidate.next is not None:
            heappush(heap, (-_rate(candidate.next, choice), following, candidate.next))
            following += 1


def candidates(pieces: Sequence[Piece], weights: Mapping[str, float]) -> list[Candidate]:
    slots: dict[str, list[Piece]] = {}
    for index, piece in enumerate(pieces):
        slots.setdefault(piece.slot or f"#{index}", []).append(piece)
    return [_chain(alternatives, weights) for alternatives in slots.values()]


def _chain(alternatives: Sequence[Piece], weights: Mapping[str, float]) -> Candidate:
    """The first of several pieces for one slot, each with the one that may replace it."""
    *shorter, longest = alternatives
    chain = _candidate(longest, shorter[-1] if shorter else None, None, weights)
    for position in range(len(shorter) - 1, -1, -1):
        chain = _candidate(shorter[position], shorter[position - 1] if position else None, chain, weights)
    return chain


def _candidate(
    piece: Piece, replaces: Piece | None, following: Candidate | None, weights: Mapping[str, float]
) -> Candidate:
    cost = weigh(piece.text) + 1 - (weigh(replaces.text) + 1 if replaces else 0)
    return Candidate(piece, max(cost, 0.5), told_names(piece, weights), following, replaces)


def told_names(piece: Piece, weights: Mapping[str, float]) -> Mapping[str, int]:
    """The known names that a piece brings: 1 if it only names them, 2 if its words explain them."""
    found: dict[str, int] = {}
    for key, at in _names(piece.text):
        if key in weights and found.get(key, 0) < 2:
            found[key] = 2 if piece.verbatim and _explains(piece.text, at, len(key)) else 1
    return found


# A snapshot is examined when it is taken, and what it tells is compiled again when the work goes on.
@lru_cache(maxsize=20_000)
def _names(text: str) -> tuple[tuple[str, int], ...]:
    return tuple((key, at) for (key, _, _), at in names_in(text))


@lru_cache(maxsize=20_000)
def _explains(text: str, at: int, length: int) -> bool:
    return explained(text, at, length)


def explained(text: str, at: int, length: int) -> bool:
    """Whether enough words stand around a name to say what it is about."""
    around = f"{text[max(0, at - NEAR) : at]} \0 {text[at + length : at + length + NEAR]}".lower()
    return (
        len(set(_LONG_WORD.findall(around))) >= ENOUGH_WORDS and len(set(_PLAIN_WORD.findall(around))) >= ENOUGH_PLAIN
    )


def _rate(candidate: Candidate, choice: Choice) -> float:
    gain, told = _own_worth(candidate, choice), choice.told
    shares = _TELLING if candidate.piece.telling else _SAYING
    for key, level in candidate.names.items():
        if share := shares[told.get(key, 0)][level]:
            gain += choice.weights[key] * share * candidate.piece.weight
    return gain / candidate.cost


def _own_worth(candidate: Candidate, choice: Choice) -> float:
    piece, replaces, extra = candidate.piece, candidate.replaces, choice.extra
    worth = piece.value - (replaces.value if replaces else 0.0)
    if extra:
        worth += extra.get(piece.text, 0.0) - (extra.get(replaces.text, 0.0) if replaces else 0.0)
    return worth


def _take(candidate: Candidate, choice: Choice) -> bool:
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
