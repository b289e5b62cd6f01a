"""Group commit: many writers, one thread, one fsync."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, TypeVar

from sqlalchemy import Connection

from segue.model.errors import WriteFailed
from segue.store.engines import Engines, as_write_failure

Item = TypeVar("Item")
Result = TypeVar("Result")

Write = Callable[[Connection, Sequence[Item]], Sequence[Result]]
"""Writes several items in one transaction and answers each of them, in order."""


@dataclass(slots=True)
class Outcome(Generic[Item, Result]):
    """What became of an item: its result when it is on disk, or the error that kept it from getting there."""

    item: Item
    result: Result | None = None
    error: Exception | None = None


Deliver = Callable[[Sequence[Outcome[Item, Result]]], None]
"""Hears of everything that one commit settled, at once: waking the others costs more than writing for them."""


class _NotWritten(Exception):
    """Nothing of the batch was written, for certain."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class GroupWriter(Generic[Item, Result]):
    """Everything that was submitted while one commit was under way goes into the next one."""

    def __init__(
        self, engines: Engines, write: Write[Item, Result], deliver: Deliver[Item, Result], *, most: int = 500
    ) -> None:
        self._engines = engines
        self._write = write
        self._deliver = deliver
        self._most = most
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="segue-writer", daemon=True)
        self._closed = False

    def start(self) -> None:
        self._thread.start()

    def submit(self, item: Item) -> None:
        """Its outcome is delivered, whatever happens."""
        if self._closed:
            raise WriteFailed("The journal is closed.")
        self._queue.put(item)

    def close(self) -> None:
        """Writes what was submitted, then stops."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = self._gather(first)
            self._deliver(self._commit(batch))
            if last:
                return

    def _gather(self, first: Item) -> tuple[list[Item], bool]:
        batch = [first]
        while len(batch) < self._most and not self._queue.empty():
            following = self._queue.get()
            if following is None:
                return batch, True
            batch.append(following)
        return batch, False

    def _commit(self, batch: list[Item]) -> list[Outcome[Item, Result]]:
        """Everybody gets an answer: a thread that died here would leave them waiting for ever."""
        try:
            results = self._in_one_transaction(batch)
        except _NotWritten as failure:
            if len(batch) == 1:
                return self._refused(batch, failure.error)
            # One bad item must not take the others down with it.
            return [outcome for item in batch for outcome in self._commit([item])]
        except Exception as error:  # noqa: BLE001 — the error belongs to whoever waits for the answer
            # Whether the commit took hold is unknown, so nothing of it may be tried again.
            return self._refused(batch, error)
        return [Outcome(item, result) for item, result in zip(batch, results, strict=True)]

    def _refused(self, batch: list[Item], error: Exception) -> list[Outcome[Item, Result]]:
        return [Outcome(item, error=as_write_failure(error)) for item in batch]

    def _in_one_transaction(self, batch: list[Item]) -> Sequence[Result]:
        with self._engines.writing, self._engines.plain.connect() as connection:
            # Begun in so many words: what is handed to the driver directly would not begin it.
            connection.begin()
            try:
                results = self._write(connection, batch)
            except Exception as error:
                connection.rollback()
                raise _NotWritten(error) from error
            connection.commit()
            return results
