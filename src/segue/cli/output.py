"""How the commands speak: text for people, or one JSON document for programs."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from segue.model.errors import SegueError

Document = Mapping[str, Any]


class Output:
    """Output of a command; with `--json`, standard output holds JSON and nothing else."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def say(self, text: str = "") -> None:
        """Print a line for people; with --json print nothing."""
        if not self.as_json:
            _write(sys.stdout, text)

    def write(self, text: str) -> None:
        """Print text for people that continues the line; with --json print nothing."""
        if not self.as_json:
            sys.stdout.write(text)
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Print a line that must be seen in any case and is not the answer: on stderr with --json, else on stdout."""
        _write(sys.stderr if self.as_json else sys.stdout, text)

    def warn(self, text: str) -> None:
        """Print a line on stderr."""
        _write(sys.stderr, text)

    def result(self, document: object) -> None:
        """Print the answer as JSON; without --json print nothing."""
        if self.as_json:
            _write(sys.stdout, json.dumps(document, ensure_ascii=False))

    def complain(self, error: SegueError) -> None:
        """Print an error on stderr with its hint, and with --json on stdout as JSON too."""
        self.result({"error": {"code": error.code, "message": error.message, "hint": error.hint}})
        _write(sys.stderr, f"segue: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))


def _write(stream: Any, text: str) -> None:
    """Write a line, and flush the stream."""
    stream.write(text + "\n")
    stream.flush()


def plain(text: object, limit: int = 200) -> str:
    """Return text as one line of at most `limit` characters, without control characters that could move the cursor."""
    line = _line(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def reason(text: object, limit: int = 200) -> str:
    """Return a reason as one such line; of a long one the middle is cut, since its end names the cause."""
    line = _line(text)
    head = limit // 3
    return line if len(line) <= limit else f"{line[:head]}…{line[head + 1 - limit :]}"


def _line(text: object) -> str:
    """Return text as one line: unprintable characters become spaces, and spaces are collapsed."""
    return " ".join("".join(character if character.isprintable() else " " for character in str(text)).split())


def moment(at: str | None) -> str:
    """Return a time of the server in the local time zone; None becomes `unknown`."""
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else "unknown"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which gets an `s` unless the number is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def block(text: str) -> str:
    """Return several lines as written, without control characters that could move the cursor."""
    return "".join(c if c.isprintable() or c in "\n\t" else "" if c == "\r" else " " for c in text)


def beside(name: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield rows of a table with the name beside the first line; no lines give no rows."""
    for position, line in enumerate(lines):
        yield ("" if position else name), line


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return rows as aligned lines; the columns numbered in `right` are aligned right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return [line(row) for row in rows]
