"""Modes of the disk: its present rate of fsyncs.

On many machines, virtual ones above all, it has two moods that differ by a factor of twenty and change within seconds.
A figure taken across such a change says nothing, so each slice of work is taken between two looks at the disk.
"""

import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median
from time import perf_counter

FAST_ABOVE = 2_000
SLOW_BELOW = 600
"""Fsyncs per second. What lies between them is neither mood."""
LOOKS = 20
BLOCK = b"\0" * 1024


class Mode(StrEnum):
    """Speed of the disk's fsyncs."""

    FAST = "fast"
    SLOW = "slow"


def mode_of(fsyncs_per_second: float) -> Mode | None:
    if fsyncs_per_second > FAST_ABOVE:
        return Mode.FAST
    return Mode.SLOW if fsyncs_per_second < SLOW_BELOW else None


def look(directory: Path) -> float:
    """Return the median rate of fsyncs, each after a kilobyte appended to a file in this directory."""
    file = os.open(directory / "probe", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        # The median: on a busy machine a single fsync may wait for the processor instead of the disk.
        return 1 / median(_timed_fsync(file) for _ in range(LOOKS))
    finally:
        os.close(file)


def _timed_fsync(file: int) -> float:
    start = perf_counter()
    os.write(file, BLOCK)
    os.fsync(file)
    return perf_counter() - start


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceWork:
    """Result of one slice."""

    count: int
    seconds: float
    cpu: float
    """Seconds of processor time, of all threads together."""
    latencies: list[float] = field(default_factory=list)
    group: float = 1.0
    """Events in one commit, on average."""

    @property
    def rate(self) -> float:
        return self.count / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A short stretch of work, and the disk before and after it."""

    variant: str
    before: float
    after: float
    work: SliceWork

    @property
    def mode(self) -> Mode | None:
        """None when the disk was not in one mood all the time: such a slice is dropped."""
        mode = mode_of(self.before)
        return mode if mode is mode_of(self.after) else None
