"""Makes the retries that are due. They stand in the database, so that a server that was started anew finds them too."""

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
"""Until the next look at what went wrong inside Segue."""


async def dispatch_forever(resuming: Resuming) -> None:
    """Start each scheduled retry when it is due, until cancelled; an error is logged and the look repeated."""
    services, troubled = resuming.services, dict[WorkflowId, datetime]()
    while True:
        # Made before the look, so that what is scheduled meanwhile is not missed.
        services.retry_scheduled = anyio.Event()
        try:
            rows = await services.journal.workflows.scheduled_retries()
            troubled = {row.id: troubled[row.id] for row in rows if row.id in troubled}
            await _see_to(resuming, rows, troubled)
        except Exception:  # a server that does not try again what it promised to would leave it stuck
            log.exception("no retry could be made; the next look comes in a minute")
            await sleep_until(services.clock, services.clock.now() + AFTER_TROUBLE)


async def _see_to(resuming: Resuming, rows: Sequence[WorkflowRow], troubled: dict[WorkflowId, datetime]) -> None:
    """Make the one that comes next when its time has come; those that cannot even be called off let others go first."""
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
    except Exception:  # whatever it is, the others must have their turn
        log.exception("the retry of %s could neither be made nor called off", row.slug)
        troubled[row.id] = services.clock.now() + AFTER_TROUBLE


def _due(row: WorkflowRow) -> datetime:
    """Return the time of the workflow's scheduled retry, which must exist."""
    assert row.retry_at is not None, "only those are looked for"
    return row.retry_at


async def _has_come(services: RuntimeServices, hour: datetime) -> bool:
    """Sleep until then; false when something else was scheduled meanwhile."""
    async with cancelled_by(services.retry_scheduled):
        await sleep_until(services.clock, hour)
        return True
    return False


async def _make(resuming: Resuming, row: WorkflowRow) -> None:
    """Start the workflow's retry; wait if its files are being changed, and cancel the retry on any other error."""
    try:
        await resuming.try_again(row, _due(row))
    except FilesMoving:
        # Whoever moves them decides how it goes on; the next look finds what is left to do.
        await resuming.launching.until_still(row.id)
    except SegueError as error:
        await _call_off(resuming.services, row, f"{error.message} {error.hint}".strip())
    except Exception:  # it would go wrong again, and others wait
        log.exception("the retry of %s could not be made", row.slug)
        await _call_off(resuming.services, row, INTERNAL.reason)


async def _call_off(services: RuntimeServices, row: WorkflowRow, reason: str) -> None:
    """It cannot be made, and would not be able to in a moment either: a person has to look."""
    state = await services.journal.state(row.id)
    await services.journal.transact(
        row.id, lambda t: t.cancel_retry(state, reason) if t.workflow.retry_at == row.retry_at else None
    )
    services.kept_environments.pop(row.id, None)
