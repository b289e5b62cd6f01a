"""Copy of a worktree's index with current file times, kept beside the user's index for the next checkpoint.

To detect an unchanged file, git compares its times with those in the index; it must read files that are as new as the
index itself. After a checkout these are thousands, at every call. The user's own `git status` would rewrite the index,
which makes the files older than it; a checkpoint leaves that index alone, and keeps its own rewritten copy.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import time_ns

_FOLDER = "segue"


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """Content of an index, and the time of its last write in nanoseconds."""

    content: bytes
    written: int

    @property
    def digest(self) -> str:
        return sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True)
class Loan:
    """Copy of an index that git may write to."""

    copy: Path
    written: int
    shelf: Path
    """Directory in which it can be kept."""
    source: str
    """Digest of the user's index; a kept copy is valid for this one only."""


def lend(real: Path, copy: Path) -> Loan | None:
    """Copy the user's index, or the kept copy for it; return None if there is no index."""
    users = _read(real)
    if users is None:
        return None
    shelf, source = real.parent / _FOLDER, users.digest
    index = _kept(shelf, source) or users
    _write(copy, index)
    return Loan(copy, index.written, shelf, source)


def keep(loan: Loan) -> None:
    """Keep the copy for the next time if git has rewritten it. An error of the disk only costs time."""
    with suppress(OSError):
        index = _read(loan.copy)
        if index and index.written != loan.written:
            _put(loan, index)


def _name(source: str, index: SavedIndex) -> str:
    """Return a name from all properties, so that any damage or change is detected."""
    return f"{source}-{index.written}-{index.digest}"


def _kept(shelf: Path, source: str) -> SavedIndex | None:
    """Return the undamaged copy that is kept for this index, or None."""
    for file in shelf.glob(f"{source}-*"):
        index = _read(file)
        if index and file.name == _name(source, index):
            return index
    return None


def _put(loan: Loan, index: SavedIndex) -> None:
    """Write the copy atomically, and remove earlier ones."""
    loan.shelf.mkdir(exist_ok=True)
    before = list(loan.shelf.iterdir())
    with NamedTemporaryFile(dir=loan.shelf, delete=False) as file:
        # File times come from the clock of the file server, which may be behind ours.
        behind = max(0, time_ns() - os.fstat(file.fileno()).st_mtime_ns)
    index = replace(index, written=index.written - behind)
    unfinished = Path(file.name)
    _write(unfinished, index)
    unfinished.replace(loan.shelf / _name(loan.source, index))
    for old in before:
        old.unlink(missing_ok=True)


def _read(file: Path) -> SavedIndex | None:
    """Return a file's content and time, or None if it is absent; git only replaces an index, so both fit together."""
    try:
        with file.open("rb") as opened:
            return SavedIndex(opened.read(), os.fstat(opened.fileno()).st_mtime_ns)
    except FileNotFoundError:
        return None


def _write(file: Path, index: SavedIndex) -> None:
    """Write an index with its time, which git uses to detect files that may have changed."""
    file.write_bytes(index.content)
    os.utime(file, ns=(index.written, index.written))
