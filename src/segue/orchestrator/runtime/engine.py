"""The durable engine: one run of a session is one DBOS workflow, and only ids go through it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Literal, TypeVar

import anyio
from anyio.to_thread import run_sync
from dbos import DBOS, AsyncSQLAlchemyDatasource, DBOSClient
from sqlalchemy import Connection, event
from sqlalchemy import Engine as SystemEngine
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from segue.journal import Journal, Transaction, as_write_failure
from segue.model.ids import BootId, SessionId, WorkflowId
from segue.orchestrator.runtime.looking import look_at_queue, until_nothing_runs

T = TypeVar("T")

QUEUE = "runs"
RUN = "run"
APPLICATION = "segue"
# Pinned: the default is a hash of the source, and a run of an older version would never be looked at again.
PROTOCOL_VERSION = "runs-1"

# Only for what nobody looked at when it was queued.
POLL_EVERY = 1.0

Isolation = Literal["SERIALIZABLE", "READ COMMITTED"]
_OPEN = ["PENDING", "ENQUEUED", "DELAYED"]
Body = Callable[[SessionId, int], Awaitable[None]]

_body: Body | None = None


@DBOS.workflow(name=RUN)
async def _run(session_id: str, number: int) -> None:
    """What the queue starts. The engine keeps arguments and results as they are, so neither holds any text."""
    assert _body is not None, "the engine is not open"
    await _body(SessionId(session_id), number)


class _Refused(Exception):
    """A step did nothing; the reason does not go through the engine."""


class Engine:
    """Made by `open_engine`: enqueues runs, and runs transactions that the engine fences."""

    def __init__(
        self, journal: Journal, client: DBOSClient, datasource: AsyncSQLAlchemyDatasource, workers: int
    ) -> None:
        self._journal = journal
        self._workers = workers
        self._client = client
        self._datasource = datasource
        # The head row's lock orders the writers; SQLite has one writer anyway, and no such level.
        self._isolation: Isolation = "SERIALIZABLE" if journal.engines.is_sqlite else "READ COMMITTED"

    def enqueue(self, transaction: Transaction, session_id: SessionId, number: int) -> None:
        """Hand a run to the queue; it becomes visible when the transaction commits."""
        self._client.enqueue_in_transaction(
            transaction.connection,
            {
                "queue_name": QUEUE,
                "workflow_name": RUN,
                "workflow_id": run_id(session_id, number),
                "queue_partition_key": transaction.workflow_id,
            },
            session_id,
            number,
        )

    async def look(self) -> None:
        """See at once what was just queued, instead of at the engine's next look."""
        await run_sync(look_at_queue, QUEUE, self._workers)

    async def step(self, name: str, workflow_id: WorkflowId, work: Callable[[Transaction], T]) -> T:
        """Like `Journal.transact`, inside a run: commits only while this process owns the run."""
        now = self._journal.clock.now()

        def transact(session: Session) -> T:
            return work(Transaction(_connection(session), workflow_id, now))

        outcome: list[T] = []
        refusals: list[Exception] = []

        async def body() -> None:
            # The engine stores results and errors as they are, so it is handed neither.
            try:
                outcome[:] = [await self._datasource.sql_session().run_sync(transact)]
            except Exception as error:
                if _engine_retries(error):
                    raise
                refusals.append(as_write_failure(error))
                raise _Refused from None

        try:
            await self._datasource.run_tx_step_async({"name": name, "isolation_level": self._isolation}, body)
        except _Refused:
            raise refusals[0] from None
        except SQLAlchemyError as error:
            raise as_write_failure(error) from error
        self._journal.announce(workflow_id)
        return outcome[0]

    async def forget(self, session_id: SessionId, number: int) -> None:
        """Take a run away from the engine, so that it does not block the next one."""
        await DBOS.cancel_workflow_async(run_id(session_id, number))

    async def knows(self, session_id: SessionId, number: int) -> bool:
        """Whether the engine still means to start this run, or is at it."""
        status = await DBOS.get_workflow_status_async(run_id(session_id, number))
        return status is not None and status.status in _OPEN

    async def forget_left_runs(self) -> None:
        """At start nothing that stands open belongs to this boot; left there, it would block its queue."""
        left = await DBOS.list_workflows_async(
            status=_OPEN, name=RUN, queue_name=QUEUE, load_input=False, load_output=False
        )
        await DBOS.cancel_workflows_async([workflow.workflow_id for workflow in left])


def _engine_retries(error: Exception) -> bool:
    """The engine tries again by itself when a database is locked or its connection was lost."""
    if not isinstance(error, OperationalError):
        return False
    return error.connection_invalidated or "locked" in str(error.orig) or "deadlock" in str(error.orig)


def run_id(session_id: SessionId, number: int) -> str:
    return f"{session_id}/r{number}"


def _connection(session: Session) -> Connection:
    return session.connection()


@contextmanager
def _in_whole_transactions(engine: SystemEngine) -> Generator[None]:
    """The engine's migrations, all or nothing: SQLite's driver begins no transaction at a change of the schema, and a
    server that was killed between two changes could never start again."""

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    if engine.dialect.name != "sqlite":
        yield
        return
    event.listen(engine, "begin", begin)
    try:
        yield
    finally:
        event.remove(engine, "begin", begin)


@asynccontextmanager
async def open_engine(journal: Journal, boot: BootId, body: Body, workers: int) -> AsyncGenerator[Engine]:
    """Launch the engine. Each boot is a new executor, so it recovers nothing by itself: nobody starts an agent but the
    user."""
    global _body
    _body = body
    engines = journal.engines
    url = engines.url.render_as_string(hide_password=False)
    DBOS(
        config={
            "name": APPLICATION,
            "system_database_url": url,
            "system_database_engine": engines.system,
            "application_version": PROTOCOL_VERSION,
            "executor_id": boot,
            "log_level": "ERROR",
        }
    )
    datasource = await AsyncSQLAlchemyDatasource.create(
        engines.steps.url.render_as_string(hide_password=False), engine=engines.steps
    )
    try:
        with _in_whole_transactions(engines.system):
            DBOS.launch()
        await DBOS.register_queue_async(
            QUEUE, worker_concurrency=workers, partition_concurrency=1, polling_interval_sec=POLL_EVERY
        )
        client = DBOSClient(system_database_engine=engines.system, application_name=APPLICATION)
        yield Engine(journal, client, datasource, workers)
    finally:
        with anyio.CancelScope(shield=True):
            # After a run's end the engine still tidies up its own rows; cut off there, it would leave connections open.
            await until_nothing_runs(QUEUE, 1.0)
            await run_sync(DBOS.destroy)
        _body = None
