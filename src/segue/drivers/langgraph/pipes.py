"""The protocol's own pipes, which a graph that prints cannot spoil."""

import asyncio
import os
from dataclasses import dataclass

LONGEST_LINE = 50 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pipes:
    """Where the other side is heard, and where it is told."""

    given: int
    told: int

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        protocol = asyncio.StreamReaderProtocol(reader)
        await loop.connect_read_pipe(lambda: protocol, os.fdopen(self.given, "rb", buffering=0))
        transport, flow = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(self.told, "wb", buffering=0)
        )
        return reader, asyncio.StreamWriter(transport, flow, None, loop)


def take_over() -> Pipes:
    """From now on, what the graph prints goes to standard error, and what it reads is at its end."""
    pipes = Pipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return pipes
