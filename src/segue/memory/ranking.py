"""Ranking of clippings for a query. Pure: the occurrences of the terms are given."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from heapq import nlargest

from segue.journal.search import SHELF, Occurrences

RAREST = 24
"""Number of the rarest terms that are looked up."""
STRONGEST = 300
"""Number of clippings looked up for each term, those with the strongest match."""
BESIDE = {-2: 0.4, -1: 0.6, 1: 0.6, 2: 0.4}
"""Value of a term that occurs one or two clippings away."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Clipping with its score."""

    id: int
    score: float
    """Share of the query's terms, weighted by rarity, that occur here or in the neighbouring clippings, from 0 to 1."""


def rank(found: Mapping[str, Occurrences], counted: Collection[str], total: int, limit: int) -> list[Ranked]:
    """Return the best clippings first, at most `limit`, with a score from 0 to 1. Each term counts once per
    clipping, at its strongest occurrence in it or beside it."""
    order: defaultdict[int, float] = defaultdict(float)
    for occurrences in found.values():
        rarity = _rarity(occurrences, total)
        for id, strength in _spread(occurrences.strengths).items():
            order[id] += rarity * strength
    best = nlargest(limit, order, key=lambda id: (order[id], id))
    # Terms that are too common to be looked up do not count.
    sought = [each for word, each in found.items() if word in counted and (each.strengths or not each.clippings)]
    return [Ranked(id, _score(id, sought, total)) for id in best]


def _spread(strengths: Mapping[int, float]) -> dict[int, float]:
    """Return the strengths with those of clippings beside an occurrence, which are weaker; entries have no
    neighbours."""
    best = dict(strengths)
    for id, strength in strengths.items():
        # Entries have no neighbours; adjacent numbers of other clippings are adjacent events.
        if id >= SHELF:
            for distance, nearness in BESIDE.items():
                value = strength * nearness
                if value > best.get(id + distance, 0.0):
                    best[id + distance] = value
    return best


def _score(id: int, sought: Collection[Occurrences], total: int) -> float:
    """Return the share of the sought terms, weighed by rarity, that are in the clipping or beside it."""
    weights = [(_rarity(each, total), _presence(id, each.strengths)) for each in sought]
    whole = sum(rarity for rarity, _ in weights)
    return sum(rarity * presence for rarity, presence in weights) / whole if whole else 0.0


def _presence(id: int, strengths: Mapping[int, float]) -> float:
    """Return 1 if the term is in the clipping, less if it is only beside it, else 0."""
    if id in strengths or id < SHELF:
        return float(id in strengths)
    return max((nearness for distance, nearness in BESIDE.items() if id + distance in strengths), default=0.0)


def _rarity(occurrences: Occurrences, total: int) -> float:
    """Return the weight of a term: the higher, the fewer clippings have it."""
    count = occurrences.clippings
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5))
