"""Which paths and identifiers were spoken of, how often, where last, and in which words.

A name is a word that people write only when they mean one thing: a path of a file, or an identifier of several words
joined as code joins them. Every name remembers one line from each kind of place where it stood, so that it can be told
in the words that explain it.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from segue.model.naming import WORD, names_in_word

SHORT_LINE = 200
TELLING_LINE = 40
PLACES = (
    "user", "agent", "thought", "edit", "command", "look", "read", "output", "found", "versions", "other", "summary",
)  # fmt: skip
"""Where a name can stand: said by somebody, given to a tool, or in what a tool answered."""
Place = int
(USER, AGENT, THOUGHT, EDIT, COMMAND, LOOK, READ, OUTPUT, FOUND, VERSIONS, OTHER, SUMMARY) = range(len(PLACES))


class Spot(NamedTuple):
    """Where a name stood."""

    number: int
    """The line of the transcript, which may hold a text of many lines."""
    lines: list[str]
    at: int
    source: str
    """The file or command it belongs to."""
    tells: int

    @property
    def line(self) -> str:
        return self.lines[self.at]


@dataclass(slots=True)
class Sighting:
    """Everything remembered of one name."""

    name: str
    path: bool
    first: int
    counts: list[int] = field(default_factory=lambda: [0] * len(PLACES))
    """In how many lines of the transcript it stood, by kind of place."""
    last: list[int] = field(default_factory=lambda: [0] * len(PLACES))
    spots: dict[Place, Spot] = field(default_factory=dict[Place, Spot])
    """Where it stood last in each kind of place."""


# Where a thing is defined it is explained best, in whatever language.
_DEFINES = re.compile(
    r"[\s\d→│|:+-]*(?:export |public |private |protected |static |async |pub |abstract |final )*"
    r"(?:func|def|class|type|interface|struct|enum|trait|fn|function|module|//|#|/?\*|--) "
)


# What stands before a change in a diff; the last line of it is the one that the change follows.
_HEADERS = ("diff --git ", "--- a/")
_PLAIN_WORDS = re.compile(r"(?:(?<=[\s(\"'`#])|^)[a-z]{4,}(?=[\s,;:)\"'`]|\.?(?:\s|$))")
ENOUGH_PLAIN_WORDS = 3


def _tells(line: str) -> int:
    """How much a line tells: nothing but the name, something, in words, or what it is."""
    if line.startswith("+++ "):
        return 1
    if len(line) < TELLING_LINE or line.startswith(_HEADERS):
        return 0
    told = len(_PLAIN_WORDS.findall(line[:SHORT_LINE])) >= ENOUGH_PLAIN_WORDS
    return 1 + told + (_DEFINES.match(line) is not None)


def _is_better(spot: Spot, known: Spot) -> bool:
    """Of two that tell as much the latest is the best, and of several in one text the longer one."""
    if spot.number != known.number:
        return spot.tells >= known.tells
    length = len(spot.line)
    return length < SHORT_LINE and (spot.tells, length) > (known.tells, len(known.line))


@dataclass(slots=True)
class Names:
    """The names of a session, as they come up."""

    directory: str = ""
    sightings: dict[str, Sighting] = field(default_factory=dict[str, Sighting])

    def hear(self, number: int, place: Place, text: str, source: str = "") -> None:
        sightings = self.sightings
        lines = text.split("\n")
        for index, line in enumerate(lines):
            spot: Spot | None = None
            for word in WORD.findall(line):
                for key, name, path in names_in_word(word):
                    sighting = sightings.get(key)
                    if sighting is None:
                        told = self.relative(name) if path else name
                        sighting = sightings[key] = Sighting(told, path, number)
                    if sighting.last[place] != number:
                        sighting.last[place] = number
                        sighting.counts[place] += 1
                    spot = spot or Spot(number, lines, index, source, _tells(line))
                    known = sighting.spots.get(place)
                    if known is None or _is_better(spot, known):
                        sighting.spots[place] = spot

    def relative(self, path: str) -> str:
        """The path as it is told: from the directory of the work; a file in the directory itself keeps its name."""
        if not self.directory or not path.startswith(self.directory + "/"):
            return path.removeprefix("./")
        path = path[len(self.directory) + 1 :]
        return path if "/" in path else f"…/{self.directory.rsplit('/', 1)[-1]}/{path}"

    def shortened(self, line: str) -> str:
        """The line with its paths told that way."""
        if not self.directory or self.directory not in line:
            return line
        folder = self.directory.rsplit("/", 1)[-1]
        line = re.sub(re.escape(self.directory) + r"/(?=[\w.@+-]+/)", "", line)
        return line.replace(self.directory + "/", f"…/{folder}/")
