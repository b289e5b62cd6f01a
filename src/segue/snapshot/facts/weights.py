"""How likely a name is to be needed again.

A name that stands in many places and stood in one of them lately is needed most; one that was only seen in an output is
needed least. The weights were fitted to recorded sessions of several agents; they know kinds of places and no names.
"""

from math import exp, log1p

from segue.snapshot.facts import names as n

# For each kind of place: how much the number of times counts, and how much it counts that it was lately.
_PLACES: dict[n.Place, tuple[float, float]] = {
    n.USER: (0.28, 0.08),
    n.AGENT: (0.37, 0.29),
    n.THOUGHT: (0.40, 0.28),
    n.EDIT: (0.02, 0.25),
    n.COMMAND: (0.18, 0.10),
    n.LOOK: (0.15, 0.14),
    n.READ: (-0.08, 0.06),
    n.OUTPUT: (-0.13, 0.06),
    n.FOUND: (0.09, 0.13),
    n.OTHER: (0.10, 0.15),
    n.SUMMARY: (0.10, 0.07),
}
_TIMES, _JUST_NOW, _LATELY, _PATH, _ACTIVE, _BASE = 0.76, 0.66, 0.59, 1.09, 1.02, -5.5
_SPOKEN = (n.USER, n.AGENT, n.THOUGHT, n.EDIT, n.COMMAND, n.LOOK)
"""Where a name stands because somebody meant it, and not because it was printed."""


def weight(sighting: n.Sighting, lines: int) -> float:
    last = max(sighting.last)
    score = _BASE + _TIMES * log1p(sum(sighting.counts)) + (_PATH if sighting.path else 0.0)
    score += _JUST_NOW * _recency(last, lines, 0.05, 2) + _LATELY * _recency(last, lines, 0.3, 2)
    if any(sighting.counts[place] for place in _SPOKEN):
        score += _ACTIVE
    for place, (times, lately) in _PLACES.items():
        if count := sighting.counts[place]:
            score += times * log1p(count) + lately * _recency(sighting.last[place], lines, 0.1, 4)
    return 1 / (1 + exp(-score))


def _recency(last: int, lines: int, share: float, least: int) -> float:
    """1 for what was just said, half of it for what is a share of the session ago."""
    return 0.5 ** ((lines - last) / (share * lines + least))
