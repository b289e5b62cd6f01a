"""What git found out about the files of a worktree, kept beside the user's index for the next checkpoint.

To know that a file is unchanged, git compares its times with those in the index; a file as young as the index itself it
must read. After a checkout those are thousands, at every look. The user's own `git status` would write the index anew,
which makes the files older than it; a checkpoint leaves it alone, and keeps its own copy, which was written anew.
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
    """An index as it was at one moment: what is in it, and when it was written, in nanoseconds."""

    content: bytes
    written: int

    @property
    def digest(self) -> str:
        return sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True)
class Loan:
    """A copy of an index that git may write to."""

    copy: Path
    written: int
    shelf: Path
    """The directory where it can be kept."""
    source: str
    """The digest of the user's index: what is kept for it is of no use for any other."""


def lend(real: Path, copy: Path) -> Loan | None:
    """Copy the user's index, or what was kept for this very index; nothing if there is no index."""
    users = _read(real)
    if users is None:
        return None
    shelf, source = real.parent / _FOLDER, users.digest
    index = _kept(shelf, source) or users
    _write(copy, index)
    return Loan(copy, index.written, shelf, source)


def keep(loan: Loan) -> None:
    """Keep the copy for the next time, if git has written it anew. A disk that refuses costs time, and no more."""
    with suppress(OSError):
        index = _read(loan.copy)
        if index and index.written != loan.written:
            _put(loan, index)


def _name(source: str, index: SavedIndex) -> str:
    """Everything by which it is known again, so that no damage and no touch goes unseen."""
    return f"{source}-{index.written}-{index.digest}"


def _kept(shelf: Path, source: str) -> SavedIndex | None:
    for file in shelf.glob(f"{source}-*"):
        index = _read(file)
        if index and file.name == _name(source, index):
            return index
    return None


def _put(loan: Loan, index: SavedIndex) -> None:
    """Whole or not at all, in place of what was kept before."""
    loan.shelf.mkdir(exist_ok=True)
    before = list(loan.shelf.iterdir())
    with NamedTemporaryFile(dir=loan.shelf, delete=False) as file:
        # Files have their times from the clock of their disk, and over a network that may be behind ours.
        behind = max(0, time_ns() - os.fstat(file.fileno()).st_mtime_ns)
    index = replace(index, written=index.written - behind)
    unfinished = Path(file.name)
    _write(unfinished, index)
    unfinished.replace(loan.shelf / _name(loan.source, index))
    for old in before:
        old.unlink(missing_ok=True)


def _read(file: Path) -> SavedIndex | None:
    """Content and time of one file, though another may take its place meanwhile; git never writes into an index."""
    try:
        with file.open("rb") as opened:
            return SavedIndex(opened.read(), os.fstat(opened.fileno()).st_mtime_ns)
    except FileNotFoundError:
        return None


def _write(file: Path, index: SavedIndex) -> None:
    """With its time, by which git knows the files that may have changed unseen."""
    file.write_bytes(index.content)
    os.utime(file, ns=(index.written, index.written))
