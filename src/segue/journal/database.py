"""Access to the database from the event loop: reads and transactions in worker threads."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from anyio.to_thread import run_sync
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from segue.model.errors import DatabaseUnusable
from segue.store.engines import Engines

P = ParamSpec("P")
T = TypeVar("T")

_EXCLUSIVE = {
    "sqlite": text("BEGIN IMMEDIATE"),
    # Any number other than the key of the server's own lock.
    "postgresql": text("SELECT pg_advisory_xact_lock(386063)"),
}
"""Statement that takes the lock of `write_exclusively`."""


class Database:
    """Connections of one database. Errors of the driver are raised as Segue's own."""

    def __init__(self, engines: Engines) -> None:
        self.engines = engines

    async def read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query function with a connection in a thread and return its result; raise DatabaseUnusable if the
        database fails."""

        def run() -> T:
            try:
                with self.engines.plain.connect() as connection:
                    return query(connection, *args, **kwargs)
            except SQLAlchemyError as error:
                raise DatabaseUnusable(f"The database could not be read: {getattr(error, 'orig', error)}.") from error

        return await run_sync(run)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, in a thread; return its result once committed."""
        return await run_sync(self.engines.transact, work)

    async def write_exclusively(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, one caller at a time, so that what it reads stays true until it commits;
        return its result."""

        def run(connection: Connection) -> T:
            connection.execute(_EXCLUSIVE[connection.dialect.name])
            return work(connection)

        return await self.write(run)
