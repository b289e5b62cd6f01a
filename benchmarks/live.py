"""Memory that a live session costs the server, without the agents' own memory."""

from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression
from time import sleep
from typing import Any

from benchmarks.doors import memory_of, rollup
from segue.model.events import PromptAcknowledged
from segue.testing.stage import Stage

COUNTS = (0, 5, 10)
SETTLE = 3.0
"""Seconds that the sessions stand still before the memory is read."""
ONE_TASK = "[{id: only, title: The only task}]"
STANDING_STILL = "turns: [{do: [{say: I am at it.}, {hang: true}]}]"


async def measure(directory: Path, counts: Sequence[int] = COUNTS, settle: float = SETTLE) -> dict[str, Any]:
    """Start sessions whose agents are silent in the middle of a turn."""
    with Stage(directory) as stage:
        server = stage.up()
        _once_through(stage)
        memories: list[dict[str, Any]] = []
        live = 0
        for count in counts:
            for _ in range(count - live):
                _stand_still(stage)
            live = count
            sleep(settle)  # noqa: ASYNC251 — nothing else runs in this process
            memories.append({"sessions": live, **memory_of([server.pid]), "own_mb": own_memory(server.pid)})
        stage.down()
    return {"at": memories, **{f"{name}_per_session": _slope(memories, name) for name in ("pss_mb", "own_mb")}}


def _once_through(stage: Stage) -> None:
    """Run one workflow first: the modules that it loads belong to no session."""
    work = stage.work("turns: [{do: [{say: Done.}]}]")
    work.begin("Load everything", ONE_TASK, permissions="all")
    work.until_status("completed", "review")


def _stand_still(stage: Stage) -> None:
    work = stage.work(STANDING_STILL)
    work.begin("Stand still", ONE_TASK, permissions="all")
    work.until(PromptAcknowledged)


def own_memory(pid: int) -> float | None:
    """Return the megabytes not shared with files: further Python agents reduce the server's part of those."""
    kilobytes = rollup(pid).get("Pss_Anon")
    return None if kilobytes is None else kilobytes / 1024


def _slope(memories: Sequence[dict[str, Any]], name: str) -> float | None:
    values = [memory[name] for memory in memories]
    if None in values:
        return None
    return linear_regression([memory["sessions"] for memory in memories], values).slope
