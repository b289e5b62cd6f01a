"""Time, as something that can be handed in."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """What the house asks of time. Tests hand in one that they turn by hand."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None: ...
