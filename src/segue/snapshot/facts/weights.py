"""How likely a name is to be needed again.

A name that stands in many places and stood in one of them lately is needed most; one that was only seen in an output is
needed least. The weights were fitted to recorded sessions of several agents; they know kinds of places and no names.
"""

from math import exp, log1p

from segue.snapshot.facts import names as n

# For each kind of place: how much the number of times counts, and how much it counts that it was lately.
_PLACES: dict[n.Place, tuple[float, float]] = {
    n.USER: (0.33, 0.0),
    n.AGENT: (0.10, 0.0),
    n.THOUGHT: (0.51, 0.0),
    n.EDIT: (0.05, 0.73),
    n.COMMAND: (1.0, 0.0),
    n.LOOK: (0.10, 0.30),
    n.READ: (-0.53, -0.24),
    n.OUTPUT: (-0.72, 0.27),
    n.FOUND: (-0.29, -0.18),
    n.OTHER: (-0.32, 0.34),
    n.SUMMARY: (0.3, 0.0),
}
_TIMES, _JUST_NOW, _LATELY, _PATH, _BASE = 1.28, 0.69, 0.56, 1.52, -6.2


def weight(sighting: n.Sighting, lines: int) -> float:
    last = max(sighting.last)
    score = _BASE + _TIMES * log1p(sum(sighting.counts)) + (_PATH if sighting.path else 0.0)
    score += _JUST_NOW * _recency(last, lines, 0.05, 2) + _LATELY * _recency(last, lines, 0.3, 2)
    for place, (times, lately) in _PLACES.items():
        if count := sighting.counts[place]:
            score += times * log1p(count) + lately * _recency(sighting.last[place], lines, 0.1, 4)
    return 1 / (1 + exp(-score))


def _recency(last: int, lines: int, share: float, least: int) -> float:
    """1 for what was just said, half of it for what is a share of the session ago."""
    return 0.5 ** ((lines - last) / (share * lines + least))
