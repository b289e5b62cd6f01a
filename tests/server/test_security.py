from typing import Any

import pytest

from segue.server.security import AccessChecks, own_hosts
from tests.server.knocking import HOST, HOSTS, TOKEN, knock, knock_socket
from tests.server.standin_service import Standin

pytestmark = pytest.mark.anyio

READ = ("GET", "/api/workflows/add-parser")
WRITE = ("POST", "/api/workflows/add-parser/cancel")


async def open_house(scope: Any, receive: Any, send: Any) -> None:
    """An application that lets every socket in."""
    await send({"type": "websocket.accept"})


@pytest.fixture
def sockets() -> Any:
    return AccessChecks(open_house, token=TOKEN, hosts=HOSTS)


FOREIGN_HOSTS = [
    "evil.example:7777",
    "127.0.0.1",
    "127.0.0.1:7778",
    "127.0.0.1:7777.evil.example",
    "localhost",
    "[::1]",
    "0.0.0.0:7777",
    "",
    None,
]
FOREIGN_ORIGINS = [
    "http://evil.example",
    "http://127.0.0.1",
    "http://127.0.0.1:7778",
    "https://127.0.0.1:7777",
    "http://localhost:5173",
    "http://127.0.0.1:7777/",
    "null",
]
WRONG_CREDENTIALS = [
    None,
    "",
    TOKEN,
    "Bearer",
    "Bearer wrong",
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN[:-1]}",
    f"bearer {TOKEN}",
    f"Basic {TOKEN}",
    "Bearer \xff\xfe",
]


@pytest.mark.parametrize("host", sorted(HOSTS | {"LOCALHOST:7777"}))
async def test_a_caller_who_uses_one_of_our_hosts_is_let_in(app: Any, sockets: Any, host: str) -> None:
    assert (await knock(app, *READ, host=host)).status == 200
    assert (await knock(app, *WRITE, {}, host=host)).status == 200
    assert await knock_socket(sockets, host=host) == [{"type": "websocket.accept"}]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
@pytest.mark.parametrize("request_line", [READ, WRITE])
async def test_a_foreign_host_is_refused_even_with_the_token(app: Any, request_line: Any, host: str | None) -> None:
    answer = await knock(app, *request_line, host=host)
    assert (answer.status, answer.body["code"]) == (403, "forbidden_host")


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
async def test_a_socket_to_a_foreign_host_is_refused(sockets: Any, host: str | None) -> None:
    (close,) = await knock_socket(sockets, host=host)
    assert (close["type"], close["code"]) == ("websocket.close", 1008)


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
async def test_a_write_from_a_foreign_page_is_refused_even_with_the_token(app: Any, origin: str) -> None:
    answer = await knock(app, *WRITE, {}, origin=origin)
    assert (answer.status, answer.body["code"]) == (403, "forbidden_origin")


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
async def test_a_socket_from_a_foreign_page_is_refused_even_with_the_token(sockets: Any, origin: str) -> None:
    (close,) = await knock_socket(sockets, origin=origin)
    assert close["type"] == "websocket.close"


@pytest.mark.parametrize("host", sorted(HOSTS))
async def test_a_page_of_ours_may_write_and_open_sockets(app: Any, sockets: Any, host: str) -> None:
    origin = f"http://{host}"
    assert (await knock(app, *WRITE, {}, origin=origin, sec_fetch_site="same-origin")).status == 200
    assert await knock_socket(sockets, origin=origin) == [{"type": "websocket.accept"}]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_a_write_that_the_browser_calls_cross_site_is_refused(app: Any, method: str) -> None:
    answer = await knock(app, method, WRITE[1], sec_fetch_site="cross-site")
    assert (answer.status, answer.body["code"]) == (403, "forbidden_origin")


async def test_a_read_needs_no_origin_but_the_token(app: Any) -> None:
    assert (await knock(app, *READ, origin="http://evil.example", sec_fetch_site="cross-site")).status == 200
    assert (await knock(app, *READ, origin="http://evil.example", authorization=None)).status == 401


@pytest.mark.parametrize("path", [READ[1], "/api/status", "/api/openapi.json", "/nowhere", "/docs"])
@pytest.mark.parametrize("credentials", WRONG_CREDENTIALS)
async def test_without_the_token_nothing_is_shown(app: Any, path: str, credentials: str | None) -> None:
    answer = await knock(app, "GET", path, authorization=credentials)
    assert (answer.status, answer.body["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("credentials", WRONG_CREDENTIALS)
async def test_without_the_token_no_socket_is_opened(sockets: Any, credentials: str | None) -> None:
    (close,) = await knock_socket(sockets, authorization=credentials)
    assert close["type"] == "websocket.close"


async def test_without_the_token_nothing_is_done(app: Any, service: Standin) -> None:
    await knock(app, *WRITE, {}, authorization=None)
    assert service.asked == []


async def test_a_refused_socket_is_told_why_where_the_server_can(sockets: Any) -> None:
    start, body = await knock_socket(sockets, {"websocket.http.response": {}}, authorization=None)
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 401)
    assert b"unauthorized" in body["body"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", None])
async def test_a_body_that_is_not_called_json_is_refused(app: Any, service: Standin, kind: str | None) -> None:
    answer = await knock(app, *WRITE, {}, content_type=kind)
    assert (answer.status, answer.body["code"]) == (415, "unsupported_media_type")
    assert (await knock(app, *WRITE, content_type=kind, transfer_encoding="chunked")).status == 415
    assert service.asked == []


async def test_json_may_name_its_charset_and_a_body_may_be_left_out(app: Any) -> None:
    assert (await knock(app, *WRITE, {}, content_type="Application/JSON; charset=utf-8")).status == 200
    assert (await knock(app, *WRITE, content_type=None)).status == 200


async def test_two_hosts_or_two_tokens_are_refused(app: Any) -> None:
    async def doubled(name: str, value: str) -> int:
        async def twice(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "headers": [*scope["headers"], (name.encode(), value.encode())]}, receive, send)

        return (await knock(twice, *READ)).status

    assert await doubled("host", HOST) == 403
    assert await doubled("authorization", f"Bearer {TOKEN}") == 401


def test_on_the_default_port_the_host_may_leave_it_out() -> None:
    assert "localhost" in own_hosts(80)
    assert own_hosts(7777) == HOSTS
    assert own_hosts(7777, ["Box.local", "fe80::1"]) == HOSTS | {"box.local:7777", "[fe80::1]:7777"}
