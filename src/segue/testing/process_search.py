"""Search of the process table for processes that other processes started."""

import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from segue.workspace.guardian import process_table

ON_LINUX = sys.platform == "linux"


def carrying(name: str, value: str) -> set[int]:
    """Return the living processes, without this one, that were started with this environment variable."""
    mark = f"{name}={value}".encode()
    return {pid for pid, words in _environments() if mark in words and pid != os.getpid()}


def _environments() -> list[tuple[int, list[bytes]]]:
    """Return each living process with its environment."""
    if ON_LINUX:
        return [(pid, _environment(pid)) for pid, process in process_table().items() if not process.ended]
    listing = subprocess.run(["ps", "-Eww", "-axo", "pid=,command="], capture_output=True, check=False).stdout
    return [(int(line.split(None, 1)[0]), line.split()) for line in listing.splitlines()]


def _environment(pid: int) -> list[bytes]:
    """Return the environment of a process; empty if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def left_over(find: Callable[[], set[int]], within: float) -> set[int]:
    """Wait until `find` finds no process, at most `within` seconds; return the processes that remain."""
    deadline = monotonic() + within
    while left := find():
        for pid in left:
            if not ends_within(pid, deadline - monotonic()):
                return find()
    return left


def ends_within(pid: int, seconds: float) -> bool:
    """Wait for the end of any process, not only a child; return True if it ended in time."""
    try:
        return _pidfd_ends(pid, max(0.0, seconds)) if ON_LINUX else _kqueue_ends(pid, max(0.0, seconds))
    except ProcessLookupError:
        return True


def _pidfd_ends(pid: int, seconds: float) -> bool:
    """Return True if the process ends in time, on Linux."""
    assert sys.platform == "linux"
    descriptor = os.pidfd_open(pid)
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def _kqueue_ends(pid: int, seconds: float) -> bool:
    """Return True if the process ends in time, on macOS."""
    assert sys.platform != "linux"
    queue = select.kqueue()
    try:
        interest = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
        return bool(queue.control([interest], 1, seconds))
    finally:
        queue.close()
