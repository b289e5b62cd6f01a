"""Servers that start at once: forked from a process that has imported all modules already.

Each is the server of `armed_server`, in a session, an environment and with files of its own. The fork saves the time to
load the same modules a hundred times.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn, Self

from segue import client, paths
from segue.client import Server
from segue.model.errors import ServerError

MODULES = ("segue.orchestrator", "segue.server.process", "segue.drivers.acp", "tests.equipment.armed_server")
ROOT = Path(__file__).parent.parent.parent
_PIECE = 64 * 1024


class ForkServer:
    """Process from which servers are forked; it ends with the context."""

    def __enter__(self) -> Self:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait()

    def start(self, variables: Mapping[str, str]) -> Server:
        """Start a server for a stage, like `client.start_server`, but at once."""
        home = paths.ensure_home()
        environment = {**os.environ, **variables, "SEGUE_HOME": str(home)}
        log = paths.open_private(paths.server_log(), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        ready, told = os.pipe()
        try:
            socket.send_fds(self._socket, [json.dumps(environment).encode() + b"\n"], [log, told])
            os.close(told)
            return self._outcome(_until_end(ready, client.START_TIMEOUT))
        finally:
            os.close(log)
            os.close(ready)

    def _outcome(self, report: bytes) -> Server:
        if not report:
            raise ServerError("The Segue server exited during its start.")
        document: dict[str, Any] = json.loads(report)
        if "error" in document:
            raise client.error_of(document["error"])
        return client.find()


def _until_end(descriptor: int, timeout: float) -> bytes:
    deadline, received = monotonic() + timeout, b""
    while select.select([descriptor], [], [], max(0.0, deadline - monotonic()))[0]:
        if not (piece := os.read(descriptor, 65536)):
            return received
        received += piece
    raise ServerError(f"The Segue server did not start within {timeout:g} seconds.")


def main(requests: socket.socket) -> None:
    """Fork a server for each request until the socket is closed; then kill all servers."""
    for name in MODULES:
        import_module(name)
    children: set[int] = set()

    def reap(*_: object) -> None:
        with suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                children.discard(pid)

    # At once, because a zombie process looks alive.
    signal.signal(signal.SIGCHLD, reap)
    while (request := _next_request(requests)) is not None:
        environment, files = request
        pid = os.fork()
        if pid == 0:
            requests.close()
            _become_server(environment, *files)
        children.add(pid)
        for descriptor in files:
            os.close(descriptor)
    for pid in tuple(children):
        os.kill(pid, signal.SIGKILL)


def _next_request(requests: socket.socket) -> tuple[dict[str, str], list[int]] | None:
    message, files, _, _ = socket.recv_fds(requests, _PIECE, 2)
    while message and not message.endswith(b"\n"):
        message += requests.recv(_PIECE)
    return (json.loads(message), files) if message else None


def _become_server(environment: dict[str, str], log: int, told: int) -> NoReturn:
    from tests.equipment import armed_server

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = ["--ready-fd", str(told)]
    code = 1
    with suppress(KeyboardInterrupt):
        code = armed_server.main()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
