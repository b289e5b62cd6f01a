"""Task groups of drivers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def tasks_for_the_body() -> AsyncGenerator[TaskGroup]:
    """Open a task group that is cancelled at the end of its body, and raise the body's own exception unchanged."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised below
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
