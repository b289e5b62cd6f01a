"""Segue's overhead per task, and its growth and the server's memory over a long plan.

The witness is the agent: its diary says when it ended a turn, and when it got the prompt of the next task.
"""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

from benchmarks.disk import look
from benchmarks.doors import memory_of, timed
from benchmarks.figures import percentile
from benchmarks.live import own_memory
from segue.testing.rehearsal.diary import DiaryEntry
from segue.testing.stage import Stage
from segue.testing.work import Work

TASKS = 200
LOOKS_AFTER = (20, 100, 200)
"""Tasks after which the memory is read."""
AIM = 50.0
"""Milliseconds, in the middle of all tasks."""
SCRIPT = "turns: [{do: [{run: echo done >> notes.txt}, {usage: {used: 20000, size: 200000}}, {say: It is done.}]}]"
GIT_TIMES = 5
LOOK_EVERY = 0.2
WITHIN = 600.0


async def measure(directory: Path, tasks: int = TASKS, looks: Sequence[int] = LOOKS_AFTER) -> dict[str, Any]:
    """Run a long plan without a follower; the agent's diary shows its progress."""
    with Stage(directory) as stage:
        server = stage.up()
        work = stage.work(SCRIPT)
        fsyncs = [look(directory)]
        work.begin("A long plan", plan_of(tasks), permissions="all")
        taken: list[dict[str, Any]] = []
        for number in looks:
            _until_ended(work, number)
            memory = {**memory_of([server.pid]), "own_mb": own_memory(server.pid)}
            taken.append({"tasks": number, "cpu_s": processor_time(server.pid), **memory})
            fsyncs.append(look(directory))
        work.until_status("completed")
        git = [timed(["git", "-C", str(stage.repository), "rev-parse", "HEAD"]) for _ in range(GIT_TIMES)]
        waits = waits_in(work.agent_diary())
        events = len(work.journal())
        stage.down()
    quarter = max(1, len(waits) // 4)
    return {
        "tasks": tasks,
        "overhead": _spread(waits),
        "first": _spread(waits[:quarter]),
        "last": _spread(waits[-quarter:]),
        "aim_ms": AIM,
        "reached": median(waits) * 1e3 < AIM,
        "fsync_ms": median(1e3 / rate for rate in fsyncs),
        "git_ms": median(git) * 1e3,
        "events": events,
        "memory": taken,
        "cpu_ms_per_task": cpu_per_task(taken),
    }


def _until_ended(work: Work, turns: int) -> None:
    deadline = monotonic() + WITHIN
    while sum(entry.kind == "ended" for entry in work.agent_diary()) < turns:
        if monotonic() > deadline:
            raise TimeoutError(f"the agent has not ended {turns} turns: {work.view.reason or work.view.status}")
        sleep(LOOK_EVERY)


def plan_of(tasks: int) -> str:
    return "\n".join(f"- {{id: t{number}, title: Do part {number}}}" for number in range(1, tasks + 1))


def processor_time(pid: int) -> float | None:
    """Return the processor seconds of a process and its ended children, mainly git; None where unknown."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(int(ticks) for ticks in words[11:15]) / os.sysconf("SC_CLK_TCK")


def cpu_per_task(looks: Sequence[dict[str, Any]]) -> list[float | None]:
    """Return the processor milliseconds per task between samples; constant, if cost grows with the work."""
    return [
        None if None in (before["cpu_s"], after["cpu_s"]) else _share(before, after)
        for before, after in pairwise(looks)
    ]


def _share(before: dict[str, Any], after: dict[str, Any]) -> float | None:
    if None in (before["cpu_s"], after["cpu_s"]):
        return None
    return (after["cpu_s"] - before["cpu_s"]) / (after["tasks"] - before["tasks"]) * 1e3


def waits_in(diary: Sequence[DiaryEntry]) -> list[float]:
    """Return the seconds between the end of each turn and the next prompt."""
    told = [entry for entry in diary if entry.kind in ("prompt", "ended")]
    return [
        (after.at - before.at).total_seconds()
        for before, after in pairwise(told)
        if (before.kind, after.kind) == ("ended", "prompt")
    ]


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    p50, p95 = (percentile(seconds, share) * 1e3 for share in (0.50, 0.95))
    return {"min_ms": min(seconds) * 1e3, "p50_ms": p50, "p95_ms": p95, "count": len(seconds)}
