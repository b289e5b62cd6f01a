"""The server's process: lock, socket, token, service, serving, and a stop within a time limit."""

import argparse
import asyncio
import errno
import fcntl
import gc
import ipaddress
import json
import logging
import os
import re
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import uvicorn
from fastapi import FastAPI

from segue import __version__, paths, settings
from segue.model.errors import AlreadyServing, BadSettings, PortInUse, SegueError, ServerError, TokenUnreadable
from segue.model.ids import BootId
from segue.server.app import create_app
from segue.server.interface import OpenService, WorkflowService
from segue.server.routes import Context
from segue.server.rules import rules_of
from segue.server.security import own_hosts
from segue.server.shutdown import Shutdown
from segue.settings import Settings

GRACE = 3.0
"""Seconds for open requests to end when the server stops."""
LONGEST_STOP = 9.0
"""Seconds after which a stop that has not completed is forced."""

TICKS_PER_SECOND = 10
"""By uvicorn's count: it renews the date that it sends with every tenth."""

TOKEN = re.compile(r"[A-Za-z0-9_-]{32,}")


def main(arguments: Sequence[str], open_service: OpenService) -> int:
    """Serve until a signal or a request stops the server; return 0, or 1 with the error reported if it could not
    start."""
    options = _parse(arguments)
    report = Report(options.ready_fd)
    logging.getLogger("segue").setLevel(logging.INFO)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        home = paths.ensure_home()
        # Relative paths in settings must not depend on the directory in which the server was started.
        os.chdir(home)
        asyncio.run(_serve(_settings(options), home, report, open_service))
    except Exception as error:
        refusal = _alone(error)
        if not isinstance(refusal, SegueError):
            raise
        report.failed(refusal)
        sys.stderr.write(f"segue: {refusal.message}\n" + (f"  {refusal.hint}\n" if refusal.hint else ""))
        return 1
    return 0


def _alone(error: BaseException) -> BaseException:
    """Unwrap an error from exception groups that contain nothing else; others are returned as they are."""
    while isinstance(error, BaseExceptionGroup):
        first, *others = cast(BaseExceptionGroup[BaseException], error).exceptions
        if others:
            break
        error = first
    return cast(BaseException, error)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; exit with its usage if it is wrong."""
    parser = argparse.ArgumentParser("python -m segue.server", description="Serve Segue's data directory.")
    parser.add_argument("--host", help="the address to listen on (default: the setting)")
    parser.add_argument("--port", type=_port, help="the port to listen on; 0 takes any free one (default: the setting)")
    parser.add_argument("--ready-fd", type=int, help="a file descriptor to report on, once, when ready or failed")
    return parser.parse_args(arguments)


def _port(given: str) -> int:
    """Parse a port; raise the parser's error if it is out of range."""
    number = int(given)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError("must be from 0 to 65535")
    return number


def _settings(options: argparse.Namespace) -> Settings:
    """Load the settings, with host and port of the command line in place of theirs."""
    chosen = settings.load(paths.settings_file(), os.environ)
    if options.host is not None:
        chosen = replace(chosen, host=options.host)
    if options.port is not None:
        chosen = replace(chosen, port=options.port)
    return chosen


class Report:
    """Report of the start, as one line of JSON, to the process that started the server."""

    def __init__(self, descriptor: int | None) -> None:
        """Keep the descriptor for one report, hidden from child processes; without one, print."""
        self._descriptor = descriptor
        if descriptor is not None:
            # A child process that inherits the descriptor would keep the pipe open.
            os.set_inheritable(descriptor, False)

    def ready(self, listing: "Listing") -> None:
        """Report that the server accepts connections, on its descriptor or else as a line on stdout."""
        if self._descriptor is None:
            sys.stdout.write(f"Segue serves on {listing.url} (pid {listing.pid}). Stop it with Ctrl-C or: segue down\n")
            sys.stdout.flush()
        self._write({"ready": asdict(listing)})

    def failed(self, error: SegueError) -> None:
        """Report the error on the descriptor; do nothing without one."""
        self._write({"error": {"code": error.code, "message": error.message, "hint": error.hint}})

    def _write(self, document: object) -> None:
        """Write the report as one line and close the descriptor; do nothing without one, or the second time."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        with suppress(OSError):
            os.write(descriptor, json.dumps(document).encode() + b"\n")
        os.close(descriptor)


# ── what a server holds ─────────────────────────────────────────────────────────────────────────────


@contextmanager
def locked(file: Path) -> Generator[None]:
    """Hold the lock of the data directory and write our pid into its file; raise AlreadyServing if another server
    holds it."""
    descriptor = paths.open_private(file, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise AlreadyServing(
                f"Another Segue server (pid {pid}) uses {file.parent}.",
                hint="Use that one, or stop it with `segue down`; a second server needs another SEGUE_HOME.",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def listen(chosen: Settings) -> socket.socket:
    """Open a listening socket at the host and port of the settings; raise if the port is in use, or other machines
    are not allowed but could reach it."""
    family, address = _address(chosen.host, chosen.port)
    if not ipaddress.ip_address(address[0]).is_loopback:
        _allow_remote(chosen, address[0])
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        # Only a listening socket refuses a second server on the port.
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise _cannot_listen(chosen, error) from error
    return listener


def _address(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Resolve the host; raise BadSettings if it is no address of this machine."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError, OverflowError) as error:
        raise BadSettings(f"The host {host!r} is not an address of this machine.", hint="Use 127.0.0.1.") from error
    return family, (str(address[0]), int(address[1]))


def _allow_remote(chosen: Settings, address: str) -> None:
    """Raise BadSettings unless `allow_remote` is set and the address is a definite one."""
    if not chosen.allow_remote:
        raise BadSettings(
            f"The host {chosen.host} can be reached from other machines.",
            hint="Use 127.0.0.1, or set allow_remote = true if that is what you want.",
        )
    if ipaddress.ip_address(address).is_unspecified:
        raise BadSettings(
            f"The host {chosen.host} names no address.",
            hint="Name the address that other machines use: the server answers to that one only.",
        )


def _cannot_listen(chosen: Settings, error: OSError) -> ServerError:
    """Build the error of a socket that cannot be bound: PortInUse, or another."""
    if error.errno == errno.EADDRINUSE:
        return PortInUse(
            f"Port {chosen.port} on {chosen.host} is in use.", hint="Choose another, or 0 to take any free one."
        )
    return ServerError(f"The server cannot listen on {chosen.host}, port {chosen.port}: {error.strerror}.")


def keep_token(file: Path) -> str:
    """Return the token in `file`; write a new one if there is none, or if other users could read it."""
    try:
        token = file.read_text("ascii").strip()
        if TOKEN.fullmatch(token) and not file.stat().st_mode & 0o077:
            return token
        file.unlink()
    except FileNotFoundError:
        pass
    except ValueError:
        file.unlink()
    except OSError as error:
        raise TokenUnreadable(
            f"The token file {file} cannot be read: {error.strerror}.",
            hint="Remove it; the next start makes one.",
        ) from error
    return _new_token(file)


def _new_token(file: Path) -> str:
    """Write a new random token to a private file that must not exist, and return it."""
    token = secrets.token_urlsafe(32)
    with os.fdopen(paths.open_private(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w") as out:
        out.write(token + "\n")
        out.flush()
        os.fsync(out.fileno())
    return token


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Content of `server.json`, by which callers find the server."""

    pid: int
    host: str
    port: int
    boot: BootId
    started_at: str
    version: str = __version__

    @property
    def url(self) -> str:
        """Return the server's URL, with an IPv6 address in brackets."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def publish(self, file: Path) -> None:
        """Write this listing to the file, readable by this user alone."""
        paths.write_private(file, json.dumps(asdict(self)).encode() + b"\n")

    def withdraw(self, file: Path) -> None:
        """Remove the file, unless it belongs to another server or cannot be read."""
        with suppress(OSError, ValueError):
            if json.loads(file.read_text("utf-8"))["boot"] == self.boot:
                file.unlink()


# ── serving ─────────────────────────────────────────────────────────────────────────────────────────


class _UvicornServer(uvicorn.Server):
    """uvicorn that reports when it accepts connections, stops at once, and leaves signals to us."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Let the server stop at its next tick, and make that come now."""
        self.should_exit = True
        self._stopped.set()

    async def main_loop(self) -> None:
        """Run the server's loop once a second, in place of ten times, until `stop` is called."""
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += TICKS_PER_SECOND
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), 1.0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections, then call `ready`."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals alone: this process handles them itself."""
        yield


async def _serve(chosen: Settings, home: Path, report: Report, open_service: OpenService) -> None:
    """Lock the data directory, listen, open the service, and serve it until it is stopped."""
    with locked(paths.lock_file()), listen(chosen) as listener:
        token = keep_token(paths.token_file())
        async with open_service(
            database_url=paths.database_url(),
            home=home,
            agents=chosen.agents,
            rules=rules_of(chosen, settings.work_in(os.environ)),
        ) as service:
            await _answer(service, chosen, listener, token, report)


async def _answer(
    service: WorkflowService, chosen: Settings, listener: socket.socket, token: str, report: Report
) -> None:
    """Serve `service` until a signal or a caller ends it; callers find it in `server.json` while it accepts
    connections."""
    host, port = listener.getsockname()[:2]
    started_at = datetime.now(UTC)
    listing = Listing(pid=os.getpid(), host=host, port=port, boot=service.boot, started_at=started_at.isoformat())
    file = paths.server_file()
    stopping = Shutdown()

    def stop() -> None:
        # From now on callers must not find this server.
        listing.withdraw(file)
        if not stopping.begun:
            _end_at_last()
        stopping.begin()
        server.stop()

    def ready() -> None:
        listing.publish(file)
        # Loaded modules stay in memory; without the freeze, each full garbage collection would scan them.
        gc.collect()
        gc.freeze()
        gc.enable()
        report.ready(listing)

    context = Context(
        service=service,
        home=paths.home(),
        started_at=started_at,
        settings=chosen,
        spoken=settings.work_in(os.environ),
        stopping=stopping,
        stop=stop,
    )
    app = create_app(context, token=token, hosts=own_hosts(port, {host, chosen.host}))
    server = _UvicornServer(_configuration(app), ready)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        await server.serve(sockets=[listener])
    finally:
        listing.withdraw(file)


def _configuration(app: FastAPI) -> uvicorn.Config:
    """Build uvicorn's configuration: no access log, no lifespan events, a limited time to stop."""
    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(GRACE),
    )


def _end_at_last() -> None:
    """Start a timer that ends the process, even if a task hangs; its guardians then end the agents."""

    def end() -> None:
        logging.getLogger(__name__).error("The server did not stop within %g seconds: it exits.", LONGEST_STOP)
        os._exit(1)

    timer = threading.Timer(LONGEST_STOP, end)
    timer.daemon = True
    timer.start()
