import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from segue import client, paths
from segue.model.errors import AlreadyServing, NotRunning, ServerError, TokenUnreadable, WorkflowNotFound, WrongState
from tests.server.standin_service import ID, Standin

GONE = 2**22 + 1
"""A pid that the kernel never gives."""


def publish(**changes: Any) -> None:
    paths.ensure_home()
    fields = {"pid": os.getpid(), "host": "127.0.0.1", "port": 1, "boot": "boot-x", "started_at": "", "version": "0"}
    paths.server_file().write_text(json.dumps(fields | changes))
    paths.token_file().write_text("t" * 43)


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A port that gives one caller this answer, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_once() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=answer_once, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


def test_what_the_server_answers_comes_back(service: Standin) -> None:
    assert client.call("GET", "/api/workflows/add-parser")["id"] == ID
    assert client.call("GET", "/api/workflows", params={"directory": "/a b&c", "status": "paused"}) == {"workflows": []}
    assert service.asked[-1] == ("workflows", Path("/a b&c"), ["paused"])


def test_an_error_of_the_server_comes_back_as_itself(service: Standin) -> None:
    with pytest.raises(WorkflowNotFound, match="No workflow is called 'nobody'") as missing:
        client.call("GET", "/api/workflows/nobody")
    assert missing.value.hint == "See them all with: segue status"
    service.failure = WrongState("Not now.", hint="Later.")
    with pytest.raises(WrongState, match=r"Not now\."):
        client.call("GET", "/api/workflows/add-parser")


def test_an_error_without_a_class_here_keeps_its_code(service: Standin) -> None:
    with pytest.raises(client.Refused, match="does not take this method") as refused:
        client.call("POST", "/api/status")
    assert refused.value.code == "method_not_allowed"
    assert client.error_of({"code": "brand_new", "message": "Something new.", "hint": ""}).code == "brand_new"


def test_without_a_server_file_no_server_is_running() -> None:
    with pytest.raises(NotRunning, match=r"^No Segue server is running\.$") as absent:
        client.call("GET", "/api/status")
    assert absent.value.hint == "Start one with: segue up"


def test_a_server_whose_process_is_gone_is_not_called() -> None:
    publish(pid=GONE)
    with pytest.raises(NotRunning, match=rf"the last one \(pid {GONE}\) is gone"):
        client.call("GET", "/api/status")


def test_a_pid_that_is_somebody_elses_by_now_is_not_blamed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    publish(port=port)
    with pytest.raises(NotRunning, match="the last one is gone"):
        client.call("GET", "/api/status")


def test_a_server_that_holds_its_data_but_does_not_answer_is_named() -> None:
    from segue.server.process import locked

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    publish(port=port)
    with locked(paths.lock_file()), pytest.raises(NotRunning, match=rf"\(pid {os.getpid()}\) does not answer on http"):
        client.call("GET", "/api/status")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', "null"])
def test_a_server_file_that_makes_no_sense_means_no_server(text: str) -> None:
    paths.ensure_home()
    paths.server_file().write_text(text)
    with pytest.raises(NotRunning, match=r"server\.json cannot be read"):
        client.call("GET", "/api/status")


def test_a_missing_token_file_is_named() -> None:
    publish()
    paths.token_file().unlink()
    with pytest.raises(TokenUnreadable, match="token is missing") as missing:
        client.call("GET", "/api/status")
    assert missing.value.hint


def test_a_token_file_that_cannot_be_read_is_named() -> None:
    publish()
    paths.token_file().unlink()
    paths.token_file().mkdir()
    with pytest.raises(TokenUnreadable, match="token cannot be read"):
        client.call("GET", "/api/status")


def test_an_empty_token_file_is_named() -> None:
    publish()
    paths.token_file().write_text("")
    with pytest.raises(TokenUnreadable, match="token is empty"):
        client.call("GET", "/api/status")


def test_a_token_that_the_server_does_not_know_is_named(service: Standin) -> None:
    paths.token_file().write_text("x" * 43)
    with pytest.raises(TokenUnreadable, match="does not accept the token") as refused:
        client.call("GET", "/api/status")
    assert "segue up" in refused.value.hint


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"HTTP/1.1 500 No\r\n\r\n[]"])
def test_what_is_not_a_segue_server_is_not_believed(answer: bytes) -> None:
    from segue.server.process import locked

    with answering(answer) as port:
        publish(port=port)
        with locked(paths.lock_file()), pytest.raises(ServerError, match="is not a Segue server"):
            client.call("GET", "/api/status")


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"])
def test_a_server_that_goes_away_in_the_middle_is_named(answer: bytes) -> None:
    with answering(answer) as port:
        publish(port=port)
        with pytest.raises(NotRunning, match="closed the connection in the middle of an answer"):
            client.call("GET", "/api/status")


def test_a_server_that_takes_too_long_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        publish(port=listener.getsockname()[1])
        with pytest.raises(ServerError, match=r"did not answer within 0\.05 seconds"):
            client.call("GET", "/api/status", timeout=0.05)


# ── starting ────────────────────────────────────────────────────────────────────────────────────────


def program(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "program.py"
    file.write_text(text)
    return [sys.executable, str(file)]


TELL = "import os, sys; fd = int(sys.argv[sys.argv.index('--ready-fd') + 1]); os.write(fd, {line!r}); os.close(fd)\n"


def test_a_start_that_reports_an_error_raises_it(tmp_path: Path) -> None:
    line = b'{"error": {"code": "already_serving", "message": "Another one.", "hint": "Use it."}}\n'
    with pytest.raises(AlreadyServing, match="Another one") as refused:
        client.start_server(command=program(tmp_path, TELL.format(line=line)))
    assert refused.value.hint == "Use it."


@pytest.mark.parametrize("line", [b"", b"nonsense\n", b"[]\n", b"{}\n"])
def test_a_start_that_makes_no_sense_is_a_failed_one(tmp_path: Path, line: bytes) -> None:
    text = TELL.format(line=line) + "print('last words', flush=True); sys.exit(3)"
    with pytest.raises(ServerError, match=r"exited during its start \(exit code 3\)") as failed:
        client.start_server(command=program(tmp_path, text))
    assert "last words" in failed.value.hint


def test_a_start_that_dies_shows_only_its_own_log_lines(tmp_path: Path) -> None:
    paths.ensure_home()
    paths.server_log().write_text("words of an earlier start\n")
    with pytest.raises(ServerError, match=r"exit code -9") as failed:
        client.start_server(command=program(tmp_path, "import os; os.kill(os.getpid(), 9)"))
    assert "earlier" not in failed.value.hint


def test_a_start_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"did not start within 0\.1 seconds"):
        client.start_server(command=program(tmp_path, "import threading; threading.Event().wait()"), timeout=0.1)
    assert client._started[-1].returncode == -9


@pytest.mark.usefixtures("standin_command")
def test_a_server_is_started_once_however_many_ask(tmp_path: Path) -> None:
    answers: list[tuple[client.Server, bool]] = []
    threads = [threading.Thread(target=lambda: answers.append(client.ensure_server())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(started for _, started in answers) == [False, False, False, True]
    assert len({server.pid for server, _ in answers}) == 1


@pytest.mark.usefixtures("standin_command")
def test_a_server_that_is_just_stopping_is_waited_for_and_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN", "hangs")
    before, _ = client.ensure_server()
    client.call("POST", "/api/shutdown", {})
    monkeypatch.delenv("STANDIN")
    after, started = client.ensure_server()
    assert started and after.pid != before.pid
    assert client.call("GET", "/api/status")["pid"] == after.pid


@pytest.mark.usefixtures("standin_command")
def test_a_server_that_was_started_for_nothing_is_gone_when_it_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN", "idle")
    client.ensure_server()
    client.stop_idle_server()
    [process] = client._started
    assert process.poll() == 0


@pytest.mark.usefixtures("standin_command")
def test_a_started_server_does_not_hold_the_terminal_or_the_pipes_of_its_starter(home: Path) -> None:
    code = (
        f"from segue import client; client.server_command = lambda: {client.server_command()!r}; client.ensure_server()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    server = client.find()
    assert os.getsid(server.pid) == server.pid
    assert client.stop_server() == server
