"""Jobs that run beside a body, and end with it."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def alongside(*jobs: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Run jobs beside the body and end them with it; an error comes out as itself, not in a group."""
    try:
        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(job)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
