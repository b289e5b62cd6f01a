"""One server per database: a lock that dies with its process."""

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

# Any number does, as long as every Segue uses the same.
ADVISORY_KEY = 0x5E60E

_HINT = "`segue status` talks to it; `segue down` stops it."


class Hold(Protocol):
    """A database that is ours alone."""

    def keep(self) -> None:
        """Raises `AlreadyServing` when it was lost and somebody else has it now."""
        ...


@contextmanager
def hold_database(engines: Engines) -> Generator[Hold]:
    """Refuses when another server holds the same database."""
    with _hold_sqlite(engines) if engines.is_sqlite else _hold_postgres(engines) as hold:
        yield hold


class _FileHold:
    def keep(self) -> None:
        """A file lock lasts as long as its process."""


@contextmanager
def _hold_sqlite(engines: Engines) -> Generator[Hold]:
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
        # Made before SQLite makes it, so that nobody else can read it.
        path.touch(mode=0o600)
        yield _FileHold()
    finally:
        os.close(descriptor)


class _AdvisoryHold:
    """An advisory lock lasts as long as its connection, which a restart of PostgreSQL or a network may end."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._connection = self._take()

    def keep(self) -> None:
        try:
            self._connection.execute(text("SELECT 1"))
            self._connection.commit()
        except OperationalError:
            self.release()
            self._connection = self._take()

    def release(self) -> None:
        self._connection.close()

    def _take(self) -> Connection:
        try:
            connection = self._engines.plain.connect()
        except OperationalError as error:
            raise DatabaseUnusable(
                f"The PostgreSQL database cannot be reached: {str(error.orig).strip().splitlines()[0]}",
                hint="Check SEGUE_DATABASE_URL and that the server runs.",
            ) from error
        # Not the pool's any more: it would hand the connection on, lock and all.
        connection.detach()
        locked = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": ADVISORY_KEY}).scalar_one()
        connection.commit()
        if not locked:
            connection.close()
            raise AlreadyServing("Another Segue server uses this PostgreSQL database.", hint=_HINT)
        return connection


@contextmanager
def _hold_postgres(engines: Engines) -> Generator[Hold]:
    hold = _AdvisoryHold(engines)
    try:
        yield hold
    finally:
        hold.release()
