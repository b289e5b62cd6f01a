"""Start of an agent program: `initialize` is answered before asyncio and the vendor's library are imported."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from segue.drivers.skeleton.jsonrpc import Message, Parameters, RequestError
from segue.drivers.skeleton.payloads import Payload

if TYPE_CHECKING:
    from segue.drivers.skeleton.agent_program import Starter

_BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class Pipes:
    """File descriptors of the protocol's own input and output."""

    input: int
    output: int


def run(introduce: Callable[[], Payload], load: Callable[[], "Starter"]) -> int:
    """Run an agent program on standard input and output until the input ends, and return 0. `introduce` makes the
    answer to `initialize`; `load` then imports the rest, outside of any event loop."""
    pipes = _take_over()
    received, client = _initialize(pipes, introduce)
    start = load()
    import asyncio

    from segue.drivers.skeleton.agent_program import serve

    asyncio.run(serve(pipes, received, client, introduce, start))
    return 0


def _take_over() -> Pipes:
    """Take the protocol's pipes away from libraries: they print to standard error, and read nothing."""
    pipes = Pipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return pipes


def _initialize(pipes: Pipes, introduce: Callable[[], Payload]) -> tuple[bytes, Parameters]:
    """Answer the first line if it is `initialize`; return the input behind it, and the parameters of the client."""
    received = b""
    while b"\n" not in received and (block := os.read(pipes.input, _BLOCK)):
        received += block
    line, _, rest = received.partition(b"\n")
    request = _parsed(line)
    if request is None:
        return received, Parameters({})
    try:
        answer: Message = {"result": introduce()}
    except RequestError as error:
        answer = {"error": error.as_message()}
    content = json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode() + b"\n"
    while content:
        content = content[os.write(pipes.output, content) :]
    return rest, Parameters(request.get("params") or {})


def _parsed(line: bytes) -> Message | None:
    """Return a line as an `initialize` request, or None if it is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    match message:
        case {"jsonrpc": "2.0", "method": "initialize", "id": _}:
            return message
        case _:
            return None
