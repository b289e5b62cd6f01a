"""Private temporary directories, which are removed soon after their process ended.

The leftovers of a killed process are removed by the server's sweep, and by the next process that opens such a directory
for secrets, each in its own temporary directory.
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
"""Maximum bytes of a socket's path on all systems."""
SHORT = Path("/tmp")


@contextmanager
def private_directory(name: str, within: Path | None = None) -> Generator[Path]:
    """Create a directory for the time of the context; leftovers of killed processes are removed first."""
    take_away_left()
    with owned_directory(name, within) as place:
        yield place


@contextmanager
def owned_directory(name: str, within: Path | None = None) -> Generator[Path]:
    """Create a directory for data without secrets; leftovers may stay until the next removal."""
    place = Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-{_mark(os.getpid())}-", dir=within))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def room_for_socket(place: Path, name: str) -> Generator[Path]:
    """Yield a path for a socket: in this directory, or in a temporary one if the path would be too long."""
    if len(os.fsencode(place / name)) <= LONGEST_SOCKET:
        yield place / name
        return
    with private_directory("segue-door", SHORT) as short:
        yield short / name


def write_private(file: Path, content: str) -> None:
    """Write a new file that only its owner can read."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as stream:
        stream.write(content)


def take_away_left() -> None:
    """Remove the directories of processes that have ended."""
    for place in chain.from_iterable(each.glob("segue-*") for each in {Path(tempfile.gettempdir()), SHORT}):
        owner = re.fullmatch(r"segue-[a-z]+-(\d+)-([0-9a-f]*)-\w+", place.name)
        if owner is not None and _mark(int(owner[1])) != owner[2]:
            shutil.rmtree(place, ignore_errors=True)


def _mark(pid: int) -> str:
    """Return a mark that differs for a later process with the same number; empty for a process that has ended."""
    owner = identity(pid)
    return f"{crc32(f'{owner.started} {owner.boot}'.encode()):08x}" if owner else ""
