"""How the commands speak: text for people, or one JSON document for programs."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from segue.model.errors import SegueError

Document = Mapping[str, Any]


class Output:
    """Where a command's words go: with `--json`, standard output holds JSON and nothing else."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def say(self, text: str = "") -> None:
        """Something for people."""
        if not self.as_json:
            _write(sys.stdout, text)

    def write(self, text: str) -> None:
        """Words for people that go on in the same line."""
        if not self.as_json:
            sys.stdout.write(text)
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Something that must be said in any case, and is not the answer."""
        _write(sys.stderr if self.as_json else sys.stdout, text)

    def warn(self, text: str) -> None:
        _write(sys.stderr, text)

    def result(self, document: object) -> None:
        """The answer, for programs."""
        if self.as_json:
            _write(sys.stdout, json.dumps(document, ensure_ascii=False))

    def complain(self, error: SegueError) -> None:
        """Why the command was refused or failed."""
        self.result({"error": {"code": error.code, "message": error.message, "hint": error.hint}})
        _write(sys.stderr, f"segue: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))


def _write(stream: Any, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


def plain(text: object, limit: int = 200) -> str:
    """One line that cannot move the cursor: what agents write is shown, not obeyed."""
    line = _line(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def reason(text: object, limit: int = 200) -> str:
    """The same for why something failed: programs say what happened first, and what was wrong last."""
    line = _line(text)
    head = limit // 3
    return line if len(line) <= limit else f"{line[:head]}…{line[head + 1 - limit :]}"


def _line(text: object) -> str:
    return " ".join("".join(character if character.isprintable() else " " for character in str(text)).split())


def moment(at: str | None) -> str:
    """A time of the server's, as the clock on the wall shows it."""
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else "unknown"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def block(text: str) -> str:
    """Several lines that cannot move the cursor, as they were written."""
    return "".join(c if c.isprintable() or c in "\n\t" else "" if c == "\r" else " " for c in text)


def beside(name: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Rows of a table: the name beside the first line, the others below it."""
    for position, line in enumerate(lines):
        yield ("" if position else name), line


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows as aligned lines; the columns named in `right` are set to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return [line(row) for row in rows]
