"""One server per database: a lock that dies with its process."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from segue.model.errors import AlreadyServing, DatabaseUnusable
from segue.store.engines import Engines

# Any number does, as long as every Segue uses the same.
ADVISORY_KEY = 0x5E60E

_HINT = "`segue status` talks to it; `segue down` stops it."


@contextmanager
def hold_database(engines: Engines) -> Generator[None]:
    """Refuses when another server holds the same database."""
    with _hold_sqlite(engines) if engines.is_sqlite else _hold_postgres(engines):
        yield


@contextmanager
def _hold_sqlite(engines: Engines) -> Generator[None]:
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
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _hold_postgres(engines: Engines) -> Generator[None]:
    try:
        connection = engines.plain.connect()
    except OperationalError as error:
        raise DatabaseUnusable(
            f"The PostgreSQL database cannot be reached: {str(error.orig).strip().splitlines()[0]}",
            hint="Check SEGUE_DATABASE_URL and that the server runs.",
        ) from error
    with connection:
        # Not the pool's any more: it would hand the connection on, lock and all.
        connection.detach()
        locked = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": ADVISORY_KEY}).scalar_one()
        connection.commit()
        if not locked:
            raise AlreadyServing("Another Segue server uses this PostgreSQL database.", hint=_HINT)
        yield
