"""JSON-RPC 2.0 in lines on standard input and output, with the standard library alone.

Agent programs use this in place of the protocol's library: its models take longer to load than most turns of a test.
"""

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from segue.drivers.skeleton.jsonrpc import (
    INTERNAL_ERROR,
    Message,
    Parameters,
    RequestError,
    as_object,
    internal_error,
    is_object,
    method_not_found,
)

T = TypeVar("T")

_LONGEST_LINE = 1024 * 1024 * 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods:
    """Handlers of the requests and notifications that this side understands; others are refused."""

    requests: Mapping[str, Callable[[Parameters], Awaitable[Message]]]
    notifications: Mapping[str, Callable[[Parameters], Awaitable[None]]]


class Wire:
    """One connection, in both directions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = count()
        self._unanswered: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, methods: Methods) -> None:
        """Handle messages until the other side closes its end, then cancel the handlers that still run."""
        try:
            async for line in self._reader:
                self._receive(line, methods)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def notify(self, method: str, parameters: Message) -> None:
        """Send a notification, and wait while the pipe is full."""
        await self._send({"method": method, "params": parameters})

    async def request(self, method: str, parameters: Message) -> Any:
        """Send a request and return the result; raise the `RequestError` that came in its place."""
        number = next(self._numbers)
        answer = self._unanswered[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": method, "params": parameters})
            return await answer
        finally:
            del self._unanswered[number]

    def print_line(self, line: str) -> None:
        """Send a line as it is, even one that is not a message."""
        self._writer.write(f"{line}\n".encode())

    async def _send(self, message: Message) -> None:
        """Send a message, and wait while the pipe is full."""
        self.print_line(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")))
        await self._writer.drain()
        # Draining a pipe that is not full does not wait, and an endless stream of updates must remain cancellable.
        await asyncio.sleep(0)

    def _receive(self, line: bytes, methods: Methods) -> None:
        """Handle one line: an answer is settled, a request or notification begins a task."""
        message = _parse(line)
        if message is None:
            return
        if "method" not in message:
            self._settle(message)
        elif "id" in message:
            self._begin(self._answer(message, methods))
        else:
            self._begin(_notified(message, methods))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a handler as a task that `serve` cancels at the end."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _settle(self, message: Message) -> None:
        """Give an answer to the request that waits for it; ignore it if none does."""
        answer = self._unanswered.get(message.get("id", -1))
        if answer is None or answer.done():
            return
        if "error" in message:
            error: Message = message["error"] or {}
            answer.set_exception(
                RequestError(error.get("code", INTERNAL_ERROR), error.get("message", "Error"), error.get("data"))
            )
        else:
            answer.set_result(message.get("result"))

    async def _answer(self, request: Message, methods: Methods) -> None:
        """Handle a request, and send its result or error; a broken connection is only logged."""
        try:
            answer = {"result": await _call(request, methods.requests)}
        except RequestError as error:
            answer = {"error": error.as_message()}
        except Exception as error:
            log.exception("%s failed", request["method"])
            answer = {"error": internal_error(str(error)).as_message()}
        try:
            await self._send({"id": request["id"], **answer})
        except ConnectionError as error:
            log.warning("The answer to %s could not be sent: %s", request["method"], error)


async def _notified(notification: Message, methods: Methods) -> None:
    """Handle a notification; its errors are only logged."""
    try:
        await _call(notification, methods.notifications)
    except RequestError as error:
        log.warning("The notification %s was not handled: %s", notification["method"], error)
    except Exception:
        log.exception("%s failed", notification["method"])


async def _call(message: Message, handlers: Mapping[str, Callable[[Parameters], Awaitable[T]]]) -> T:
    """Call the handler of a message's method, and return its result; raise `method not found` if there is none."""
    method = message["method"]
    if method not in handlers:
        raise method_not_found(method)
    return await handlers[method](Parameters(as_object(message.get("params") or {}, "params")))


def _parse(line: bytes) -> Message | None:
    """Return a line as a message; None, with a warning unless it is empty, for any other line."""
    if not line.strip():
        return None
    try:
        message: object = json.loads(line)
    except ValueError as error:
        log.warning("A line that is not JSON was ignored: %s", error)
        return None
    if not is_object(message):
        log.warning("A line that is not a message was ignored: %r", message)
        return None
    return message


async def open_wire(input_fd: int = 0, output_fd: int = 1, received: bytes = b"") -> Wire:
    """Connect to the process that started this one; `received` is input that was read before."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    reader.feed_data(received)
    source = os.fdopen(input_fd, "rb", buffering=0, closefd=False)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    # Only the flow control of this protocol is used: nothing is ever read from the output.
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()),
        os.fdopen(output_fd, "wb", buffering=0, closefd=False),
    )
    # Messages that were sent before a crash must have left this process.
    transport.set_write_buffer_limits(0)
    return Wire(reader, asyncio.StreamWriter(transport, protocol, None, loop))
