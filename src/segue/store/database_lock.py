"""Lock on a database: one server per database, until its process ends."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from segue.model.errors import AlreadyServing, DatabaseUnusable
from segue.store.engines import Engines

# Any number, as long as every Segue uses the same.
ADVISORY_KEY = 0x5E60E

_HINT = "`segue status` talks to it; `segue down` stops it."


class DatabaseLock(Protocol):
    """Lock on the database that this process alone serves."""

    def check(self) -> None:
        """Take the lock again if it was lost; raise `AlreadyServing` when another server has it."""
        ...


@contextmanager
def lock_database(engines: Engines) -> Generator[DatabaseLock]:
    """Hold the lock on the database while the body lasts, and yield it; raise `AlreadyServing` when another server
    has locked it."""
    with _lock_sqlite(engines) if engines.is_sqlite else _lock_postgres(engines) as lock:
        yield lock


class _FileLock:
    def check(self) -> None:
        """Do nothing: a file lock lasts as long as its process."""


@contextmanager
def _lock_sqlite(engines: Engines) -> Generator[DatabaseLock]:
    """Hold a lock on a file beside the SQLite database, which is created for this user alone; raise if another
    server has it."""
    path = Path(engines.url.database or "")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DatabaseUnusable(f"The database {path} cannot be opened: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise AlreadyServing(f"Another Segue server uses the database {path}.", hint=_HINT) from None
    try:
        # Created before SQLite creates it, so that other users cannot read it.
        path.touch(mode=0o600)
        yield _FileLock()
    finally:
        os.close(descriptor)


class _AdvisoryLock:
    """Advisory lock of PostgreSQL. It lasts as long as its connection, which a restart or the network may end."""

    def __init__(self, engines: Engines) -> None:
        """Connect and take the lock; raise `AlreadyServing` when another server has it."""
        self._engines = engines
        self._connection = self._take()

    def check(self) -> None:
        """Take the lock again if its connection was lost; raise `AlreadyServing` when another server has it."""
        try:
            self._connection.execute(text("SELECT 1"))
            self._connection.commit()
        except OperationalError:
            self.release()
            self._connection = self._take()

    def release(self) -> None:
        """Close the connection, and with it the lock."""
        self._connection.close()

    def _take(self) -> Connection:
        """Take the lock on a new connection of its own, and return it; raise if the database is away or another
        server has the lock."""
        try:
            connection = self._engines.plain.connect()
        except OperationalError as error:
            raise DatabaseUnusable(
                f"The PostgreSQL database cannot be reached: {str(error.orig).strip().splitlines()[0]}",
                hint="Check SEGUE_DATABASE_URL and that the server runs.",
            ) from error
        # Detached, because the pool would hand the connection on together with its lock.
        connection.detach()
        locked = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": ADVISORY_KEY}).scalar_one()
        connection.commit()
        if not locked:
            connection.close()
            raise AlreadyServing("Another Segue server uses this PostgreSQL database.", hint=_HINT)
        return connection


@contextmanager
def _lock_postgres(engines: Engines) -> Generator[DatabaseLock]:
    """Hold the advisory lock of PostgreSQL while the body lasts."""
    lock = _AdvisoryLock(engines)
    try:
        yield lock
    finally:
        lock.release()
