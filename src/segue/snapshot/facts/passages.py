"""The lines in which names stood, cut so that they can be told."""

import re
from collections.abc import Iterator

from segue.model.facts import NameFact, Passage, Speaker
from segue.snapshot.facts import names as n
from segue.snapshot.facts.weights import weight

MOST_NAMES = 500
LONGEST = 140
SHORTEST = 60
"""A shorter line explains nothing; what follows it is taken too."""
MOST_LINES = 4
ENDLESS = 2000
SPEAKERS: dict[n.Place, Speaker] = {
    n.USER: "user",
    n.AGENT: "agent",
    n.THOUGHT: "thought",
    n.EDIT: "edit",
    n.COMMAND: "command",
    n.LOOK: "look",
    n.READ: "read",
    n.OUTPUT: "output",
    n.FOUND: "found",
    n.VERSIONS: "output",
    n.OTHER: "other",
    n.SUMMARY: "summary",
}
_PROSE = frozenset({n.USER, n.AGENT, n.THOUGHT, n.SUMMARY})
_MARK = re.compile(r"^(?:[-*+•>]|\d+\.)\s+|^[+-](?=\S)")
_HUNK = re.compile(r"^\+\+\+ b/|^@@ [-+\d, ]+ @@ ?")
_LINE_NUMBER = re.compile(r"^\s*\d+\s*[→│|\t]\s?")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")


def likely_names(names: n.Names, lines: int, asked: int) -> list[tuple[str, n.Sighting, float]]:
    """The names that are likeliest to be needed again, the likeliest first."""
    weighed = [(key, sighting, weight(sighting, lines, asked)) for key, sighting in names.sightings.items()]
    weighed.sort(key=lambda each: (-each[2], each[0]))
    return weighed[:MOST_NAMES]


def tell(names: n.Names, lines: int, asked: int) -> tuple[tuple[NameFact, ...], tuple[Passage, ...]]:
    likely = likely_names(names, lines, asked)
    facts = tuple(
        NameFact(name=sighting.name, path=sighting.path, weight=share, last=max(sighting.last))
        for _, sighting, share in likely
    )
    found = {passage.text: passage for _, sighting, _ in likely for passage in _passages(sighting, names)}
    return facts, tuple(sorted(found.values(), key=lambda passage: (passage.number, passage.text)))


def _passages(sighting: n.Sighting, names: n.Names) -> Iterator[Passage]:
    for place, spot in sighting.spots.items():
        text = _telling(sighting.name, spot, place in _PROSE, names)
        if len(text) > len(sighting.name) + 8:
            yield Passage(number=spot.number, speaker=SPEAKERS[place], text=text, source=spot.source)


def _telling(name: str, spot: n.Spot, prose: bool, names: n.Names) -> str:
    text = _plain(_near(spot.line, name), names)
    for following in spot.lines[spot.at + 1 : spot.at + 1 + MOST_LINES]:
        if len(text) >= SHORTEST:
            break
        text = f"{text} {_plain(following[:LONGEST], names)}".strip()
    if prose:
        text = next((part for part in _SENTENCE_END.split(text) if name in part), text)
    return _around(text, name)


def _near(line: str, name: str) -> str:
    """A line that goes on for ever, as of minified code, is looked at only around the name."""
    if len(line) <= ENDLESS:
        return line
    at = max(0, line.find(name.rsplit("/", 1)[-1]))
    return line[max(0, at - ENDLESS // 2) : at + ENDLESS // 2]


def _plain(line: str, names: n.Names) -> str:
    line = _HUNK.sub("", _LINE_NUMBER.sub("", line))
    return _MARK.sub("", " ".join(names.shortened(line).split()))


def _around(text: str, name: str) -> str:
    """The text, or the part of it around the name, cut between words and marked where it is cut."""
    if len(text) <= LONGEST:
        return text
    at = max(0, text.find(name))
    begin = max(0, min(at - (LONGEST - len(name)) // 2, len(text) - LONGEST))
    part = text[begin : begin + LONGEST]
    if begin:
        part = "…" + part.split(" ", 1)[-1]
    if begin + LONGEST < len(text):
        part = part.rsplit(" ", 1)[0] + "…"
    return part
