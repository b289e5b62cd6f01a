"""Access checks: a pure ASGI middleware for HTTP and WebSockets.

The server listens on this machine only, but every page in a browser on this machine can reach it too. So the Host must
be one of the server's own (against DNS rebinding), a write or a socket from a browser must have the server's own
Origin, port included, and every caller must send the token.
"""

import hmac
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from segue.server.documents import Problem

SAFE_METHODS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Error answer of a failed check."""

    status: HTTPStatus
    problem: Problem


FORBIDDEN_HOST = Refusal(
    HTTPStatus.FORBIDDEN,
    Problem(code="forbidden_host", message="This server does not accept this Host.", hint="Use its own address."),
)
FORBIDDEN_ORIGIN = Refusal(
    HTTPStatus.FORBIDDEN,
    Problem(code="forbidden_origin", message="A page of another origin may not do this."),
)
UNAUTHORIZED = Refusal(
    HTTPStatus.UNAUTHORIZED,
    Problem(
        code="unauthorized",
        message="The token is missing or wrong.",
        hint="Send `Authorization: Bearer <token>`; the token is in the data directory, in the file token.",
    ),
)
NOT_JSON = Refusal(
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Problem(
        code="unsupported_media_type",
        message="A body must be JSON.",
        hint="Send it with `Content-Type: application/json`.",
    ),
)


def own_hosts(port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the Host headers of this server, with the port; `names` are its further addresses."""
    addresses = {"127.0.0.1", "localhost", "[::1]", *(f"[{name}]" if ":" in name else name.lower() for name in names)}
    hosts = {f"{address}:{port}" for address in addresses}
    # Clients omit the default port.
    return frozenset(hosts | addresses if port == 80 else hosts)


class AccessChecks:
    """Middleware that refuses requests which fail a check, with the reason."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: Iterable[str]) -> None:
        self._app = app
        self._credentials = f"Bearer {token}".encode()
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await _refuse_socket(refusal, scope, send)
        else:
            await _response(refusal)(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Return the first check that the request fails, of host, origin, token and content type; None if it passes
        all."""
        safe = scope["type"] == "http" and scope["method"] in SAFE_METHODS
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return FORBIDDEN_HOST
        # Programs send no Origin; browsers always send it with a write.
        foreign = any(origin not in self._origins for origin in headers.getlist("origin"))
        if not safe and (foreign or headers.get("sec-fetch-site") == "cross-site"):
            return FORBIDDEN_ORIGIN
        shown = headers.getlist("authorization")
        if len(shown) != 1 or not hmac.compare_digest(shown[0].encode("latin-1"), self._credentials):
            return UNAUTHORIZED
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if not safe and has_body and content_type != "application/json":
            return NOT_JSON
        return None


def _response(refusal: Refusal) -> JSONResponse:
    """Build the answer to a refused request."""
    headers = {"WWW-Authenticate": "Bearer"} if refusal is UNAUTHORIZED else None
    return JSONResponse(asdict(refusal.problem), refusal.status, headers)


async def _refuse_socket(refusal: Refusal, scope: Scope, send: Send) -> None:
    """Refuse a WebSocket with an HTTP answer where the server allows that, else by closing it."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.problem.message})
        return
    response = _response(refusal)
    start = {"status": response.status_code, "headers": response.raw_headers}
    await send({"type": "websocket.http.response.start", **start})
    await send({"type": "websocket.http.response.body", "body": response.body})
