import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segue import client, paths
from segue.model.errors import AlreadyServing, BadSettings, DatabaseTooNew, NotRunning, PortInUse, ServerError
from segue.server.process import keep_token, listen, locked
from segue.settings import Settings
from tests.server import STANDIN_SERVER, end_started_servers

BOUND = 30


@pytest.fixture(autouse=True)
def own_home(home: Path) -> Path:
    return home


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """Every server that a test started is gone after it."""
    yield
    end_started_servers()


def start(*arguments: str) -> client.Server:
    return client.start_server(arguments, command=STANDIN_SERVER)


def process() -> subprocess.Popen[bytes]:
    return client._started[-1]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_started_server_answers_and_is_found_by_its_file(home: Path) -> None:
    server = start()
    document = client.call("GET", "/api/status")
    assert (document["pid"], document["boot"], document["home"]) == (server.pid, server.boot, str(home))
    assert server.pid == process().pid
    assert json.loads(paths.server_file().read_text()) == server._asdict()


def test_what_a_server_writes_is_private(home: Path) -> None:
    start()
    private = [paths.token_file(), paths.server_file(), paths.lock_file(), paths.server_log()]
    assert mode(home) == 0o700
    assert {file.name: oct(mode(file)) for file in private} == {file.name: "0o600" for file in private}


def test_a_server_is_in_a_session_of_its_own_and_works_in_its_data_directory(home: Path) -> None:
    server = start()
    assert os.getsid(server.pid) == server.pid
    if sys.platform == "linux":
        assert Path(f"/proc/{server.pid}/cwd").readlink() == home


def test_a_second_server_is_refused_and_told_about_the_first() -> None:
    first = start()
    with pytest.raises(AlreadyServing, match=rf"pid {first.pid}\)") as refused:
        start()
    assert "segue down" in refused.value.hint
    assert client.find() == first


def test_a_killed_server_leaves_nothing_in_the_way_of_the_next() -> None:
    first = start()
    process().kill()
    process().wait()
    with pytest.raises(NotRunning, match=f"pid {first.pid}"):
        client.call("GET", "/api/status")
    assert start().pid != first.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_server_and_its_file(number: signal.Signals) -> None:
    start()
    process().send_signal(number)
    assert process().wait(BOUND) == 0
    assert not paths.server_file().exists()


def test_a_call_ends_the_server_and_its_file() -> None:
    server = start()
    assert client.stop_server(BOUND) == server
    assert process().wait(BOUND) == 0
    assert not paths.server_file().exists()


def test_the_file_of_another_server_is_left_alone() -> None:
    start()
    other = json.loads(paths.server_file().read_text()) | {"boot": "boot-other"}
    paths.server_file().write_text(json.dumps(other))
    process().terminate()
    assert process().wait(BOUND) == 0
    assert json.loads(paths.server_file().read_text()) == other


def test_a_service_that_does_not_close_cannot_keep_the_process_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN", "hangs")
    start()
    process().terminate()
    assert process().wait(BOUND) == 1
    assert not paths.server_file().exists()


def test_the_token_survives_a_restart() -> None:
    start()
    token = paths.token_file().read_text()
    client.stop_server(BOUND)
    start()
    assert paths.token_file().read_text() == token


def test_a_service_that_cannot_open_ends_the_start_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN", "fails")
    with pytest.raises(DatabaseTooNew) as failed:
        start()
    assert failed.value.hint == DatabaseTooNew.hint
    assert process().returncode == 1
    assert not paths.server_file().exists()


def test_an_unforeseen_failure_ends_the_start_with_the_last_lines_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN", "raises")
    with pytest.raises(ServerError, match=r"exited during its start \(exit code 1\)") as failed:
        start()
    assert "nobody foresaw this" in failed.value.hint


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"Port {port} "):
            start("--port", str(port))


def test_a_port_can_be_chosen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert start("--port", str(port)).port == port


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--port", "x"], ["--nonsense"]])
def test_wrong_use_ends_with_two(arguments: list[str]) -> None:
    assert subprocess.run([*STANDIN_SERVER, *arguments], capture_output=True, timeout=BOUND).returncode == 2


def test_in_the_foreground_a_server_says_where_it_serves(home: Path) -> None:
    with subprocess.Popen(STANDIN_SERVER, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        words = server.stdout.readline()
        assert client.find().url in words
        server.terminate()
        assert server.wait(BOUND) == 0


def test_bad_settings_end_the_start_with_a_sentence(home: Path) -> None:
    home.mkdir()
    (home / "segue.toml").write_text("prot = 1\n")
    with pytest.raises(BadSettings, match="unknown key: prot"):
        start()


# ── the parts ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (Settings(host="0.0.0.0"), "can be reached from other machines"),
        (Settings(host="0.0.0.0", allow_remote=True), "names no address"),
        (Settings(host="not an address"), "is not an address"),
    ],
)
def test_only_a_proper_address_is_listened_on(chosen: Settings, words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        listen(chosen)


def test_a_socket_listens_before_anyone_is_told() -> None:
    with listen(Settings()) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PortInUse):
            listen(Settings(port=port))


def test_a_lock_ends_with_its_holder(home: Path) -> None:
    paths.ensure_home()
    with locked(paths.lock_file()), pytest.raises(AlreadyServing, match=str(os.getpid())), locked(paths.lock_file()):
        pass
    with locked(paths.lock_file()):
        pass


def spoil_empty(file: Path) -> None:
    file.write_text("")


def spoil_short(file: Path) -> None:
    file.write_text("short\n")


def spoil_bytes(file: Path) -> None:
    file.write_bytes(b"\xff" * 64)


def spoil_mode(file: Path) -> None:
    file.chmod(0o644)


@pytest.mark.parametrize("spoil", [spoil_empty, spoil_short, spoil_bytes, spoil_mode])
def test_a_token_that_is_no_good_is_made_anew(home: Path, spoil: Any) -> None:
    paths.ensure_home()
    first = keep_token(paths.token_file())
    assert keep_token(paths.token_file()) == first
    spoil(paths.token_file())
    second = keep_token(paths.token_file())
    assert second != first
    assert paths.token_file().read_text().strip() == second
    assert mode(paths.token_file()) == 0o600
