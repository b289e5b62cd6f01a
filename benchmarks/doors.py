"""Waiting time and memory: `segue status`, the idle server, and a guardian pair."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from benchmarks.figures import spread
from segue.testing.stage import Stage
from segue.workspace.processes import descendants, guarded

TIMES = 15
IDLE = 2.0
"""Idle seconds before the server's memory is read."""

MemoryFigures = dict[str, float | None]


async def measure(directory: Path) -> dict[str, Any]:
    with Stage(directory) as stage:
        start = perf_counter()
        server = stage.up()
        up = perf_counter() - start
        sleep(IDLE)  # noqa: ASYNC251 — nothing else runs in this process
        idle = memory_of([server.pid])
        figures = {"server_start_ms": up * 1e3, **status(), "server_memory": idle}
        stage.down()
    return {**figures, "guardian_memory": await guardians(directory)}


def status() -> dict[str, Any]:
    """Time `segue status` and an empty Python process, in turns."""
    command = Path(sys.executable).with_name("segue")
    segue = [str(command)] if command.exists() else [sys.executable, "-m", "segue"]
    pairs = [(timed([*segue, "status"]), timed([sys.executable, "-c", "pass"])) for _ in range(TIMES)]
    return {"status": spread([pair[0] for pair in pairs]), "bare_python": spread([pair[1] for pair in pairs])}


def timed(command: Sequence[str]) -> float:
    start = perf_counter()
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return perf_counter() - start


async def guardians(directory: Path) -> MemoryFigures:
    """Measure the two guardian processes of one agent, which is a `sleep` here."""
    async with guarded(
        ["sleep", "60"], directory=directory, environment=dict(os.environ), execution="benchmark"
    ) as process:
        below = [pid for pid in descendants(process.guardian_pid) if pid != process.pid]
        return memory_of([process.guardian_pid, *below])


def memory_of(pids: Sequence[int]) -> MemoryFigures:
    """Return the memory of processes in megabytes: proportional (PSS) and total (RSS)."""
    rollups = [rollup(pid) for pid in pids]
    if not all(rollups):
        return {"processes": len(pids), "pss_mb": None, "rss_mb": None}
    return {"processes": len(pids)} | {
        f"{name.lower()}_mb": sum(rollup[name] for rollup in rollups) / 1024 for name in ("Pss", "Rss")
    }


def rollup(pid: int) -> dict[str, int]:
    """Read a process's memory in kilobytes by kind; empty on systems without smaps."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    return {line.split()[0].rstrip(":"): int(line.split()[1]) for line in lines}
