"""File of JSON lines that stays readable after its writer was killed."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Line = dict[str, Any]

# Marks a line that a killed writer left incomplete, so that readers can distinguish it from damage.
_TORN = b"\t#torn\n"


class LineFile:
    """Append-only file; when `append` returns, the line is on disk."""

    def __init__(self, path: Path) -> None:
        """Open or create the file, and mark an incomplete last line as torn."""
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not existed:
            _sync_directory(path.parent)
        self._seal()

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line, which is on disk when this returns."""
        self._write(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)

    def _seal(self) -> None:
        """End an incomplete last line with a mark, so that readers skip it."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            self._write(_TORN)

    def _write(self, data: bytes) -> None:
        """Append bytes, and write them to disk."""
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)


def read_lines(path: Path) -> list[Line]:
    """Read all complete lines of a file, which need not exist."""
    if not path.exists():
        return []
    lines = path.read_bytes().splitlines(keepends=True)
    return [_parse(line, number, path) for number, line in enumerate(lines, 1) if not _torn(line)]


def _torn(line: bytes) -> bool:
    """Return True if a line is incomplete or marked so."""
    return line.endswith(_TORN) or not line.endswith(b"\n")


def _parse(line: bytes, number: int, path: Path) -> Line:
    """Return a line as JSON; raise ValueError with its place if it is damaged."""
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"Line {number} of {path.name} is damaged: {error}") from error


def _sync_directory(path: Path) -> None:
    """Write a directory to disk, so that a power cut does not lose its new file."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
