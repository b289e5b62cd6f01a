"""A server in miniature: runs one agent under the name it is given, tells what it started, and waits for its end."""

import asyncio
import json
import os
import sys
from pathlib import Path

from segue.workspace import guarded


async def main(execution: str, *command: str) -> None:
    async with guarded(command, directory=Path.cwd(), environment=os.environ, execution=execution) as process:
        pids = json.loads(await process.stdout.readline())
        sys.stdout.write(json.dumps({"guardian": process.guardian_pid, "agent": process.pid, "tree": pids}) + "\n")
        sys.stdout.flush()
        await process.wait()


asyncio.run(main(*sys.argv[1:]))
