"""Group commit: many callers, one writer thread, one fsync."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from segue.model.errors import WriteFailed
from segue.store.engines import Engines, as_write_failure

Item = TypeVar("Item")
Result = TypeVar("Result")

Write = Callable[[Connection, Sequence[Item]], Sequence[Result]]
"""Function that writes several items, and returns a result for each, in order.

It uses the connection's driver only, which begins the transaction at the first statement. SQLAlchemy's own statements
and transactions cost as much as writing an event."""


@dataclass(slots=True)
class Outcome(Generic[Item, Result]):
    """Outcome of an item: its result when it is on disk, or the error that prevented the write."""

    item: Item
    result: Result | None = None
    error: Exception | None = None


Deliver = Callable[[Sequence[Outcome[Item, Result]]], None]
"""Function that receives the outcomes of one commit together, because waking another thread costs more than writing."""


class _NotWritten(Exception):
    """Nothing of the batch was written."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class GroupWriter(Generic[Item, Result]):
    """Writer thread with one connection. Items submitted during one commit go into the next one."""

    def __init__(
        self, engines: Engines, write: Write[Item, Result], deliver: Deliver[Item, Result], *, most: int = 500
    ) -> None:
        """Prepare the thread, not started yet. `write` writes a batch of at most `most` items, `deliver` is given
        their outcomes in that thread."""
        self._engines = engines
        self._write = write
        self._deliver = deliver
        self._most = most
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="segue-writer", daemon=True)
        self._closed = False
        self._connection: Connection | None = None
        """Held between commits: taking one from the pool costs as much as writing an event."""

    def start(self) -> None:
        self._thread.start()

    def submit(self, item: Item) -> None:
        """Queue an item for the writer; its outcome is delivered in every case. Raise WriteFailed once closed."""
        if self._closed:
            raise WriteFailed("The journal is closed.")
        self._queue.put(item)

    def close(self) -> None:
        """Write what was submitted, then stop the thread and wait for its end."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        """Write batches and deliver their outcomes until the writer is closed."""
        while (first := self._queue.get()) is not None:
            batch, last = self._gather(first)
            self._deliver(self._commit(batch))
            if last:
                break
        self._disconnect()

    def _gather(self, first: Item) -> tuple[list[Item], bool]:
        """Return the first item with those that wait behind it, and True if the end of the queue was among them."""
        batch = [first]
        while len(batch) < self._most and not self._queue.empty():
            following = self._queue.get()
            if following is None:
                return batch, True
            batch.append(following)
        return batch, False

    def _commit(self, batch: list[Item]) -> list[Outcome[Item, Result]]:
        """Commit a batch and return its outcomes; if nothing of it was written, commit each item alone. No error
        leaves this function: the thread must live on, or callers would wait without end."""
        try:
            results = self._in_one_transaction(batch)
        except _NotWritten as failure:
            if len(batch) == 1:
                return self._refused(batch, failure.error)
            # One bad item must not take the others down with it.
            return [outcome for item in batch for outcome in self._commit([item])]
        except Exception as error:  # noqa: BLE001 — the error belongs to the caller that waits for the outcome
            # It is unknown whether the commit succeeded, so nothing of it may be tried again.
            self._disconnect()
            return self._refused(batch, error)
        return [Outcome(item, result) for item, result in zip(batch, results, strict=True)]

    def _refused(self, batch: list[Item], error: Exception) -> list[Outcome[Item, Result]]:
        """Build the outcomes of items that failed with this error."""
        return [Outcome(item, error=as_write_failure(error)) for item in batch]

    def _in_one_transaction(self, batch: list[Item]) -> Sequence[Result]:
        """Write and commit a batch, once more if the database had closed the idle connection; raise _NotWritten if
        nothing was written."""
        idle = self._connection is not None
        with self._engines.writing:
            try:
                return self._attempt(batch)
            except _NotWritten as failure:
                self._disconnect()
                lost = isinstance(failure.error, DBAPIError) and failure.error.connection_invalidated
                if not (idle and lost):
                    raise
                # The database had closed the idle connection.
                return self._attempt(batch)

    def _attempt(self, batch: list[Item]) -> Sequence[Result]:
        """Write and commit a batch once, and return its results; raise _NotWritten if writing failed, any other
        error if the commit did."""
        if self._connection is None:
            self._connection = self._engines.plain.connect()
        driver = self._connection.connection
        try:
            results = self._write(self._connection, batch)
        except Exception as error:
            if not self._connection.invalidated:
                driver.rollback()
            raise _NotWritten(error) from error
        driver.commit()
        return results

    def _disconnect(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
