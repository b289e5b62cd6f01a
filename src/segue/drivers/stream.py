"""The one ordered stream of events."""

import asyncio
from collections.abc import AsyncIterator

from segue.model.events import AgentEvent


class Events:
    """Giving never waits, and after the last event nothing more is taken."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._ended = False

    def give(self, *events: AgentEvent) -> None:
        """Add events to the stream without waiting; after its end do nothing."""
        if not self._ended:
            for event in events:
                self._queue.put_nowait(event)

    def end(self, last: AgentEvent) -> None:
        """Add a last event and end the stream; after its end do nothing."""
        self.give(last)
        if not self._ended:
            self._queue.put_nowait(None)
        self._ended = True

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self

    async def __anext__(self) -> AgentEvent:
        event = await self._queue.get()
        if event is None:
            self._queue.put_nowait(None)
            raise StopAsyncIteration
        return event
