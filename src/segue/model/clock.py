"""Time, as something that can be handed in."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the house asks of time. Tests hand in one that they turn by hand."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def away_since(self, moment: datetime) -> timedelta:
        """How long the machine itself was asleep since then: nobody could give a sign, or an answer, meanwhile."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Absences:
    """When it was noticed that the machine had been asleep, and for how long, the oldest first."""

    noted: tuple[tuple[datetime, timedelta], ...] = ()

    def noticed(self, at: datetime, length: timedelta) -> "Absences":
        return Absences(noted=(*self.noted[1 - MOST_NOTED :], (at, length)))

    def since(self, moment: datetime) -> timedelta:
        return sum((length for at, length in self.noted if at > moment), timedelta())


MOST_NOTED = 100
"""Enough for whatever still waits for a sign or an answer."""
NEVER_AWAY = Absences()
