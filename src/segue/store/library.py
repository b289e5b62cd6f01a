"""Which SQLite library this process uses: one, chosen once, before anything opens a database."""

import sys
from importlib import import_module
from types import ModuleType

from segue.model.errors import UnsupportedPlatform

# The engine asks SQLite for milliseconds (`unixepoch('subsec')`), which older versions answer with NULL.
NEEDED = (3, 42, 0)


def choose_sqlite() -> ModuleType:
    """The standard library's SQLite if it is new enough, else the one that pysqlite3 carries."""
    import sqlite3

    if sqlite3.sqlite_version_info >= NEEDED:
        return sqlite3
    try:
        newer = import_module("pysqlite3.dbapi2")
    except ImportError:
        raise _too_old(sqlite3.sqlite_version) from None
    if newer.sqlite_version_info < NEEDED:
        raise _too_old(newer.sqlite_version)
    # aiosqlite imports `sqlite3` by name; two libraries on one file in one process drop each other's locks.
    sys.modules["sqlite3"] = newer
    sys.modules["sqlite3.dbapi2"] = newer
    return newer


def _too_old(version: str) -> UnsupportedPlatform:
    return UnsupportedPlatform(
        f"This Python's SQLite is {version}; Segue needs 3.42 or newer.",
        hint="Use a Python with a newer SQLite, `pip install pysqlite3` where it has a wheel, or set "
        "SEGUE_DATABASE_URL to a PostgreSQL database.",
    )
