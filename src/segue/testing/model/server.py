"""The server: one endpoint for each dialect, the request log, and answers that wait until they are released."""

import gzip
import json
import socket
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from segue.testing.model.answers import Script
from segue.testing.model.dialects import Dialect, Endpoint, dialect, endpoint_at
from segue.testing.model.exchange import JsonObject, ModelError, ModelReply
from segue.testing.model.log import LoggedRequest, RequestLog
from segue.testing.model.playing import Player, tokens

_METHODS = ["GET", "HEAD", "POST"]


class ScriptedModel:
    """Model that answers as scripted, and keeps its requests."""

    def __init__(self, script: Script, log: Path | None = None) -> None:
        """Prepare the model's web application; nothing is served yet."""
        self.url = ""
        self._player = Player(script)
        self._log = RequestLog(log)
        self._released: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)
        self._reached: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)
        self.app = Starlette(
            routes=[
                Route("/-/release/{name}", self._release, methods=["POST"]),
                Route("/{path:path}", self._answer, methods=_METHODS),
            ]
        )

    @property
    def requests(self) -> list[LoggedRequest]:
        """Every request so far, the first one first."""
        return self._log.requests

    def release(self, name: str) -> None:
        """Send the answers that wait for `name`, now and in future."""
        self._released[name].set()

    async def held(self, name: str) -> None:
        """Wait until a request waits for `name`."""
        await self._reached[name].wait()

    async def _release(self, request: Request) -> Response:
        """Handle a request to release the answers that wait for a name."""
        self.release(request.path_params["name"])
        return JSONResponse({"released": request.path_params["name"]})

    async def _answer(self, request: Request) -> Response:
        """Handle any other request: a model's endpoint, a list of models, or an error."""
        path = request.url.path
        if request.method != "POST":
            return JSONResponse(_MODELS if path.endswith("/models") else {"ok": True})
        door = endpoint_at(path)
        if door is None:
            return JSONResponse({"error": {"message": f"No endpoint has the path {path}."}}, 404)
        text = _unpacked(await request.body(), request.headers.get("content-encoding", ""))
        try:
            body: JsonObject = json.loads(text)
        except ValueError:
            return JSONResponse({"error": {"message": "The body is not JSON."}}, 400)
        speech = dialect(door.dialect)
        if door.counting:
            return JSONResponse(speech.counted(tokens(len(text))))
        return await self._converse(door, speech, body, path, len(text))

    async def _converse(self, door: Endpoint, speech: Dialect, body: JsonObject, path: str, size: int) -> Response:
        """Play the script's answer to a request, log it, and send it when it is released."""
        asked = replace(speech.read(body, path), size=size)
        played = self._player.play(asked, door.dialect)
        self._log.add(
            LoggedRequest(
                number=0,
                dialect=door.dialect,
                path=path,
                stream=asked.stream,
                messages=asked.messages,
                prompt=asked.prompt,
                tools=tuple(asked.tools),
                body=body,
                answer=played.summary,
            )
        )
        if played.hold is not None:
            self._reached[played.hold].set()
            await self._released[played.hold].wait()
        return _response(speech, played.answer, asked.stream, door.lines)


_MODELS: JsonObject = {
    "object": "list",
    "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "segue"}],
}


def _unpacked(body: bytes, encoding: str) -> str:
    """Return a request's body as text, decompressed if necessary."""
    return (gzip.decompress(body) if encoding == "gzip" else body).decode("utf-8", "replace")


def _response(speech: Dialect, answer: ModelReply | ModelError, stream: bool, lines: bool) -> Response:
    """Return an answer as an HTTP response: an error, a stream of events or lines, or one document."""
    if isinstance(answer, ModelError):
        status, body, headers = speech.trouble(answer)
        if answer.retry_after is not None:
            headers = {**headers, "retry-after": str(answer.retry_after)}
        return JSONResponse(body, status, headers)
    if stream and lines:
        return StreamingResponse(_lines(speech.pieces(answer)), media_type="application/x-ndjson")
    if stream:
        return StreamingResponse(_events(speech.pieces(answer)), media_type="text/event-stream")
    return JSONResponse(speech.whole(answer))


async def _lines(pieces: Iterable[JsonObject | str]) -> AsyncIterator[str]:
    """Yield pieces as JSON lines."""
    for piece in pieces:
        yield f"{json.dumps(piece)}\n"


async def _events(pieces: Iterable[JsonObject | str]) -> AsyncIterator[str]:
    """Format server-sent events; the type of a piece is also the name of its event."""
    for piece in pieces:
        if isinstance(piece, str):
            yield f"data: {piece}\n\n"
            continue
        name = f"event: {piece['type']}\n" if "type" in piece else ""
        yield f"{name}data: {json.dumps(piece)}\n\n"


@asynccontextmanager
async def scripted_model(
    script: Script | None = None, *, port: int = 0, log: Path | None = None
) -> AsyncGenerator[ScriptedModel]:
    """Serve a model on loopback while the context is open."""
    model = ScriptedModel(script or Script(), log)
    with socket.create_server(("127.0.0.1", port)) as listening:
        model.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        configuration = uvicorn.Config(
            model.app, lifespan="off", log_config=None, log_level="warning", timeout_graceful_shutdown=1
        )
        server = _LoopbackServer(configuration)
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listening])
            await server.ready.wait()
            try:
                yield model
            except Exception as error:  # noqa: BLE001 - raised below, as it is and not as one of a group
                failure = error
            finally:
                server.should_exit = True
                # Open requests are not answered.
                server.force_exit = True
        if failure is not None:
            raise failure


class _LoopbackServer(uvicorn.Server):
    """uvicorn with an event for readiness, and without its own signal handlers."""

    def __init__(self, configuration: uvicorn.Config) -> None:
        super().__init__(configuration)
        self.ready = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, and set `ready`."""
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the process's signal handlers as they are."""
        yield
