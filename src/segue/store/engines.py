"""The ways into one database, SQLite or PostgreSQL, and the one way to commit a transaction."""

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from segue.model.errors import DatabaseUnusable, SegueError, UnsupportedPlatform, WriteFailed

T = TypeVar("T")

BUSY_TIMEOUT_MS = 30_000
OLDEST_SQLITE = (3, 34, 0)
"""Oldest SQLite with the features that the queries use; the tests were run with 3.40."""
PAUSES = (0.1, 0.3, 0.9, 2.7)
"""Seconds before each further try of a transaction that PostgreSQL has given up."""
_GIVEN_UP = frozenset({"40001", "40P01"})
"""Codes of PostgreSQL for a serialization failure and a deadlock."""


@dataclass(frozen=True, slots=True)
class Engines:
    """Handle of one database."""

    url: URL
    plain: Engine
    writing: AbstractContextManager[object] = field(default_factory=nullcontext[None])
    """Held by each transaction that writes. SQLite has one writer anyway, and before 3.51.3 a commit at the same moment
    as a checkpoint by another connection can corrupt the file (https://sqlite.org/wal.html#walresetbug)."""

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Commit what `work` does and return its result. PostgreSQL may give a transaction up, or be away, before
        the commit: then `work` is called again. A locked SQLite file is waited for by the driver
        (`BUSY_TIMEOUT_MS`)."""
        pauses = iter(() if self.is_sqlite else PAUSES)
        while True:
            stage = "connecting"
            try:
                with self.writing, self.plain.begin() as connection:
                    stage = "working"
                    result = work(connection)
                    stage = "committing"
                return result
            except SQLAlchemyError as error:
                pause = next(pauses, None)
                given_up = stage == "connecting" or (stage == "working" and _was_given_up(error))
                if pause is None or not given_up:
                    raise as_write_failure(error) from error
            time.sleep(pause)

    def close(self) -> None:
        """Close the connections of the pool."""
        self.plain.dispose()


def as_write_failure(error: Exception) -> Exception:
    """Return an error of the database as one of our own; ours are returned as they are."""
    if isinstance(error, SegueError):
        return error
    failure = WriteFailed(
        f"Nothing was written: {getattr(error, 'orig', None) or error}.",
        hint="Check that the disk has room and that the database can be reached; what was acknowledged is safe.",
    )
    failure.__cause__ = error
    return failure


def _was_given_up(error: SQLAlchemyError) -> bool:
    """Return True if PostgreSQL rolled the transaction back for a reason that passes."""
    if not isinstance(error, DBAPIError):
        return False
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _GIVEN_UP


def open_engines(database_url: str) -> Engines:
    """Return the engines of the database with this URL; no connection is opened yet."""
    url = parse_url(database_url)
    return _sqlite(url) if url.get_backend_name() == "sqlite" else _postgres(url)


def parse_url(database_url: str) -> URL:
    """Parse the forms that people write: `postgresql://…`, `postgres://…`, `sqlite:///…`; raise DatabaseUnusable for
    all others."""
    try:
        url = make_url(database_url)
    except ArgumentError:
        raise DatabaseUnusable("SEGUE_DATABASE_URL is not a database URL.", hint=_URL_HINT) from None
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return url.set(drivername="sqlite")
    raise DatabaseUnusable("SEGUE_DATABASE_URL names no database that Segue can use.", hint=_URL_HINT)


_URL_HINT = "Use postgresql://user@host/name or sqlite:////absolute/path.db."


def _postgres(url: URL) -> Engines:
    """Build the engines of a PostgreSQL database; raise DatabaseUnusable if its libraries are not installed."""
    if any(find_spec(module) is None for module in ("psycopg", "procrastinate")):
        raise DatabaseUnusable(
            "SEGUE_DATABASE_URL names a PostgreSQL database, and Segue is installed without PostgreSQL.",
            hint="Install it with: pip install 'segue[postgres]'",
        )
    # The head row's lock orders writers, so each statement should see what was committed before it.
    options: dict[str, Any] = {"isolation_level": "READ COMMITTED", "pool_pre_ping": True, "hide_parameters": True}
    return Engines(url=url, plain=create_engine(url, pool_size=8, **options))


def _sqlite(url: URL) -> Engines:
    """Build the engines of a SQLite file, where one thread writes at a time."""
    refuse_unfit_sqlite(sqlite3)
    plain = create_engine(url, hide_parameters=True)
    event.listen(plain, "connect", _prepare)
    return Engines(url=url, plain=plain, writing=threading.Lock())


def refuse_unfit_sqlite(library: Any) -> None:
    """Raise UnsupportedPlatform if Python's SQLite is too old, or was built without full-text search (FTS5)."""
    with closing(library.connect(":memory:")) as connection:
        searches = connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone()
    if library.sqlite_version_info >= OLDEST_SQLITE and searches:
        return
    problem = "has no full-text search (FTS5)" if not searches else "is too old"
    oldest = ".".join(map(str, OLDEST_SQLITE[:2]))
    raise UnsupportedPlatform(
        f"This Python's SQLite {library.sqlite_version} {problem}; Segue needs {oldest} or newer with FTS5.",
        hint="Use a Python with a newer SQLite, or set SEGUE_DATABASE_URL to a PostgreSQL database.",
    )


def _prepare(connection: Any, _record: object) -> None:
    """Set up a new SQLite connection: WAL, full synchronisation, foreign keys, and transactions that take the write
    lock first."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_TIMEOUT_MS}", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    # The driver begins a transaction at its first write, and takes the write lock there.
    connection.isolation_level = "IMMEDIATE"
