"""Crash points: steps at which a test can kill the process."""

from collections.abc import Callable

_armed: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """Do nothing, unless a test has armed the crash points."""
    if _armed is not None:
        _armed(name)


def arm(plug: Callable[[str], None] | None) -> None:
    """Call `plug` with the name at every crash point from now on; None disarms."""
    global _armed
    _armed = plug
