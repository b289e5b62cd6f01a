"""The queue of runs on PostgreSQL: Procrastinate, used through its public interface alone.

A job carries ids and nothing else. Its retries are off: a job of an earlier boot is deleted and its session settled,
never executed. A job lasts as long as the body that it started, but the body does not belong to it: when the worker
has to be started again, because the database was away, the agents go on.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anyio
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.exceptions import ProcrastinateException
from procrastinate.jobs import DeleteJobCondition, Status

from segue.journal import Journal, Transaction
from segue.journal.rows import RunRow
from segue.model.errors import WriteFailed
from segue.model.ids import SessionId, WorkflowId
from segue.model.status import RunStatus
from segue.orchestrator.runtime.run_queue import Executions, RunQueue

log = logging.getLogger("segue")

QUEUE = "segue-runs"
TASK = "segue.run"
JOBS_AT_ONCE = 8192
"""Jobs that the worker may take at once: all of them. Their bodies wait for a place of their own."""
RESTART_AFTER = 1.0
"""Seconds until a worker that has lost its database is started again."""
OPEN_WITHIN = 30.0
STOP_WITHIN = 5.0


class DistributedQueue:
    """Queue of a PostgreSQL database: one job of Procrastinate for each run."""

    def __init__(self, app: App, executions: Executions) -> None:
        """Register the task that executes runs with Procrastinate's app; nothing is queued."""
        self._jobs = app.job_manager
        self._executions = executions
        # Jobs are deferred in threads, on the connections of transactions; this connector opens none of its own.
        self._deferring = App(connector=SyncPsycopgConnector())
        app.task(name=TASK, queue=QUEUE, retry=False)(self._execute)

    def enqueue(self, t: Transaction, session_id: SessionId, number: int) -> None:
        """Defer a job for the run on the transaction's own connection, so that it commits with it; raise WriteFailed
        if that fails."""
        deferrer = self._deferring.configure_task(
            TASK,
            queue=QUEUE,
            queueing_lock=_name(session_id, number),
            connection=t.driver_connection,
        )
        try:
            deferrer.defer(workflow_id=t.workflow_id, session_id=session_id, number=number)
        except ProcrastinateException as error:
            raise WriteFailed("The run could not be queued.", hint="Check the PostgreSQL database.") from error

    async def knows(self, run: RunRow) -> bool:
        """Return True if this process executes the run, or it is queued and has a job."""
        if (run.session_id, run.number) in self._executions:
            return True
        # The job of an active run that nothing executes is left over.
        name = _name(run.session_id, run.number)
        return run.status is RunStatus.QUEUED and any(await self._jobs.list_jobs_async(queue=QUEUE, queueing_lock=name))

    def forget(self, session_id: SessionId, number: int) -> None:
        """Let the workflow's next run start, although this one's body has not returned."""
        self._executions.forget(session_id, number)

    async def _execute(self, *, workflow_id: WorkflowId, session_id: SessionId, number: int) -> None:
        """Start the run of a job and wait until its body has returned."""
        await self._executions.start(workflow_id, session_id, number).wait()

    async def delete_left_jobs(self) -> None:
        """Delete all jobs in the queue, which earlier boots left, before any is executed."""
        for job in await self._jobs.list_jobs_async(queue=QUEUE):
            assert job.id is not None, "a stored job has an id"
            if job.status == Status.TODO.value:
                await self._jobs.cancel_job_by_id_async(job.id, delete_job=True)
            else:
                await self._jobs.finish_job_by_id_async(job.id, Status.ABORTED, delete_job=True)

    async def restart_lost_jobs(self) -> None:
        """Queue again the jobs that a worker took and whose run this process does not execute, after it lost its
        database."""
        for job in await self._jobs.list_jobs_async(queue=QUEUE, status=Status.DOING.value):
            run: Any = job.task_kwargs["session_id"], job.task_kwargs["number"]
            if job.id is not None and run not in self._executions:
                await self._jobs.retry_job_by_id_async(job.id, retry_at=datetime.now(UTC))


def _name(session_id: SessionId, number: int) -> str:
    """Return the lock's name of a run, unique in the queue."""
    return f"{session_id}/r{number}"


async def _work(app: App, queue: DistributedQueue) -> None:
    """Execute jobs until cancelled; a worker that fails is logged and started again."""
    while True:
        try:
            await app.run_worker_async(
                queues=[QUEUE],
                concurrency=JOBS_AT_ONCE,
                install_signal_handlers=False,
                # The bodies outlive their jobs, so the worker need not wait for these.
                shutdown_graceful_timeout=0,
                delete_jobs=DeleteJobCondition.ALWAYS,
            )
        except ProcrastinateException as error:
            log.warning("the queue of runs lost its database, and tries again: %r", error.__cause__ or error)
        except Exception:  # without a worker no run would start until the next boot
            log.exception("the worker of the queue of runs failed, and is started again")
        await asyncio.sleep(RESTART_AFTER)
        try:
            await queue.restart_lost_jobs()
        except ProcrastinateException as error:
            log.warning("the queue of runs still has no database: %r", error.__cause__ or error)


@asynccontextmanager
async def open_distributed_queue(journal: Journal, executions: Executions) -> AsyncGenerator[RunQueue]:
    """Open the queue, delete jobs of earlier boots, and run its worker in this process until the context ends."""
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    connector = PsycopgConnector(conninfo=journal.address, min_size=1, max_size=4, timeout=OPEN_WITHIN)
    async with App(connector=connector).open_async() as app:
        queue = DistributedQueue(app, executions)
        await queue.delete_left_jobs()
        # No task of the group: cancelled more than once, as a scope does it, a worker leaves its connections open.
        worker = asyncio.create_task(_work(app, queue))
        try:
            yield queue
        finally:
            with anyio.CancelScope(shield=True):
                worker.cancel()
                await asyncio.wait([worker], timeout=STOP_WITHIN)
