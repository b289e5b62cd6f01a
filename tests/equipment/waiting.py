"""Waiting, by polling, for effects of other processes."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from time import monotonic, sleep

import anyio

WITHIN = 60.0
_LOOK_EVERY = 0.05


async def until(holds: Callable[[], object | Awaitable[object]], within: float = WITHIN) -> None:
    """Poll until the condition holds; it may be asynchronous."""
    with anyio.fail_after(within):
        while True:
            seen = holds()
            if await seen if isawaitable(seen) else seen:
                return
            await anyio.sleep(_LOOK_EVERY)


def wait_until(holds: Callable[[], object], within: float = WITHIN) -> None:
    """Poll until the condition holds, without an event loop."""
    deadline = monotonic() + within
    while not holds():
        assert monotonic() < deadline, f"the condition did not hold within {within:g} seconds"
        sleep(_LOOK_EVERY)
