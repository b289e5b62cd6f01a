"""JSON-RPC 2.0 in lines on standard input and output, with nothing but the standard library.

A test starts this agent hundreds of times, and the models of the whole protocol take longer to load than most turns
take to play.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeGuard, TypeVar

Message = dict[str, Any]
Answer = TypeVar("Answer")

_LONGEST_LINE = 1024 * 1024 * 1024

log = logging.getLogger(__name__)


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────


class RequestError(Exception):
    """A request is answered with an error, by either side."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def as_message(self) -> Message:
        return {"code": self.code, "message": str(self), "data": self.data}


def method_not_found(method: str) -> RequestError:
    return RequestError(-32601, "Method not found", {"method": method})


def invalid_params(details: str) -> RequestError:
    return RequestError(-32602, "Invalid params", {"details": details})


def internal_error(details: str) -> RequestError:
    return RequestError(-32603, "Internal error", {"details": details})


def login_required() -> RequestError:
    return RequestError(-32000, "Authentication required")


# ── what arrives ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Given:
    """The parameters of a request; what is missing is the mistake of whoever sent it."""

    values: Message

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str):
            raise invalid_params(f"{name}: expected text, found {value!r}.")
        return value

    def objects(self, name: str) -> list[Message]:
        value = self.values.get(name)
        if not _is_list(value):
            raise invalid_params(f"{name}: expected a list, found {value!r}.")
        return [_object(each, name) for each in value]

    def optional_objects(self, name: str) -> list[Message]:
        return [] if self.values.get(name) is None else self.objects(name)


def _object(value: object, name: str) -> Message:
    if not _is_object(value):
        raise invalid_params(f"{name}: expected objects, found {value!r}.")
    return value


def _is_object(value: object) -> TypeGuard[Message]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods:
    """What this side does when it is asked, or told; what is not in the tables is not there."""

    requests: Mapping[str, Callable[[Given], Awaitable[Message]]]
    notifications: Mapping[str, Callable[[Given], Awaitable[None]]]


# ── the wire ────────────────────────────────────────────────────────────────────────────────────────


class Wire:
    """One connection, in both directions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = count()
        self._unanswered: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, methods: Methods) -> None:
        """Answer until the other side stops talking; what is still at work then is cancelled."""
        try:
            async for line in self._reader:
                self._receive(line, methods)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def notify(self, method: str, parameters: Message) -> None:
        await self._send({"method": method, "params": parameters})

    async def request(self, method: str, parameters: Message) -> Any:
        """What the other side answers; its error is raised."""
        number = next(self._numbers)
        answer = self._unanswered[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": method, "params": parameters})
            return await answer
        finally:
            del self._unanswered[number]

    def print_line(self, line: str) -> None:
        """Send a line as it is, be it a message or not."""
        self._writer.write(f"{line}\n".encode())

    async def _send(self, message: Message) -> None:
        self.print_line(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")))
        await self._writer.drain()
        # Draining a pipe that is not full does not wait, and who talks without end must hear that it is cancelled.
        await asyncio.sleep(0)

    def _receive(self, line: bytes, methods: Methods) -> None:
        message = _parse(line)
        if message is None:
            return
        if "method" not in message:
            self._settle(message)
        elif "id" in message:
            self._begin(self._answer(message, methods))
        else:
            self._begin(_heed(message, methods))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _settle(self, message: Message) -> None:
        answer = self._unanswered.get(message.get("id", -1))
        if answer is None or answer.done():
            return
        if "error" in message:
            error: Message = message["error"] or {}
            answer.set_exception(
                RequestError(error.get("code", -32603), error.get("message", "Error"), error.get("data"))
            )
        else:
            answer.set_result(message.get("result"))

    async def _answer(self, request: Message, methods: Methods) -> None:
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
            log.warning("Nobody hears the answer to %s: %s", request["method"], error)


async def _heed(notification: Message, methods: Methods) -> None:
    try:
        await _call(notification, methods.notifications)
    except RequestError as error:
        log.warning("%s is not heeded: %s", notification["method"], error)
    except Exception:
        log.exception("%s failed", notification["method"])


async def _call(message: Message, handlers: Mapping[str, Callable[[Given], Awaitable[Answer]]]) -> Answer:
    method = message["method"]
    if method not in handlers:
        raise method_not_found(method)
    return await handlers[method](Given(_object(message.get("params") or {}, "params")))


def _parse(line: bytes) -> Message | None:
    if not line.strip():
        return None
    try:
        message: object = json.loads(line)
    except ValueError as error:
        log.warning("What arrived is no JSON: %s", error)
        return None
    if not _is_object(message):
        log.warning("What arrived is no message: %r", message)
        return None
    return message


async def standard_wire() -> Wire:
    """The wire to whoever started this process."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    # Of this protocol only the flow control is used: nothing is ever read from standard output.
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sys.stdout
    )
    # What was sent before a crash must have left this process.
    transport.set_write_buffer_limits(0)
    return Wire(reader, asyncio.StreamWriter(transport, protocol, None, loop))
