"""Requests to a container engine: the used part of Docker's HTTP API, which Podman implements too."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import h11

from segue.model.errors import AgentMissing, WorkspaceError

UNIX = "unix://"
ANSWER_WITHIN = 20.0
"""Seconds in which an engine must answer, so that a hanging one does not block unrelated work."""
_PIECE = 64 * 1024
_SWITCHED = (101, 200)
_HEADER = 8
"""Bytes before each piece of a container's output: the stream and the length."""


class EngineError(WorkspaceError):
    """The container engine refused something."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NoEngine(AgentMissing):
    """No container engine runs."""


@dataclass(frozen=True, slots=True)
class EngineResponse:
    """Response of the engine."""

    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body or b"null")


class EngineApi:
    """Client of an engine, at a socket of this machine."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def ask(
        self, method: str, path: str, body: object = None, *, within: float | None = None, **query: object
    ) -> Any:
        """Send a request and return the JSON of the response; raise `EngineError` with the engine's message if it
        refuses. `within` is a timeout in seconds."""
        with self._in_time(ANSWER_WITHIN if within is None else within):
            async with self._exchange(method, path, body, query) as exchange:
                answer = EngineResponse(exchange.status, await exchange.body())
        _refuse(answer)
        return answer.json()

    @asynccontextmanager
    async def follow(self, path: str, **query: object) -> AsyncGenerator[AsyncIterator[tuple[int, bytes]]]:
        """Read the output of a container, piece by piece, each with the number of its stream."""
        async with self._exchange("GET", path, None, query) as exchange:
            if exchange.status != 200:
                _refuse(EngineResponse(exchange.status, await exchange.body()))
            yield _demultiplexed(exchange.pieces())

    async def hold(self, path: str, body: object) -> asyncio.StreamWriter:
        """Open a connection to a command's standard input, and return its writer; the caller closes it."""
        with self._in_time(ANSWER_WITHIN), self._reporting_breaks():
            exchange = _Exchange(*await self._connect())
            try:
                await exchange.send("POST", path, body, {"Connection": "Upgrade", "Upgrade": "tcp"})
                if exchange.status not in _SWITCHED:
                    _refuse(EngineResponse(exchange.status, await exchange.body()))
            except BaseException:
                exchange.close()
                raise
        return exchange.writer

    @asynccontextmanager
    async def _exchange(
        self, method: str, path: str, body: object, query: Mapping[str, object]
    ) -> AsyncGenerator["_Exchange"]:
        """Send a request on a new connection, yield the exchange, and close it; a broken connection raises
        EngineError."""
        with self._reporting_breaks():
            exchange = _Exchange(*await self._connect())
            try:
                await exchange.send(method, _target(path, query), body)
                yield exchange
            finally:
                exchange.close()

    @contextmanager
    def _reporting_breaks(self) -> Generator[None]:
        """Turn a broken connection or a violation of HTTP into EngineError."""
        try:
            yield
        except (OSError, h11.ProtocolError) as error:
            raise EngineError(f"The container engine at {self.address} broke off: {error}.") from error

    @contextmanager
    def _in_time(self, seconds: float) -> Generator[None]:
        """Raise EngineError if the body takes longer than so many seconds."""
        with anyio.move_on_after(seconds) as scope:
            yield
        if scope.cancelled_caught:
            raise EngineError(f"The container engine at {self.address} did not answer within {seconds:g} seconds.")

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the engine's socket; raise NoEngine with a remedy if that is impossible."""
        try:
            return await asyncio.open_unix_connection(self.address.removeprefix(UNIX))
        except PermissionError as error:
            raise NoEngine(
                f"The container engine at {self.address} refuses you access.",
                hint="Join the group of its socket (`sudo usermod -aG docker $USER`, and log in again), or use Podman,"
                " which runs as you (`systemctl --user start podman.socket`).",
            ) from error
        except OSError as error:
            raise NoEngine(
                f"No container engine runs: nothing answers at {self.address}.",
                hint="Start Docker or `podman system service`, or name its socket in the setting container_engine.",
            ) from error


class _Exchange:
    """Request and response on a connection of their own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._http = h11.Connection(h11.CLIENT)
        self.status = 0

    async def send(self, method: str, target: str, body: object, more: Mapping[str, str] | None = None) -> None:
        """Send a request with a JSON body, if any, and set `status` from the response's head."""
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"Host": "engine", "Content-Type": "application/json", "Content-Length": str(len(content))}
        request = h11.Request(method=method, target=target, headers=list({**headers, **(more or {})}.items()))
        for event in (request, h11.Data(data=content), h11.EndOfMessage()):
            self.writer.write(self._http.send(event) or b"")
        await self.writer.drain()
        self.status = await self._head()

    async def _head(self) -> int:
        """Return the status of the response; skip informational ones except 101."""
        while True:
            match await self._next():
                case h11.Response(status_code=status):
                    return status
                case h11.InformationalResponse(status_code=101):
                    return 101
                case h11.InformationalResponse():
                    continue
                case _:
                    raise h11.RemoteProtocolError("it sent no response")

    async def body(self) -> bytes:
        """Return the rest of the response's body."""
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the response's body piece by piece as it comes."""
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    async def _next(self) -> object:
        """Return the next event of the response, read from the connection as needed."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_PIECE))
        return event

    def close(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self.writer.close()


async def _demultiplexed(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """Yield complete frames of a container's output, each with the number of its stream."""
    buffer = bytearray()
    async for piece in pieces:
        buffer += piece
        while len(buffer) >= _HEADER:
            end = _HEADER + int.from_bytes(buffer[4:_HEADER], "big")
            if len(buffer) < end:
                break
            yield buffer[0], bytes(buffer[_HEADER:end])
            del buffer[:end]


def _target(path: str, query: Mapping[str, object]) -> str:
    """Return the path with its query; a value that is a dict is encoded as JSON."""
    parameters = {name: json.dumps(value) if isinstance(value, dict) else str(value) for name, value in query.items()}
    return f"{quote(path)}?{urlencode(parameters)}" if parameters else quote(path)


def _refuse(answer: EngineResponse) -> None:
    """Raise EngineError with the engine's message for a status of 400 or more, else do nothing."""
    if answer.status < 400:
        return
    try:
        message = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = answer.body.decode(errors="replace")
    raise EngineError(f"The container engine refused: {message.strip()}", answer.status)
