"""The end of serving: whoever waits for an answer is told, instead of being waited for."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from segue.model.errors import ServerError


class Stopping:
    """Known to every request that may wait long."""

    def __init__(self) -> None:
        self.begun = False
        self._waiting: set[anyio.CancelScope] = set()

    def begin(self) -> None:
        self.begun = True
        for scope in tuple(self._waiting):
            scope.cancel()

    @contextmanager
    def interrupts(self) -> Generator[None]:
        """What waits in here is ended, with an error that says why, when the server stops."""
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            if self.begun:
                scope.cancel()
            try:
                yield
            finally:
                self._waiting.discard(scope)
        if scope.cancelled_caught:
            raise ServerError("The Segue server is stopping.", hint="Start it again with: segue up")
