"""Who may knock: a pure ASGI middleware over HTTP and WebSockets alike.

The server listens on this machine only, but every page in a browser on this machine can reach it too. So the Host must
be one of ours (or any name that someone lets resolve to us would do), a write or a socket from a browser must come from
a page of ours, with its port, and every caller must show the token.
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
    status: HTTPStatus
    problem: Problem


FORBIDDEN_HOST = Refusal(
    HTTPStatus.FORBIDDEN,
    Problem(code="forbidden_host", message="This server does not answer to this Host.", hint="Use its own address."),
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
    """The Host headers that mean this server, of which `names` are further addresses it is known by."""
    addresses = {"127.0.0.1", "localhost", "[::1]", *(f"[{name}]" if ":" in name else name.lower() for name in names)}
    hosts = {f"{address}:{port}" for address in addresses}
    # The default port is left out of the header by those who know it.
    return frozenset(hosts | addresses if port == 80 else hosts)


class Doors:
    """Lets in who passes every check, and tells the others which one they failed."""

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
        safe = scope["type"] == "http" and scope["method"] in SAFE_METHODS
        if not self._host_is_ours(headers):
            return FORBIDDEN_HOST
        if not safe and not self._origin_is_ours(headers):
            return FORBIDDEN_ORIGIN
        if not self._is_authorized(headers):
            return UNAUTHORIZED
        if not safe and _has_body(headers) and not _is_json(headers):
            return NOT_JSON
        return None

    def _host_is_ours(self, headers: Headers) -> bool:
        hosts = headers.getlist("host")
        return len(hosts) == 1 and hosts[0].lower() in self._hosts

    def _origin_is_ours(self, headers: Headers) -> bool:
        """Programs send no Origin; browsers do, and cannot leave it out."""
        origins = headers.getlist("origin")
        return all(origin in self._origins for origin in origins) and headers.get("sec-fetch-site") != "cross-site"

    def _is_authorized(self, headers: Headers) -> bool:
        shown = headers.getlist("authorization")
        return len(shown) == 1 and hmac.compare_digest(shown[0].encode("latin-1"), self._credentials)


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _response(refusal: Refusal) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if refusal is UNAUTHORIZED else None
    return JSONResponse(asdict(refusal.problem), refusal.status, headers)


async def _refuse_socket(refusal: Refusal, scope: Scope, send: Send) -> None:
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.problem.message})
        return
    response = _response(refusal)
    start = {"status": response.status_code, "headers": response.raw_headers}
    await send({"type": "websocket.http.response.start", **start})
    await send({"type": "websocket.http.response.body", "body": response.body})
