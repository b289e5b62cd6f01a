"""The machine's own time, and how much of it the machine was asleep."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from segue.model.clock import NEVER_AWAY, Absences

WORTH_A_NOTE = timedelta(seconds=60)
"""A clock that is put right by less was not away."""


class SystemClock:
    """Clock that separates suspended time from silence, by comparison with a clock that stands still during suspend."""

    def __init__(self, awake: Callable[[], float] = time.monotonic) -> None:
        self._awake = awake
        self._ahead = self._lead()
        self._absences: Absences = NEVER_AWAY

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def away_since(self, moment: datetime) -> timedelta:
        lead = self._lead()
        if lead - self._ahead > WORTH_A_NOTE:
            self._absences = self._absences.noticed(self.now(), lead - self._ahead)
            self._ahead = lead
        return self._absences.since(moment)

    def _lead(self) -> timedelta:
        """Return the lead of the time of day over the clock that stands still during suspend."""
        return timedelta(seconds=time.time() - self._awake())
