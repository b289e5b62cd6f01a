"""Slots for agents: a bound on the agents that are up at the same time, and the order of the runs that wait.

The queue starts the body of every queued run at once, in any order. The bodies wait here before they claim their runs:
a run that waits is still queued in the journal.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from itertools import count

import anyio


@dataclass(order=True, slots=True)
class _Turn:
    since: datetime
    number: int
    came: anyio.Event = field(default_factory=anyio.Event, compare=False)
    has_place: bool = field(default=False, compare=False)
    left: bool = field(default=False, compare=False)


class Slots:
    """Slots for agents; a free one goes to the run that has waited longest."""

    def __init__(self, most: int) -> None:
        """Begin with `most` free slots and nothing in line."""
        self._free = most
        self._line: list[_Turn] = []
        self._number = count()
        self._closed = False

    @asynccontextmanager
    async def one(self, since: datetime) -> AsyncGenerator[bool]:
        """Wait in line for a slot, by the time `since`, and free it afterwards; yield False, without a slot, once
        closed."""
        turn = _Turn(since, next(self._number))
        heappush(self._line, turn)
        self._give()
        try:
            await turn.came.wait()
            yield turn.has_place
        finally:
            turn.left = True
            if turn.has_place:
                self._free += 1
                self._give()

    def close(self) -> None:
        """Give out no further slots, and turn away the runs that wait."""
        self._closed = True
        self._give()

    def _give(self) -> None:
        """Give free slots to the first in line; once closed, wake all without one."""
        while self._line and (self._free or self._closed):
            turn = heappop(self._line)
            if turn.left:
                continue
            if not self._closed:
                self._free -= 1
                turn.has_place = True
            turn.came.set()
