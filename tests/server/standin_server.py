"""The server's process around a stand-in: what `python -m segue.server` is, with another service behind it.

STANDIN says how it misbehaves: `fails` to open, `raises` something unforeseen, `hangs` when it is closed;
`idle`, it has no workflow.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from standin_service import VIEW, Standin

from segue.model.errors import DatabaseTooNew
from segue.server import process


@asynccontextmanager
async def open_standin(**values: Any) -> AsyncGenerator[Standin]:
    how = os.environ.get("STANDIN", "")
    if how == "fails":
        raise ExceptionGroup("the tasks of the service", [DatabaseTooNew()])
    if how == "raises":
        raise RuntimeError("nobody foresaw this")
    yield Standin() if how == "idle" else Standin(VIEW)
    if how == "hangs":
        await asyncio.Event().wait()


if __name__ == "__main__":
    if os.environ.get("STANDIN") == "hangs":
        process.LONGEST_STOP = 0.5
    sys.exit(process.main(sys.argv[1:], open_standin))
