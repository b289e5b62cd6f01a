"""The application around a stand-in service: called directly, or served to other processes by a thread of this one.

There is one application for all tests of a process, and the service behind it is exchanged: building the routes takes
longer than most tests do.
"""

import asyncio
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from segue import paths
from segue.server.app import create_app
from segue.server.process import Listing, listen
from segue.server.routes import Context
from segue.server.security import own_hosts
from segue.server.shutdown import Shutdown
from segue.settings import Settings
from tests.server.knocking import HOSTS, TOKEN
from tests.server.standin_service import NOON, Standin


def app_around(service: Standin, stopping: Shutdown | None = None) -> FastAPI:
    """Put `service` behind the application, in place of the one before, and return the application."""
    app = _app(HOSTS)
    app.state.context = _context(service, stopping or Shutdown())
    return app


@cache
def _app(hosts: frozenset[str]) -> FastAPI:
    return create_app(_context(Standin(), Shutdown()), token=TOKEN, hosts=hosts)


def _context(service: Standin, stopping: Shutdown) -> Context:
    return Context(
        service=service,
        home=Path("/data"),
        started_at=NOON,
        settings=Settings(),
        stopping=stopping,
        stop=stopping.begin,
    )


@contextmanager
def serving(service: Standin) -> Generator[Listing]:
    """Serve `service` where the client finds it: in the present SEGUE_HOME."""
    paths.ensure_home()
    thread = _thread()
    with os.fdopen(paths.open_private(paths.token_file(), os.O_WRONLY | os.O_CREAT), "w") as file:
        file.write(TOKEN)
    listing = Listing(pid=os.getpid(), host=thread.host, port=thread.port, boot=service.boot, started_at=str(NOON))
    stopping = Shutdown()
    thread.app.state.context = _context(service, stopping)
    listing.publish(paths.server_file())
    try:
        yield listing
    finally:
        listing.withdraw(paths.server_file())
        thread.loop.call_soon_threadsafe(stopping.begin)
        assert thread.idle.wait(10)


class _Thread:
    """A server that runs until this process ends."""

    def __init__(self) -> None:
        listener = listen(Settings())
        self.host, self.port = listener.getsockname()[:2]
        self.app = _app(own_hosts(self.port))
        self.loop = asyncio.new_event_loop()
        self.idle = threading.Event()
        """Set while no request is being answered."""
        self.idle.set()
        self._requests = 0
        server = uvicorn.Server(uvicorn.Config(self._answer, interface="asgi3", log_config=None, lifespan="off"))
        threading.Thread(target=self.loop.run_until_complete, args=[server.serve([listener])], daemon=True).start()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self._requests += 1
        self.idle.clear()
        try:
            await self.app(scope, receive, send)
        finally:
            self._requests -= 1
            if not self._requests:
                self.idle.set()


_thread = cache(_Thread)
