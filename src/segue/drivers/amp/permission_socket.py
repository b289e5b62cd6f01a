"""Socket for Amp's permission requests during a turn, and the files that lead Amp there."""

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segue.drivers.amp import delegate
from segue.drivers.amp.command import LONGEST_LINE
from segue.drivers.amp.settings import ruled
from segue.workspace.private import private_directory, room_for_socket, write_private


@dataclass(frozen=True, slots=True, kw_only=True)
class AmpQuestion:
    """A tool that Amp wants to use."""

    tool: str
    input: Mapping[str, Any]
    call: str = ""
    """Id of the call, if Amp sends it."""


Decide = Callable[[AmpQuestion], Awaitable[bool]]


@asynccontextmanager
async def permission_socket(
    ask: Decide, own: Mapping[str, Any], servers: Mapping[str, Any]
) -> AsyncGenerator[list[str]]:
    """Open the socket in a private directory for one turn, and yield the options that make Amp use it."""
    with private_directory("segue-amp") as place, room_for_socket(place, "door") as room:
        async with _listening(str(room), ask) as socket:
            yield [*_settings(place, socket, own), *_servers(place, servers)]


@asynccontextmanager
async def _listening(socket: str, ask: Decide) -> AsyncGenerator[str]:
    """Answer questions at the socket through `ask`; on exit close it, and drop open questions."""
    waiting: set[asyncio.Task[Any]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            waiting.add(task)
        asked = json.loads(await reader.readline())
        allowed = await ask(AmpQuestion(tool=asked["tool"], call=asked["call"], input=asked["input"]))
        writer.write(b"allow\n" if allowed else b"refuse\n")
        writer.close()

    # A question holds what a tool is to write, so it may be as long as anything else that Amp says.
    server = await asyncio.start_unix_server(answer, socket, limit=LONGEST_LINE)
    try:
        yield socket
    finally:
        server.close()
        # Whoever is still asked at the end of the turn is asked for nothing.
        for task in waiting:
            task.cancel()


def _settings(place: Path, socket: str, own: Mapping[str, Any]) -> list[str]:
    """Write the settings and the script that make Amp ask at the socket, and return the options for them."""
    words = shlex.join([sys.executable, "-I", "-S", str(delegate.__file__), socket])
    script = place / "ask"
    # Amp starts one program, without arguments.
    script.write_text(f"#!/bin/sh\nexec {words}\n")
    script.chmod(0o700)
    file = place / "settings.json"
    write_private(file, json.dumps(ruled(own, str(script))))
    return ["--settings-file", str(file)]


def _servers(place: Path, servers: Mapping[str, Any]) -> list[str]:
    """Write the MCP servers into a private file, not a public command line, and return the options; empty for none."""
    if not servers:
        return []
    file = place / "servers.json"
    write_private(file, json.dumps(servers))
    return ["--mcp-config", str(file)]
