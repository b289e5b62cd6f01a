"""Readers of the session files that agents keep for themselves. They read, line by line, and never write.

This page is the whole interface: `read(file)` detects the format and yields the file's content as a transcript. A line
of an unknown kind is counted, a broken line is skipped, and a file that is no session at all is refused.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from segue.drivers.native import claude, codex
from segue.drivers.native.lines import JsonObject, Tally, json_lines
from segue.model.errors import NotASession
from segue.model.transcript import Line, Said

Told = Iterator[tuple[int, str, Said]]
LOOKED_AT = 200
"""Lines that may come before the one that shows the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Format of an agent's file: how it is detected and read."""

    name: str
    knows: Callable[[JsonObject], bool]
    tell: Callable[[Iterator[tuple[int, JsonObject]], Tally], Told]


FORMATS = (
    Format(name="claude-code", knows=claude.knows, tell=claude.tell),
    Format(name="codex", knows=codex.knows, tell=codex.tell),
)


@dataclass(slots=True)
class Recording:
    """A session file that is being read."""

    format: str
    lines: Iterator[Line]
    tally: Tally = field(default_factory=Tally)


def read(file: Path) -> Recording:
    """Read a session file lazily; raise NotASession if its format is unknown. The tally is complete after the last
    line."""
    tally = Tally()
    objects = json_lines(file, tally)
    looked_at: list[tuple[int, JsonObject]] = []
    for each in objects:
        looked_at.append(each)
        for known in FORMATS:
            if known.knows(each[1]):
                told = known.tell(chain(looked_at, objects), tally)
                return Recording(
                    format=known.name, lines=(Line(number, said, at) for number, at, said in told), tally=tally
                )
        if len(looked_at) >= LOOKED_AT:
            break
    raise NotASession(f"{file.name} is not a session file that Segue can read{_why(tally)}.")


def _why(tally: Tally) -> str:
    """Return why a file is no session: empty, or no JSON lines; an empty text for other reasons."""
    if not tally.lines:
        return ": it is empty"
    if tally.broken == tally.lines:
        return ": it does not hold JSON lines"
    return ""
