"""Calls an ASGI application without a network."""

import json
from typing import Any, NamedTuple

TOKEN = "t" * 43
HOST = "127.0.0.1:7777"
HOSTS = frozenset({HOST, "localhost:7777", "[::1]:7777"})


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


def headers(**changes: str | None) -> list[tuple[bytes, bytes]]:
    """Those of a caller who does everything right, with changes; None leaves one out."""
    good: dict[str, str | None] = {"host": HOST, "authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    chosen = good | {name.replace("_", "-"): value for name, value in changes.items()}
    return [(name.encode(), value.encode("latin-1")) for name, value in chosen.items() if value is not None]


async def knock(app: Any, method: str, path: str, body: Any = None, **changes: str | None) -> Answer:
    """One HTTP request; `body` is sent as JSON, or as it is if it is bytes."""
    path, _, query = path.partition("?")
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if content:
        changes.setdefault("content_length", str(len(content)))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers(**changes),
        "server": ("127.0.0.1", 7777),
        "client": ("127.0.0.1", 50000),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent[1:])
    shown = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    as_json = shown.get("content-type", "").startswith("application/json")
    return Answer(sent[0]["status"], shown, json.loads(text) if as_json else text.decode())


async def knock_socket(app: Any, extensions: dict[str, Any] | None = None, **changes: str | None) -> list[Any]:
    """One WebSocket handshake; what the application sends."""
    scope = {
        "type": "websocket",
        "scheme": "ws",
        "path": "/api/live",
        "headers": headers(**{"content_type": None, **changes}),
        "extensions": extensions or {},
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent
