"""Calls to the server, and its start and stop. Standard library only, so that a command answers at once."""

import json
import os
import select
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from segue import paths
from segue.model import errors
from segue.model.errors import BadInput, NotRunning, SegueError, ServerError, TokenUnreadable

if TYPE_CHECKING:
    from subprocess import Popen

START_TIMEOUT = 60.0
STOP_TIMEOUT = 20.0
_LOOK_AGAIN = 0.05
_started: "list[Popen[bytes]]" = []


class Server(NamedTuple):
    """Server, as described in `server.json`."""

    pid: int
    host: str
    port: int
    boot: str
    started_at: str
    version: str

    @property
    def address(self) -> str:
        """Return host and port, as a Host header has them."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"


# ── calling ─────────────────────────────────────────────────────────────────────────────────────────


def call(
    method: str,
    path: str,
    body: object = None,
    *,
    params: Mapping[str, object] | None = None,
    timeout: float | None = 30.0,
) -> Any:
    """Send a request to the server; return its answer as parsed JSON, or raise its error."""
    server = find()
    status, answer = _exchange(server, method, _target(path, params), body, timeout)
    try:
        document = json.loads(answer)
    except ValueError:
        raise _not_segue(server) from None
    if status < 400:
        return document
    raise _error(server, document)


def in_path(name: str) -> str:
    """Quote a name as one segment of a path; raise BadInput for an empty one or one with a slash."""
    if not name or "/" in name:
        raise BadInput("A name is needed." if not name else f"{name!r} is not a name: it contains a slash.")
    from urllib.parse import quote

    return quote(name, safe="")


def find() -> Server:
    """Return the server of this data directory, as its file describes it; raise NotRunning without one or if its
    process is gone."""
    file = paths.server_file()
    try:
        fields = cast(dict[str, Any], json.loads(file.read_text("utf-8")))
        server = Server(*(fields[name] for name in Server._fields))
    except FileNotFoundError:
        raise NotRunning(hint="Start one with: segue up") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotRunning(f"{file} cannot be read, so no server is known.", hint="Start one with: segue up") from error
    if not _alive(server.pid):
        raise NotRunning(
            f"No Segue server is running: the last one (pid {server.pid}) is gone.", hint="Start one with: segue up"
        )
    return server


def _alive(pid: int) -> bool:
    """Return True if a process with this pid exists, of this user or another; a child of ours that ended does not
    count."""
    # A server started by this process stays in the process table until it is polled.
    for child in _started:
        child.poll()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _token() -> str:
    """Read the token from its file; raise TokenUnreadable if it is missing, unreadable or empty."""
    file = paths.token_file()
    try:
        token = file.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise TokenUnreadable(
            f"The token file {file} {what}.",
            hint="It must be a file of yours; restart the server to have it made anew: end its process, then segue up",
        ) from error
    if not token:
        raise TokenUnreadable(f"The token file {file} is empty.", hint="If a server is just starting, try again.")
    return token


def _target(path: str, params: Mapping[str, object] | None) -> str:
    """Append the parameters to the path as a query."""
    if not params:
        return path
    from urllib.parse import urlencode

    # The name of a directory need not be valid text.
    return f"{path}?{urlencode(params, errors='replace')}"


def _exchange(server: Server, method: str, target: str, body: object, timeout: float | None) -> tuple[int, bytes]:
    """Send a request on a new connection and return status and body of the answer; raise NotRunning if the
    connection fails."""
    data = b"" if body is None else json.dumps(body).encode()
    request = _head(server, method, target, data).encode() + data
    try:
        with socket.create_connection((server.host, server.port), timeout) as connection:
            connection.sendall(request)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    except TimeoutError as error:
        raise ServerError(f"The Segue server (pid {server.pid}) did not answer within {timeout:g} seconds.") from error
    except ConnectionRefusedError as error:
        raise _silent(server) from error
    except OSError as error:
        raise _went_away(server) from error
    return _parsed(server, answer)


def _head(server: Server, method: str, target: str, data: bytes) -> str:
    """Format the head of an HTTP/1.0 request, whose answer ends with the connection.

    Importing the standard library's client would take longer than the rest of `segue status`.
    """
    lines = [f"{method} {target} HTTP/1.0", f"Host: {server.address}", f"Authorization: Bearer {_token()}"]
    if data:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "", ""])


def _parsed(server: Server, answer: bytes) -> tuple[int, bytes]:
    """Split an answer into its status and its body; raise NotRunning if it is cut off."""
    head, found, content = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    length = next((line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")), "")
    try:
        status = int(first.split(" ")[1])
    except (IndexError, ValueError):
        raise _went_away(server) from None
    if not found or (length and int(length) != len(content)):
        raise _went_away(server)
    return status, content


def _went_away(server: Server) -> NotRunning:
    """Build the error of a connection that was closed in the middle of an answer."""
    return NotRunning(
        f"The Segue server (pid {server.pid}) closed the connection in the middle of an answer.",
        hint=f"Its log is {paths.server_log()}; start another with: segue up",
    )


def _silent(server: Server) -> NotRunning:
    """Build the error of a refused connection: the server is stopping, or gone and its pid reused by another
    process."""
    if _is_served():
        return NotRunning(
            f"The Segue server (pid {server.pid}) does not answer on {server.url}.",
            hint=f"It may be stopping: try again. If it stays so, its log is {paths.server_log()}",
        )
    return NotRunning("No Segue server is running: the last one is gone.", hint="Start one with: segue up")


def _is_served() -> bool:
    """Return True if a server holds the data directory's lock."""
    import fcntl

    try:
        descriptor = os.open(paths.lock_file(), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────


class Refused(SegueError):
    """The server refused the request."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self._code = code

    @property
    def code(self) -> str:
        return self._code


def error_of(problem: Mapping[str, object]) -> SegueError:
    """Convert an answer `{code, message, hint}` to an error of its class; unknown codes become Refused."""
    code, message, hint = (str(problem.get(key) or "") for key in ("code", "message", "hint"))
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, SegueError) and kind().code == code:
            return kind(message, hint=hint)
    return Refused(code, message, hint)


def _error(server: Server, document: object) -> SegueError:
    """Convert an answer with an error status to the error to raise; one that is not of Segue's shape means another
    program answers."""
    if not isinstance(document, dict) or "code" not in document:
        return _not_segue(server)
    problem = cast(dict[str, object], document)
    if problem["code"] == "unauthorized":
        return TokenUnreadable(
            f"The Segue server (pid {server.pid}) does not accept the token in {paths.token_file()}.",
            hint=f"The file changed after the server started. Restart the server: kill {server.pid}; segue up",
        )
    return error_of(problem)


def _not_segue(server: Server) -> ServerError:
    """Build the error of an answer that is not Segue's: another program answers, or no server is running."""
    if not _is_served():
        return _silent(server)
    return ServerError(
        f"The program that answers on {server.url} is not a Segue server.",
        hint=f"Remove {paths.server_file()} and start one with: segue up",
    )


# ── starting and stopping ───────────────────────────────────────────────────────────────────────────


def ensure_server(arguments: Sequence[str] = ()) -> tuple[Server, bool]:
    """Return the running server, or start one; True if this call started it."""
    import fcntl

    paths.ensure_home()
    descriptor = paths.open_private(paths.start_lock_file(), os.O_RDWR | os.O_CREAT)
    try:
        # Of two simultaneous commands the second waits here while the first one starts the server.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if (server := _settled()) is not None:
            return server, False
        return start_server(arguments), True
    finally:
        os.close(descriptor)


def _settled() -> Server | None:
    """Return the server that serves, or None; wait up to a limit for one that is starting or stopping."""
    from time import monotonic, sleep

    deadline = monotonic() + STOP_TIMEOUT
    while True:
        with suppress(NotRunning):
            call("GET", "/api/status")
            return find()
        if not _is_served() or monotonic() > deadline:
            return None
        sleep(_LOOK_AGAIN)


def start_server(
    arguments: Sequence[str] = (), *, command: Sequence[str] | None = None, timeout: float = START_TIMEOUT
) -> Server:
    """Start a server that outlives this process, wait until it serves, and return it; raise the error that it
    reports, or if it takes too long."""
    home = paths.ensure_home()
    log = paths.open_private(paths.server_log(), os.O_RDWR | os.O_CREAT | os.O_APPEND)
    before = os.lseek(log, 0, os.SEEK_END)
    ready, told = os.pipe()
    try:
        try:
            process = _spawn(
                [*(command or server_command()), "--ready-fd", str(told), *arguments], told, log, str(home)
            )
        finally:
            os.close(told)
        line = _until_end(ready, timeout)
        if line is None:
            _end(process, patience=0)
            sentence = f"The Segue server did not start within {timeout:g} seconds."
            raise ServerError(sentence, hint=_log_tail(log, before))
        return _outcome(line, process, lambda: _log_tail(log, before))
    finally:
        os.close(ready)
        os.close(log)


def server_command() -> list[str]:
    """Return the command that starts the server with this Python."""
    # -P: a file in the user's directory must not shadow a module.
    return [sys.executable, "-P", "-m", "segue.server"]


def _spawn(command: Sequence[str], told: int, log: int, home: str) -> "Popen[bytes]":
    """Start the server's process in a session of its own, with its output in the log and a second descriptor open
    for its report."""
    import subprocess

    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=home,
        env={**os.environ, "SEGUE_HOME": home},
        pass_fds=[told],
        start_new_session=True,
    )
    _started.append(process)
    return process


def _until_end(descriptor: int, timeout: float) -> bytes | None:
    """Read until end of file and return the content; None after the timeout."""
    from time import monotonic

    deadline, received = monotonic() + timeout, b""
    while True:
        readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - monotonic()))
        if not readable:
            return None
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return received
        received += chunk


def _outcome(line: bytes, process: "Popen[bytes]", log_tail: Callable[[], str]) -> Server:
    """Return the started server, or raise the error that it reported before it ended."""
    try:
        report = cast(dict[str, Any], json.loads(line))
        if "ready" in report:
            return find()
        problem = cast(dict[str, object], report["error"])
    except (ValueError, KeyError, TypeError):
        code = _end(process)
        raise ServerError(f"The Segue server exited during its start (exit code {code}).", hint=log_tail()) from None
    _end(process)
    raise error_of(problem)


def _end(process: "Popen[bytes]", patience: float = 5.0) -> int:
    """Wait for the exit of a server that failed to start, and return its exit code; kill it after `patience`
    seconds."""
    import subprocess

    with suppress(subprocess.TimeoutExpired):
        return process.wait(patience)
    process.kill()
    return process.wait()


def _log_tail(log: int, before: int) -> str:
    """Return the last lines that this start wrote to the log, or only the log's path if it wrote none."""
    lines = os.pread(log, 65536, max(before, os.fstat(log).st_size - 65536)).decode("utf-8", "replace").splitlines()
    return "\n  ".join([f"The end of {paths.server_log()}:", *lines[-3:]]) if lines else f"Log: {paths.server_log()}"


def stop_idle_server() -> None:
    """Stop a server that was started in vain, and wait for its exit; one with running workflows stays, and errors
    are ignored."""
    with suppress(SegueError, ProcessLookupError), _Exit(find().pid) as gone:
        call("POST", "/api/shutdown", {"if_idle": True})
        gone.wait(STOP_TIMEOUT)


def stop_server(timeout: float = STOP_TIMEOUT) -> Server:
    """Ask the server to stop, wait until it is gone, and return it; raise ServerError if it takes too long."""
    server = find()
    with _Exit(server.pid) as gone:
        call("POST", "/api/shutdown", {})
        if not gone.wait(timeout):
            raise ServerError(
                f"The Segue server (pid {server.pid}) has not ended after {timeout:g} seconds.",
                hint=f"End it with: kill -9 {server.pid}",
            )
    return server


class _Exit:
    """Notification of the exit of a process that is not a child, without polling."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __enter__(self) -> "_Exit":
        if sys.platform == "linux":
            self._descriptor = os.pidfd_open(self._pid)
        else:
            self._queue = select.kqueue()
            interest = select.kevent(self._pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
            self._queue.control([interest], 0)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if sys.platform == "linux":
            os.close(self._descriptor)
        else:
            self._queue.close()

    def wait(self, timeout: float) -> bool:
        """Wait for the exit; return False after the timeout."""
        if sys.platform == "linux":
            readable, _, _ = select.select([self._descriptor], [], [], timeout)
            return bool(readable)
        return bool(self._queue.control(None, 1, timeout))
