"""Amp's real program, as far as it goes without its server; `make certify AGENTS=amp` brings it, and runs this."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_hex
from threading import Thread
from typing import Any

import anyio
import pytest

from segue.drivers import Launch, load
from segue.drivers.amp.permission_socket import AmpQuestion, permission_socket
from segue.drivers.amp.turns import WORDS
from segue.drivers.environment import allowed
from segue.model import errors

PROGRAM = os.environ.get("SEGUE_AMP_PROGRAM", "")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not PROGRAM, reason="Amp is not here: `make certify AGENTS=amp` brings it, and runs this"),
]

DRIVER = load("amp")
GONE = "T-00000000-0000-0000-0000-000000000000"


@contextmanager
def server(code: str) -> Generator[str]:
    """Something that answers every call of Amp's with this error."""

    class Refusal(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.dumps({"ok": False, "error": {"code": code}}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/"
        http.shutdown()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    return tmp_path


def launch(place: Path, url: str, **variables: str) -> Launch:
    return Launch(
        command=(sys.executable, "-P", "-m", "segue.drivers.amp", PROGRAM),
        directory=place / "work",
        environment={**allowed(os.environ), "HOME": str(place / "home"), "AMP_URL": url, **variables},
        execution=f"amp-{token_hex(4)}",
    )


async def test_it_introduces_itself_without_a_server(place: Path) -> None:
    introduction = await DRIVER.introduce(launch(place, "http://127.0.0.1:1/"))
    assert introduction.name == "amp" and introduction.version.startswith("0.0.")
    assert introduction.capabilities.native


async def test_without_a_login_it_says_so_with_the_command(place: Path) -> None:
    with server("auth-required") as url, pytest.raises(errors.LoginRequired) as raised:
        async with DRIVER.start(launch(place, url)):
            pass
    assert raised.value.message == (
        "The agent wants you to log in first: Not logged in. Run 'amp login' to authenticate."
    )


async def test_a_thread_that_its_server_does_not_know_is_rejected(place: Path) -> None:
    with server("thread-not-found") as url, pytest.raises(errors.TokenRejected, match=f"{GONE} does not exist"):
        async with DRIVER.resume(launch(place, url, AMP_API_KEY="not-a-key"), GONE):
            pass


async def test_what_is_no_thread_at_all_is_rejected_too(place: Path) -> None:
    with pytest.raises(errors.TokenRejected, match="Invalid thread"):
        async with DRIVER.resume(launch(place, "http://127.0.0.1:1/"), "a-conversation-that-never-was"):
            pass


async def test_it_knows_all_the_words_of_a_turn(place: Path) -> None:
    servers = {"docs": {"command": "true", "args": []}}
    with server("thread-not-found") as url:
        async with asking(servers=servers) as (words, _):
            command = [PROGRAM, "threads", "continue", GONE, *WORDS, "--mode", "high", *words]
            environment = {**launch(place, url).environment, "AMP_API_KEY": "not-a-key"}
            told = await anyio.run_process(command, cwd=place / "work", env=environment, check=False, input=b"")
    assert f"{GONE} does not exist" in told.stderr.decode()


async def test_a_server_that_is_away_takes_no_token_away(place: Path) -> None:
    away = launch(place, "http://127.0.0.1:1/", AMP_API_KEY="not-a-key")
    with pytest.raises(errors.HandshakeFailed):
        async with DRIVER.resume(away, GONE):
            pass
    with pytest.raises(errors.HandshakeFailed, match="Cannot reach Amp servers"):
        async with DRIVER.start(away):
            pass


# ── permissions ─────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def asking(
    *answers: bool, servers: dict[str, Any] | None = None
) -> AsyncGenerator[tuple[list[str], list[AmpQuestion]]]:
    """Amp's words for our rule, and what it asked so far."""
    asked: list[AmpQuestion] = []

    async def answer(question: AmpQuestion) -> bool:
        asked.append(question)
        return answers[len(asked) - 1]

    async with permission_socket(answer, {}, servers or {}) as words:
        yield words, asked


async def may(place: Path, words: list[str], tool: str, **given: str) -> bool:
    """What the real program makes of its rules for one call."""
    named = [word for name, value in given.items() for word in (f"--{name}", value)]
    command = [PROGRAM, *words, "permissions", "test", tool, *named, "--json"]
    environment = {**allowed(os.environ), "HOME": str(place / "home")}
    told = await anyio.run_process(command, cwd=place / "work", env=environment, check=False, stderr=subprocess.DEVNULL)
    return json.loads(told.stdout)["action"] == "allow"


async def test_our_rule_asks_us_and_amp_does_what_we_answer(place: Path) -> None:
    async with asking(True, False) as (words, asked):
        assert await may(place, words, "create_file", path="a.txt")
        assert not await may(place, words, "Bash", cmd="make")
    assert [(each.tool, each.input) for each in asked] == [
        ("create_file", {"path": "a.txt"}),
        ("Bash", {"cmd": "make"}),
    ]


async def test_a_look_is_free_and_a_repositorys_own_rules_cannot_free_more(place: Path) -> None:
    (own := place / "work" / ".amp").mkdir()
    (own / "settings.json").write_text(json.dumps({"amp.permissions": [{"tool": "*", "action": "allow"}]}))
    async with asking(False) as (words, asked):
        assert await may(place, words, "Read", path="a.txt")
        assert not await may(place, words, "Bash", cmd="ls")
    assert [each.tool for each in asked] == ["Bash"]


async def test_when_nobody_is_there_to_ask_it_is_refused(place: Path) -> None:
    async with asking() as (words, _):
        (Path(words[1]).parent / "door").unlink()
        assert not await may(place, words, "Bash", cmd="make")
