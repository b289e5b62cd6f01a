"""Jobs that run beside a body, and end with it."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from segue.model.clock import Clock

A = TypeVar("A")
B = TypeVar("B")


@asynccontextmanager
async def alongside(*jobs: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[TaskGroup]:
    """Run jobs beside the body and end them with it; an error comes out as itself, not in a group."""
    try:
        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(job)
            yield group
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


@asynccontextmanager
async def within(clock: Clock, seconds: float) -> AsyncGenerator[None]:
    """Limit the body's time by a clock that tests can advance; at the end of the time the body is cancelled, and no
    error is raised."""
    with anyio.CancelScope() as scope:
        async with alongside(lambda: cancel_after(clock, seconds, scope)):
            yield


async def cancel_after(clock: Clock, seconds: float, scope: anyio.CancelScope) -> None:
    """Sleep for this long, then cancel the scope."""
    await clock.sleep(seconds)
    scope.cancel()


@asynccontextmanager
async def cancelled_by(event: anyio.Event) -> AsyncGenerator[None]:
    """Cancel the body when the event is set; the code after it goes on, and no error is raised."""

    async def cancel() -> None:
        await event.wait()
        scope.cancel()

    with anyio.CancelScope() as scope:
        async with alongside(cancel):
            yield


async def first_of(*jobs: Callable[[], Coroutine[Any, Any, A]]) -> A:
    """Return the result of the job that ends first, and cancel the others."""
    results: list[A] = []

    async def run(job: Callable[[], Coroutine[Any, Any, A]], scope: anyio.CancelScope) -> None:
        results.append(await job())
        scope.cancel()

    with anyio.CancelScope() as scope:
        async with alongside(*(partial(run, job, scope) for job in jobs)):
            await anyio.sleep_forever()
    return results[0]


async def both(
    first: Callable[[], Coroutine[Any, Any, A]], second: Callable[[], Coroutine[Any, Any, B]]
) -> tuple[A, B]:
    """Run two jobs at once and return both results."""
    ones: list[A] = []
    others: list[B] = []

    async def ask_first() -> None:
        ones.append(await first())

    async def ask_second() -> None:
        others.append(await second())

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(ask_first)
            group.start_soon(ask_second)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return ones[0], others[0]
