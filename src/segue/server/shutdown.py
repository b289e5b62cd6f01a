"""Shutdown of the server: requests that wait are cancelled with an error."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from segue.model.errors import ServerError


class Shutdown:
    """Signal to every request that may wait long."""

    def __init__(self) -> None:
        self.begun = False
        self._waiting: set[anyio.CancelScope] = set()

    def begin(self) -> None:
        """Cancel the requests that wait, and those that come from now on."""
        self.begun = True
        for scope in tuple(self._waiting):
            scope.cancel()

    @contextmanager
    def interrupts(self) -> Generator[None]:
        """Cancel the body of the context when the server stops, and raise an error with the reason."""
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
