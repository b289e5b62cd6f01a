"""Choose the items of a context within a budget: the required ones, then the most valuable for their tokens.

An item loses most of its value where its terms stand in the context already, so the choice spreads over the session.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from segue.resume.tokens import weigh

LEAST_BUDGET, MOST_BUDGET, UNKNOWN_WINDOW = 4_000, 16_000, 12_000
SHARE_OF_WINDOW = 0.06
FAMILIAR = 0.35
"""Share of its value that an item keeps when all its terms stand in the context already."""
SUBJECT = 0.25
"""Value of a new term that the session was about, for each unit of its weight."""
FIXED = 36.0
"""Tokens added to the price of an item when it is weighed, so that the shortest do not win for being short."""


def budget_for(window: int | None) -> int:
    """Return the tokens that a context may take in a successor's window; a fixed number if the window is unknown."""
    if not window:
        return UNKNOWN_WINDOW
    return int(min(MOST_BUDGET, max(LEAST_BUDGET, SHARE_OF_WINDOW * window)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Line or sentence that a context can hold."""

    section: str
    order: tuple[float, ...]
    """Its place among the items of its section."""
    text: str
    sources: tuple[int, ...] = ()
    value: float = 1.0
    must: bool = False
    """Stands at every budget."""
    words: frozenset[str] = frozenset()
    """Its terms; an item without any is always new."""
    key: str = ""
    needs: tuple[str, ...] = ()
    """Keys of items that stand wherever this one stands."""

    @property
    def cost(self) -> float:
        return weigh(self.text) + (4.0 if self.sources else 1.0)


@dataclass(slots=True)
class Choice:
    """The items chosen so far."""

    room: float
    caps: Mapping[str, float]
    """Tokens that a section may take in the first pass."""
    overhead: Mapping[str, float]
    """Tokens that it takes to open a section."""
    subjects: Mapping[str, float] = field(default_factory=dict[str, float])
    """Terms that the session was about, each with its weight."""
    chosen: list[Item] = field(default_factory=list[Item])
    used: float = 0.0
    spent: dict[str, float] = field(default_factory=dict[str, float])
    told: set[str] = field(default_factory=set[str])

    def take(self, item: Item) -> None:
        """Add an item, and count its cost and its words."""
        cost = self.price(item)
        self.chosen.append(item)
        self.used += cost
        self.spent[item.section] = self.spent.get(item.section, 0.0) + cost
        self.told |= item.words

    def price(self, item: Item) -> float:
        """Return an item's cost, with that of its section's heading if it is the section's first."""
        return item.cost + (0.0 if item.section in self.spent else self.overhead.get(item.section, 0.0))


def choose(items: Sequence[Item], choice: Choice) -> None:
    """Take the items that must stand, then the others by value per token while there is room; capped sections get the
    rest."""
    named = {item.key: item for item in items if item.key}
    taken: set[int] = set()
    for index, item in enumerate(items):
        if item.must:
            taken.add(index)
            choice.take(item)
    places = {id(item): index for index, item in enumerate(items)}
    heap = [(-_rate(item, choice), index) for index, item in enumerate(items) if index not in taken]
    heapify(heap)
    late: list[int] = []
    while heap:
        known, index = heappop(heap)
        item = items[index]
        if index in taken:
            continue
        rate = _rate(item, choice)
        # What was told meanwhile only lowers a rate, so an item that still beats the next one is the best.
        if heap and -rate > heap[0][0] and -rate > known:
            heappush(heap, (-rate, index))
            continue
        if not _fits(item, choice, named, taken, places, capped=True):
            late.append(index)
    for index in late:
        if index not in taken:
            _fits(items[index], choice, named, taken, places, capped=False)


def _rate(item: Item, choice: Choice) -> float:
    """Return an item's value per token; words that were told already count less."""
    if not item.words:
        return item.value / (FIXED + item.cost)
    new = item.words - choice.told
    value = item.value * (FAMILIAR + (1 - FAMILIAR) * len(new) / len(item.words))
    value += SUBJECT * sum(choice.subjects.get(word, 0.0) for word in new)
    return value / (FIXED + item.cost)


def _fits(
    item: Item, choice: Choice, named: Mapping[str, Item], taken: set[int], places: Mapping[int, int], *, capped: bool
) -> bool:
    """Take an item with those that must stand beside it, if there is room, and return True if it was taken."""
    group = [item, *_needed(item, named, taken, places)]
    cost = sum(choice.price(each) for each in group)
    if choice.used + cost > choice.room or (capped and _beyond_cap(item, cost, choice)):
        return False
    for each in group:
        taken.add(places[id(each)])
        choice.take(each)
    return True


def _needed(item: Item, named: Mapping[str, Item], taken: set[int], places: Mapping[int, int]) -> Iterable[Item]:
    """Return the items that must stand with this one and do not stand yet, each once."""
    found: dict[int, Item] = {}
    waiting = list(item.needs)
    while waiting:
        other = named.get(waiting.pop())
        if other is None or other is item or places[id(other)] in taken or id(other) in found:
            continue
        found[id(other)] = other
        waiting += other.needs
    return found.values()


def _beyond_cap(item: Item, cost: float, choice: Choice) -> bool:
    """Return True if this cost would bring the item's section over its cap; a section may have none."""
    cap = choice.caps.get(item.section)
    return cap is not None and choice.spent.get(item.section, 0.0) + cost > cap
