"""Diaries: notes of an agent or client about what it received and did, written to disk at once.

A journal cannot detect its own losses. So the rehearsal agent, a test's client and the demo keep diaries, which are
compared with the journal afterwards.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from segue.testing.rehearsal.line_file import LineFile, read_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class DiaryEntry:
    """Entry of a diary."""

    kind: str
    """The rehearsal agent writes: started, resumed, prompt, effect, answer, ended."""
    at: datetime
    details: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.details[name]

    def get(self, name: str) -> Any:
        """Return a detail of the entry, or None."""
        return self.details.get(name)


class Diary:
    """Writer of entries; when `write` returns, the entry is on disk."""

    def __init__(self, path: Path) -> None:
        self._lines = LineFile(path)
        self._bell = bell_of(path)

    def write(self, kind: str, **details: Any) -> None:
        """Append an entry, and wake the reader that waits at the bell, if there is one."""
        self._lines.append({"kind": kind, "at": datetime.now(UTC).isoformat(), **details})
        with suppress(OSError):
            bell = os.open(self._bell, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(bell, b".")
            finally:
                os.close(bell)

    def close(self) -> None:
        self._lines.close()


def bell_of(diary: Path) -> Path:
    """Return the path of the FIFO by which a diary's reader is woken at each entry."""
    return diary.with_suffix(".bell")


def read_diary(path: Path) -> list[DiaryEntry]:
    """Read all entries in order; an incomplete one, cut off by a crash, is left out."""
    return [_entry(dict(line)) for line in read_lines(path)]


def _entry(line: dict[str, Any]) -> DiaryEntry:
    """Return a line of the diary as an entry."""
    return DiaryEntry(kind=line.pop("kind"), at=datetime.fromisoformat(line.pop("at")), details=line)
