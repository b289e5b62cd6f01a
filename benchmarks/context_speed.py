"""How long a context takes: from a file to its text, and from facts that are already known."""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import sample_sessions
from benchmarks.doors import timed
from benchmarks.figures import spread
from segue.contextfile import compiled_file, facts_of_file
from segue.resume.compiler import DEFAULT_BUDGET, compile_context

SIZE = 3 * 1024 * 1024
TIMES = 7
LIVE = 20


async def measure(directory: Path, size: int = SIZE, times: int = TIMES, live: int = LIVE) -> dict[str, Any]:
    """Time a session file and one of twice its size, in turns: the ratio shows the growth of the cost."""
    files = [sample_sessions.written(directory, size * factor, name=f"{factor}.jsonl") for factor in (1, 2)]
    rounds = [[(_in_process(file), timed(_command(file))) for file in files] for _ in range(times)]
    facts = facts_of_file(files[0])
    return {
        "files": [
            {
                "bytes": file.stat().st_size,
                "in_process": spread([each[place][0] for each in rounds]),
                "command": spread([each[place][1] for each in rounds]),
            }
            for place, file in enumerate(files)
        ],
        "compile": spread([_seconds(lambda: compile_context(facts, DEFAULT_BUDGET)) for _ in range(live)]),
    }


def _in_process(file: Path) -> float:
    return _seconds(lambda: compiled_file(file, DEFAULT_BUDGET))


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def _command(file: Path) -> list[str]:
    return [sys.executable, "-m", "segue", "context", str(file)]
