import sys
from pathlib import Path

from segue import client

STANDIN_SERVER = (sys.executable, str(Path(__file__).with_name("standin_server.py")))
"""Command that starts a server process around the stand-in service."""


def end_started_servers() -> None:
    """Kill the servers that this process has started."""
    started = client._started  # pyright: ignore[reportPrivateUsage]
    for process in started:
        process.kill()
        process.wait()
    started.clear()
