"""Dispatch of the retries that are due. They are in the database, so a server that starts later finds them too."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

import anyio

from segue.journal.rows import WorkflowRow
from segue.model.errors import SegueError
from segue.model.ids import WorkflowId
from segue.orchestrator.requests.resumption import Resuming
from segue.orchestrator.runtime.concurrency import cancelled_by
from segue.orchestrator.runtime.services import RuntimeServices, sleep_until
from segue.orchestrator.settling.run_ends import INTERNAL
from segue.protocol.admission import FilesMoving

log = logging.getLogger("segue")

AFTER_TROUBLE = timedelta(minutes=1)
"""Time until the next attempt after an internal error."""


async def dispatch_forever(resuming: Resuming) -> None:
    """Start each scheduled retry when it is due, until cancelled; log an error and query again after a minute."""
    services, troubled = resuming.services, dict[WorkflowId, datetime]()
    while True:
        # Made before the query, so that a retry that is scheduled meanwhile is noticed.
        services.retry_scheduled = anyio.Event()
        try:
            rows = await services.journal.workflows.scheduled_retries()
            troubled = {row.id: troubled[row.id] for row in rows if row.id in troubled}
            await _see_to(resuming, rows, troubled)
        except Exception:  # the loop must not end: no scheduled retry would be made
            log.exception("no retry could be made; the next look comes in a minute")
            await sleep_until(services.clock, services.clock.now() + AFTER_TROUBLE)


async def _see_to(resuming: Resuming, rows: Sequence[WorkflowRow], troubled: dict[WorkflowId, datetime]) -> None:
    """Wait for the earliest retry, or for one to be scheduled, and make it; postpone one that can neither be made nor
    cancelled, so that others come first."""
    services = resuming.services
    if not rows:
        await services.retry_scheduled.wait()
        return

    def hour(row: WorkflowRow) -> datetime:
        return max(_due(row), troubled.get(row.id, _due(row)))

    row = min(rows, key=hour)
    if not await _has_come(services, hour(row)):
        return
    try:
        await _make(resuming, row)
    except Exception:  # one failing retry must not block the others
        log.exception("the retry of %s could neither be made nor called off", row.slug)
        troubled[row.id] = services.clock.now() + AFTER_TROUBLE


def _due(row: WorkflowRow) -> datetime:
    """Return the time of the workflow's scheduled retry, which must exist."""
    assert row.retry_at is not None, "only those are looked for"
    return row.retry_at


async def _has_come(services: RuntimeServices, hour: datetime) -> bool:
    """Sleep until this time and return True; False if another retry was scheduled meanwhile."""
    async with cancelled_by(services.retry_scheduled):
        await sleep_until(services.clock, hour)
        return True
    return False


async def _make(resuming: Resuming, row: WorkflowRow) -> None:
    """Start the workflow's retry; wait if its files are being changed, and cancel the retry on any other error."""
    try:
        await resuming.try_again(row, _due(row))
    except FilesMoving:
        # The request that changes the files decides how the work goes on; the next query finds what is left.
        await resuming.launching.until_still(row.id)
    except SegueError as error:
        await _call_off(resuming.services, row, f"{error.message} {error.hint}".strip())
    except Exception:  # another attempt would fail too, and other retries wait
        log.exception("the retry of %s could not be made", row.slug)
        await _call_off(resuming.services, row, INTERNAL.reason)


async def _call_off(services: RuntimeServices, row: WorkflowRow, reason: str) -> None:
    """Cancel the workflow's retry if it is still the scheduled one, and drop the variables kept for it; a person has to
    resume."""
    state = await services.journal.state(row.id)
    await services.journal.transact(
        row.id, lambda t: t.cancel_retry(state, reason) if t.workflow.retry_at == row.retry_at else None
    )
    services.kept_environments.pop(row.id, None)
