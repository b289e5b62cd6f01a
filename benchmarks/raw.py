"""The building block: SQLite alone, with the same library, the same table and the same durability."""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.disk import SliceWork

Row = tuple[Any, ...]

LOG = "CREATE TABLE events (id INTEGER PRIMARY KEY, body TEXT NOT NULL)"


def table_of(database: Path) -> str:
    """Read the statement that created the journal's table of events."""
    connection = sqlite3.connect(str(database))
    try:
        return connection.execute("SELECT sql FROM sqlite_master WHERE name = 'events'").fetchone()[0]
    finally:
        connection.close()


class RawTable:
    """Table outside the schema, filled without the journal."""

    def __init__(self, file: Path, create: str) -> None:
        self._connection = sqlite3.connect(str(file), isolation_level=None)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", create):
            self._connection.execute(statement)
        columns = len(self._connection.execute("PRAGMA table_info(events)").fetchall())
        self._insert = f"INSERT INTO events VALUES ({', '.join('?' * columns)})"

    def commit(self, rows: Sequence[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(self._insert, rows)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class RawFile:
    """Appends lines to a plain file, each with its own fsync."""

    def __init__(self, file: Path, line: bytes) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._line = line

    def write(self, seconds: float) -> SliceWork:
        """Append lines for this long, and measure each."""
        latencies: list[float] = []
        cpu = process_time()
        start = now = perf_counter()
        while now - start < seconds:
            os.write(self._file, self._line)
            os.fsync(self._file)
            before, now = now, perf_counter()
            latencies.append(now - before)
        return SliceWork(count=len(latencies), seconds=now - start, cpu=process_time() - cpu, latencies=latencies)

    def close(self) -> None:
        os.close(self._file)


class RawWriter:
    """Writes groups of rows as fast as SQLite takes them; the rows are those of the journal, made beforehand."""

    def __init__(self, table: RawTable, rows: Sequence[Row], key: int) -> None:
        self._table = table
        self._rows = rows
        self._key = key
        """Which column holds a number that no two rows share."""
        self._written = 0

    def write(self, seconds: float, group: int) -> SliceWork:
        """Insert rows in groups until the time is up."""
        latencies: list[float] = []
        cpu = process_time()
        start = now = perf_counter()
        while now - start < seconds:
            self._table.commit(self._next(group))
            before, now = now, perf_counter()
            latencies.append(now - before)
        return SliceWork(
            count=group * len(latencies),
            seconds=now - start,
            cpu=process_time() - cpu,
            latencies=latencies,
            group=group,
        )

    def _next(self, group: int) -> list[Row]:
        first, key, rows = self._written, self._key, self._rows
        self._written += group
        numbered = ((number, rows[number % len(rows)]) for number in range(first, first + group))
        return [(*row[:key], number, *row[key + 1 :]) for number, row in numbered]
