"""`python benchmarks/traced.py FILE …`: the ordinary server, which notes in FILE when it passes its crash points.

It also notes when it calls git, and when it has an agent guarded. A line is a moment and a name.
"""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from segue.drivers import acp
from segue.model import crash
from segue.workspace.git import Calls, GitOutput

GIT, GIT_END = "git", "git.end"
GUARDIAN, GUARDED = "guardian", "guardian.up"


@dataclass(frozen=True, slots=True)
class Mark:
    """Moment at which a point of the code was passed."""

    at: float
    """Seconds of the clock that all processes of the machine share."""
    name: str


def main() -> int:
    trace(Path(sys.argv.pop(1)))
    from segue.server.__main__ import main as serve

    return serve()


def trace(file: Path) -> None:
    """Write marks from now on."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    ask, guarded = Calls.ask, acp.guarded

    def mark(name: str) -> None:
        os.write(descriptor, f"{monotonic():.6f} {name}\n".encode())

    def marked_ask(calls: Calls, *words: str, **more: Any) -> GitOutput:
        mark(GIT)
        try:
            return ask(calls, *words, **more)
        finally:
            mark(GIT_END)

    @asynccontextmanager
    async def marked_guarded(*arguments: Any, **more: Any) -> AsyncGenerator[Any]:
        mark(GUARDIAN)
        async with guarded(*arguments, **more) as process:
            mark(GUARDED)
            yield process

    crash.arm(mark)
    Calls.ask = marked_ask
    acp.guarded = marked_guarded


def marks_in(file: Path, after: float = 0.0) -> list[Mark]:
    """Read the marks after a moment, in order."""
    pairs = [line.split() for line in file.read_text().splitlines()]
    return [Mark(float(at), name) for at, name in pairs if float(at) >= after]


if __name__ == "__main__":
    sys.exit(main())
