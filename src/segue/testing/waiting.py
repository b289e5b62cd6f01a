"""Waiting for what another process does, and tells nobody."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from time import monotonic, sleep

import anyio

WITHIN = 60.0
_LOOK_EVERY = 0.05


async def until(holds: Callable[[], object | Awaitable[object]], within: float = WITHIN) -> None:
    """Look again and again, but not for ever; a look may take its time, too."""
    with anyio.fail_after(within):
        while True:
            if await _seen(holds()):
                return
            await anyio.sleep(_LOOK_EVERY)


def wait_until(holds: Callable[[], object], within: float = WITHIN) -> None:
    """Like `until`, for those who have nothing else to do meanwhile."""
    deadline = monotonic() + within
    while not holds():
        assert monotonic() < deadline, f"what was waited for did not come within {within:g} seconds"
        sleep(_LOOK_EVERY)


async def _seen(look: object | Awaitable[object]) -> object:
    return await look if isawaitable(look) else look
