"""Engines for SQLite and PostgreSQL: a plain one for threads, an asynchronous one for the engine's steps."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from segue.model.errors import DatabaseUnusable
from segue.store.library import choose_sqlite

BUSY_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Engines:
    """The ways into one database."""

    url: URL
    plain: Engine
    """For our own transactions, in threads."""
    system: Engine
    """For the engine's own tables."""
    steps: AsyncEngine
    """For transactions inside the engine's steps."""

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    async def close(self) -> None:
        await self.steps.dispose()
        self.plain.dispose()
        self.system.dispose()


def open_engines(database_url: str) -> Engines:
    url = parse_url(database_url)
    return _sqlite(url) if url.get_backend_name() == "sqlite" else _postgres(url)


def parse_url(database_url: str) -> URL:
    """Accepts what people write: `postgresql://…`, `postgres://…`, `sqlite:///…`."""
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
    # The head row's lock orders writers, so each statement should see what was committed before it.
    options: dict[str, Any] = {"isolation_level": "READ COMMITTED", "pool_pre_ping": True, "hide_parameters": True}
    return Engines(
        url=url,
        plain=create_engine(url, pool_size=8, **options),
        system=create_engine(url, pool_size=8, **options),
        steps=create_async_engine(url, pool_size=8, **options),
    )


def _sqlite(url: URL) -> Engines:
    library = choose_sqlite()
    plain = create_engine(url, module=library, hide_parameters=True)
    system = create_engine(url, module=library, hide_parameters=True)
    steps = create_async_engine(url.set(drivername="sqlite+aiosqlite"), hide_parameters=True)
    for engine in (plain, system, steps.sync_engine):
        event.listen(engine, "connect", _prepare)
    return Engines(url=url, plain=plain, system=system, steps=steps)


def _prepare(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_TIMEOUT_MS}", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    # The driver begins a transaction at its first write, and takes the write lock there.
    connection.isolation_level = "IMMEDIATE"
