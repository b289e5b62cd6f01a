"""SQL statements on a journal's database, for rows that no method of the journal changes or returns."""

from collections.abc import Sequence
from typing import Any

from anyio.to_thread import run_sync
from sqlalchemy import text

from segue.journal import Journal


async def execute(journal: Journal, statement: str, **values: Any) -> Sequence[Any]:
    """Run one statement in a transaction of its own, and return its rows."""

    def run() -> Sequence[Any]:
        with journal.engines.plain.begin() as connection:
            result = connection.execute(text(statement), values)
            return result.all() if result.returns_rows else ()

    return await run_sync(run)
