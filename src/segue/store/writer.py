"""Group commit: many writers, one thread, one fsync."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

from sqlalchemy import Connection, Engine

from segue.model.errors import SegueError, WriteFailed

Item = TypeVar("Item")
Result = TypeVar("Result")

Write = Callable[[Connection, Sequence[Item]], Sequence[Result]]
"""Writes several items in one transaction and answers each of them, in order."""


class _Submission(Generic[Item, Result]):
    def __init__(self, item: Item) -> None:
        self.item = item
        self.answer: Future[Result] = Future()


class _NotWritten(Exception):
    """Nothing of the batch was written, for certain."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class GroupWriter(Generic[Item, Result]):
    """Everything that was submitted while one commit was under way goes into the next one."""

    def __init__(self, engine: Engine, write: Write[Item, Result], *, most: int = 500) -> None:
        self._engine = engine
        self._write = write
        self._most = most
        self._queue: SimpleQueue[_Submission[Item, Result] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="segue-writer", daemon=True)
        self._closed = False

    def start(self) -> None:
        self._thread.start()

    def submit(self, item: Item) -> "Future[Result]":
        """The answer comes when the item is on disk, or with the error that kept it from getting there."""
        if self._closed:
            raise WriteFailed("The journal is closed.")
        submission: _Submission[Item, Result] = _Submission(item)
        self._queue.put(submission)
        return submission.answer

    def close(self) -> None:
        """Writes what was submitted, then stops."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = self._gather(first)
            self._commit(batch)
            if last:
                return

    def _gather(self, first: _Submission[Item, Result]) -> tuple[list[_Submission[Item, Result]], bool]:
        batch = [first]
        while len(batch) < self._most and not self._queue.empty():
            following = self._queue.get()
            if following is None:
                return batch, True
            batch.append(following)
        return batch, False

    def _commit(self, batch: list[_Submission[Item, Result]]) -> None:
        """Everybody gets an answer, whatever happens: a thread that dies here would leave them waiting for ever."""
        try:
            results = self._in_one_transaction(batch)
        except _NotWritten as failure:
            if len(batch) == 1:
                _refuse(batch, failure.error)
                return
            # One bad item must not take the others down with it.
            for submission in batch:
                self._commit([submission])
        except Exception as error:  # noqa: BLE001 — the error belongs to whoever waits for the answer
            # Whether the commit took hold is unknown, so nothing of it may be tried again.
            _refuse(batch, error)
        else:
            for submission, result in zip(batch, results, strict=True):
                submission.answer.set_result(result)

    def _in_one_transaction(self, batch: list[_Submission[Item, Result]]) -> Sequence[Result]:
        with self._engine.connect() as connection:
            try:
                results = self._write(connection, [submission.item for submission in batch])
            except Exception as error:
                connection.rollback()
                raise _NotWritten(error) from error
            connection.commit()
            return results


def _refuse(batch: "list[_Submission[Item, Result]]", error: Exception) -> None:
    for submission in batch:
        submission.answer.set_exception(as_write_failure(error))


def as_write_failure(error: Exception) -> Exception:
    """What the database said, as one of our own errors; ours pass as they are."""
    if isinstance(error, SegueError):
        return error
    failure = WriteFailed(
        f"Nothing was written: {getattr(error, 'orig', None) or error}.",
        hint="Check that the disk has room and that the database can be reached; what was acknowledged is safe.",
    )
    failure.__cause__ = error
    return failure
