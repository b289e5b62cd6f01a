"""Directories that nobody else looks into, and that do not outlive their process for long.

What a killed process left is taken away by the server's sweep, and by the next one that opens such a directory for
secrets; each finds what lies in its own temporary directory.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from zlib import crc32

from segue.workspace.processes import identity

LONGEST_SOCKET = 100
"""Bytes that the path of a socket may have everywhere."""
SHORT = Path("/tmp")


@contextmanager
def private_directory(name: str, within: Path | None = None) -> Generator[Path]:
    """A directory for as long as the context lasts; what killed processes left is taken away first."""
    take_away_left()
    with owned_directory(name, within) as place:
        yield place


@contextmanager
def owned_directory(name: str, within: Path | None = None) -> Generator[Path]:
    """The same for what holds no secrets, and may lie until the next look at what was left."""
    place = Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-{_mark(os.getpid())}-", dir=within))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def room_for_socket(place: Path, name: str) -> Generator[Path]:
    """Where a socket can be: in this private directory, or in one with a shorter path."""
    if len(os.fsencode(place / name)) <= LONGEST_SOCKET:
        yield place / name
        return
    with private_directory("segue-door", SHORT) as short:
        yield short / name


def write_private(file: Path, content: str) -> None:
    """Write a new file that only its owner reads."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as stream:
        stream.write(content)


def take_away_left() -> None:
    """Those of processes that are gone, under whatever name."""
    for place in chain.from_iterable(each.glob("segue-*") for each in {Path(tempfile.gettempdir()), SHORT}):
        owner = re.fullmatch(r"segue-[a-z]+-(\d+)-([0-9a-f]*)-\w+", place.name)
        if owner is not None and _mark(int(owner[1])) != owner[2]:
            shutil.rmtree(place, ignore_errors=True)


def _mark(pid: int) -> str:
    """Tells a process from a later one of the same number; of one that is gone nothing is left."""
    owner = identity(pid)
    return f"{crc32(f'{owner.started} {owner.boot}'.encode()):08x}" if owner else ""
