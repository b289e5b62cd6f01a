"""Clock that is passed in as a parameter."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Source of time. Tests pass in one that they advance themselves."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def away_since(self, moment: datetime) -> timedelta:
        """Return how long the machine was suspended since `moment`; no agent or person could react in that time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Absences:
    """Suspensions of the machine, each with the time of its detection and its length, oldest first."""

    noted: tuple[tuple[datetime, timedelta], ...] = ()

    def noticed(self, at: datetime, length: timedelta) -> "Absences":
        """Return the absences with one more; the oldest are dropped."""
        return Absences(noted=(*self.noted[1 - MOST_NOTED :], (at, length)))

    def since(self, moment: datetime) -> timedelta:
        """Return the total length of the suspensions after `moment`."""
        return sum((length for at, length in self.noted if at > moment), timedelta())


MOST_NOTED = 100
"""Enough for every agent or person that is still awaited."""
NEVER_AWAY = Absences()
