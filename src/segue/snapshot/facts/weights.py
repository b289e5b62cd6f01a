"""How likely a name is to be needed again.

A name that stands in many places, and stood in one of them since the user last asked for something, is needed most; one
that was only seen in an output is needed least. The weights were fitted to recorded sessions of several agents; they
know kinds of places and no names.
"""

from math import exp, log1p

from segue.snapshot.facts import names as n

# How much it counts how often a name stood in each kind of place.
_PLACES: dict[n.Place, float] = {
    n.USER: 0.11,
    n.AGENT: 0.35,
    n.THOUGHT: 0.51,
    n.EDIT: -0.04,
    n.COMMAND: 0.13,
    n.LOOK: -0.02,
    n.READ: -0.33,
    n.OUTPUT: -0.30,
    n.FOUND: 0.08,
    n.VERSIONS: 0.31,
    n.OTHER: 0.13,
    n.SUMMARY: 0.10,
}
# And how much it counts besides that it stood there lately.
_LATELY_IN: dict[n.Place, float] = {n.EDIT: 0.33, n.AGENT: 0.19, n.THOUGHT: 0.17}
_TIMES, _JUST_NOW, _LATELY, _PATH, _FOLDER, _BASE = 0.79, 0.67, 0.65, 0.46, 0.72, -6.5
_MEANT, _SINCE_ASKED, _SAID_SINCE, _IN_THE_ASK = 1.04, 0.37, 0.34, 0.45
_SPOKEN = (n.USER, n.AGENT, n.THOUGHT, n.EDIT, n.COMMAND, n.LOOK)
"""Where a name stands because somebody meant it, and not because it was printed."""


def weight(sighting: n.Sighting, lines: int, asked: int) -> float:
    """From 0 to 1, after so many lines, of which `asked` is the one in which the user spoke last."""
    counts, lately = sighting.counts, sighting.last
    last = max(lately)
    score = _BASE + _TIMES * log1p(sum(counts))
    score += _JUST_NOW * _recency(last, lines, 0.05, 2) + _LATELY * _recency(last, lines, 0.3, 2)
    if sighting.path:
        score += _PATH + (_FOLDER if "/" in sighting.name else 0.0)
    for place, share in _PLACES.items():
        if count := counts[place]:
            score += share * log1p(count)
            if place in _LATELY_IN:
                score += _LATELY_IN[place] * _recency(lately[place], lines, 0.1, 4)
    score += _MEANT * any(counts[place] for place in _SPOKEN)
    score += _SINCE_ASKED * (last >= asked)
    score += _IN_THE_ASK * (lately[n.USER] >= max(asked, 1))
    score += _SAID_SINCE * (
        counts[n.AGENT] + counts[n.THOUGHT] > 0 and max(lately[n.AGENT], lately[n.THOUGHT]) >= asked
    )
    return 1 / (1 + exp(-score))


def _recency(last: int, lines: int, share: float, least: int) -> float:
    """1 for what was just said, half of it for what is a share of the session ago."""
    return 0.5 ** ((lines - last) / (share * lines + least))
