"""Makes the retries that are due. They stand in the database, so that a server that was started anew finds them too."""

import logging
from datetime import datetime

import anyio

from segue.journal.rows import WorkflowRow, next_retry
from segue.model.errors import SegueError
from segue.orchestrator.alongside import alongside
from segue.orchestrator.house import House
from segue.orchestrator.resuming import Resuming

log = logging.getLogger("segue")

AFTER_TROUBLE = 60.0
"""Seconds until the next look, when the last one went wrong inside Segue."""


async def dispatch_forever(resuming: Resuming) -> None:
    house = resuming.house
    while True:
        # Made before the look, so that what is scheduled meanwhile is not missed.
        house.retry_scheduled = anyio.Event()
        try:
            row = await house.journal.read(next_retry)
            if row is None:
                await house.retry_scheduled.wait()
            elif await _has_come(house, row):
                await _make(resuming, row)
        except Exception:  # a server that does not try again what it promised to would leave it stuck
            log.exception("a retry could not be made; the next look comes in a minute")
            await house.clock.sleep(AFTER_TROUBLE)


async def _has_come(house: House, row: WorkflowRow) -> bool:
    """Sleep until its time; false when something else was scheduled meanwhile."""
    assert row.retry_at is not None, "only those are looked for"
    with anyio.CancelScope() as scope:
        async with alongside(lambda: _cancel_when_scheduled(house, scope)):
            await house.clock.sleep((row.retry_at - house.clock.now()).total_seconds())
            return True
    return False


async def _cancel_when_scheduled(house: House, scope: anyio.CancelScope) -> None:
    await house.retry_scheduled.wait()
    scope.cancel()


async def _make(resuming: Resuming, row: WorkflowRow) -> None:
    due = row.retry_at
    assert due is not None, "only those are looked for"
    try:
        await resuming.try_again(row, due)
    except SegueError as error:
        await _call_off(resuming.house, row, due, error)


async def _call_off(house: House, row: WorkflowRow, due: datetime, error: SegueError) -> None:
    """It cannot be made, and would not be able to in a moment either: a person has to look."""
    reason = f"{error.message} {error.hint}".strip()
    state = await house.journal.state(row.id)
    await house.journal.transact(
        row.id, lambda t: t.cancel_retry(state, reason) if t.workflow.retry_at == due else None
    )
    house.kept_environments.pop(row.id, None)
