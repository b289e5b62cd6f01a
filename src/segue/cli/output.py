"""How the commands speak: text for people, or one JSON document for programs."""

import json
import sys
from collections.abc import Mapping
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
    words = "".join(character if character.isprintable() else " " for character in str(text)).split()
    line = " ".join(words)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def moment(at: str | None) -> str:
    """A time of the server's, as the clock on the wall shows it."""
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else "unknown"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
