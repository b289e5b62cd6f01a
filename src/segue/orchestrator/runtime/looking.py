"""A look at the engine's queue, now; and a wait until it is empty.

The engine's queue thread sleeps between two looks; it cannot be woken, and there is no public door to what it does.
This is the one place that knows the engine from inside. When a version of it has other rooms, that is noted, and runs
start at the thread's own next look.
"""

# pyright: reportPrivateUsage=false

import logging
from contextlib import suppress

import anyio
from dbos._core import execute_dequeued_workflow
from dbos._dbos import _get_dbos_instance
from dbos._utils import GlobalParams, generate_uuid
from sqlalchemy.exc import SQLAlchemyError

log = logging.getLogger("segue")


def look_at_queue(name: str, workers: int) -> None:
    """Claim what is queued, as far as there is room, and start it."""
    try:
        _look(name, workers)
    except (AttributeError, TypeError, SQLAlchemyError) as error:
        log.warning("the engine could not be asked to look at once: %s", error)


async def until_nothing_runs(name: str, seconds: float) -> None:
    """The engine's own way to wait sleeps for a whole second first."""
    with anyio.move_on_after(seconds), suppress(AttributeError):
        while _get_dbos_instance()._active_workflows_set.count_for_queue(name):  # noqa: ASYNC110 - there is no event
            await anyio.sleep(0.01)


def _look(name: str, workers: int) -> None:
    dbos = _get_dbos_instance()
    queue = dbos._sys_db.get_queue(name)
    room = workers - dbos._active_workflows_set.count_for_queue(name)
    if queue is None or room <= 0:
        return
    owner = generate_uuid()
    claimed = dbos._sys_db.start_queued_partitioned_workflows(
        queue, GlobalParams.executor_id, GlobalParams.app_version, room, owner_xid=owner
    )
    for status in dbos._sys_db.get_workflow_statuses(claimed):
        execute_dequeued_workflow(dbos, status, owner)
