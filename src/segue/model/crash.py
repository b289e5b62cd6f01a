"""Crash points: places where a test may pull the plug."""

from collections.abc import Callable

_armed: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """A no-op, unless a test has armed it."""
    if _armed is not None:
        _armed(name)


def arm(plug: Callable[[str], None] | None) -> None:
    """Call `plug` at every crash point from now on; None disarms."""
    global _armed
    _armed = plug
