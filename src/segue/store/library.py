"""Which SQLite library this process uses: one, chosen once, before anything opens a database."""

import sys
from contextlib import closing
from importlib import import_module
from types import ModuleType
from typing import Any

from segue.model.errors import UnsupportedPlatform

# The engine asks SQLite for milliseconds (`unixepoch('subsec')`), which older versions answer with NULL.
NEEDED = (3, 42, 0)


def choose_sqlite() -> ModuleType:
    """The standard library's SQLite if it is new enough, else the one that pysqlite3 carries."""
    import sqlite3

    if sqlite3.sqlite_version_info >= NEEDED and can_search(sqlite3):
        return sqlite3
    try:
        newer = import_module("pysqlite3.dbapi2")
    except ImportError:
        raise _unfit(sqlite3) from None
    if newer.sqlite_version_info < NEEDED or not can_search(newer):
        raise _unfit(newer)
    # aiosqlite imports `sqlite3` by name; two libraries on one file in one process drop each other's locks.
    sys.modules["sqlite3"] = newer
    sys.modules["sqlite3.dbapi2"] = newer
    return newer


def can_search(library: Any) -> bool:
    """Whether full-text search (FTS5) was compiled in."""
    with closing(library.connect(":memory:")) as connection:
        return bool(connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone())


def _unfit(library: Any) -> UnsupportedPlatform:
    problem = "has no full-text search (FTS5)" if library.sqlite_version_info >= NEEDED else "is too old"
    return UnsupportedPlatform(
        f"This Python's SQLite {library.sqlite_version} {problem}; Segue needs 3.42 or newer with FTS5.",
        hint="Use a Python with a newer SQLite, `pip install pysqlite3` where it has a wheel, or set "
        "SEGUE_DATABASE_URL to a PostgreSQL database.",
    )
