"""The request at the length that there is room for: whole, or along its own headings and lists."""

import re

from segue.model.facts import Ask
from segue.resume.tokens import weigh

_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$|[A-Z][\w ]{2,40}:\s*$)")
_BOUNDARY = re.compile(r"(?<=[.!?。！？])\s+")
HALF = 0.5
"""Share of the budget up to which the request stands whole."""
CUT = "[… {count} more characters of the request: --expand {number}]"


def shortened(ask: Ask, room: float) -> str:
    """Return the request word for word if it fits, else whole lines and sentences of it, headings and first lines
    first."""
    text = ask.text.strip()
    if weigh(text) <= room:
        return text
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip()]
    left = room - 20
    kept: dict[tuple[int, int], str] = {}
    lines = {(at, index): line for at, block in enumerate(blocks) for index, line in enumerate(_parts(block))}
    # The first lines of every block come before the second lines of any.
    for place in sorted(lines, key=lambda place: (_rank(place[1], lines[place]), place)):
        cost = weigh(lines[place]) + 1
        if cost <= left:
            kept[place] = lines[place]
            left -= cost
    told: list[str] = []
    before: tuple[int, int] | None = None
    for place in sorted(lines):
        if place not in kept:
            if told and told[-1] != "[…]":
                told.append("[…]")
            continue
        if before is not None and place[0] != before[0] and told[-1] != "[…]":
            told.append("")
        told.append(kept[place])
        before = place
    missing = len(text) - sum(map(len, kept.values()))
    return "\n".join([*told, CUT.format(count=missing, number=ask.number)])


def _parts(block: str) -> list[str]:
    """Split a block into lines, and a long line into its sentences."""
    return [
        part
        for line in block.split("\n")
        if line.strip()
        for part in (_BOUNDARY.split(line) if len(line) > 400 else [line])
    ]


def _rank(index: int, line: str) -> int:
    """Return how early a line is taken: headings first, then by its place in its block."""
    return 0 if _HEADING.match(line) else min(index, 12)
