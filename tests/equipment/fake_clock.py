"""A clock that tests advance by hand."""

from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count

import anyio
from anyio.lowlevel import checkpoint

from segue.model.clock import NEVER_AWAY

# Checkpoints after each step of the clock, so that a woken task can go back to sleep in between.
_ROUNDS = 20


class FakeClock:
    """`Clock` that stands still until it is advanced; sleepers wake in the order of their times."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime.now(UTC)
        self._number = count()
        self._absences = NEVER_AWAY
        self._sleepers: list[tuple[datetime, int, anyio.Event]] = []

    def now(self) -> datetime:
        return self._now

    def away_since(self, moment: datetime) -> timedelta:
        return self._absences.since(moment)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await checkpoint()
            return
        woken = anyio.Event()
        heappush(self._sleepers, (self._now + timedelta(seconds=seconds), next(self._number), woken))
        await woken.wait()

    async def advance(self, seconds: float) -> None:
        """Advance the time; each sleeper wakes at its own time."""
        await _let_others_work()
        end = self._now + timedelta(seconds=seconds)
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, woken = heappop(self._sleepers)
            woken.set()
            await _let_others_work()
        self._now = end
        await _let_others_work()

    def suspend(self, seconds: float) -> None:
        """Simulate a suspended machine: the time of day advances, and sleepers have as long to sleep as before."""
        away = timedelta(seconds=seconds)
        self._now += away
        self._absences = self._absences.noticed(self._now, away)
        self._sleepers = [(hour + away, number, woken) for hour, number, woken in self._sleepers]


async def _let_others_work() -> None:
    for _ in range(_ROUNDS):
        await checkpoint()
