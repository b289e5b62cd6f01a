"""Many workflows started at once on a server that runs few agents at a time: whether all finish, and who waits."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

from segue.model.events import RunEnded, RunQueued, RunStarted
from segue.model.views import RecordView
from segue.testing.stage import Stage
from segue.testing.work import Work

WORKFLOWS = 50
AT_ONCE = 4
ASKING = 8
"""Users who start workflows at the same time."""
WITHIN = 600.0
PLAN = "[{id: one, title: Do one part}, {id: two, title: Do the other, depends_on: [one]}]"
SCRIPT = "turns: [{do: [{run: echo done >> notes.txt}, {say: It is done.}]}]"


@dataclass(frozen=True, slots=True)
class StartOrder:
    """When a workflow's run was queued, started and ended."""

    queued: datetime
    started: datetime
    ended: datetime

    @property
    def wait(self) -> float:
        return (self.started - self.queued).total_seconds()


async def measure(directory: Path, workflows: int = WORKFLOWS, at_once: int = AT_ONCE) -> dict[str, Any]:
    """Run many workflows at once on a server with few agents."""
    with Stage(directory, settings=f"agents_at_once = {at_once}\n") as stage:
        stage.up()
        works = [stage.work(SCRIPT) for _ in range(workflows)]
        start = perf_counter()
        with ThreadPoolExecutor(ASKING) as users:
            list(users.map(_begin, works))
        asked = perf_counter() - start
        ends = [work.until_status("completed", "paused", "failed", "review", within=WITHIN).status for work in works]
        seconds = perf_counter() - start
        turns = [turn_in(work.journal()) for work in works]
        stage.down()
    return {
        "workflows": workflows,
        "at_once": at_once,
        "finished": sum(end == "completed" for end in ends),
        "asked_s": asked,
        "seconds": seconds,
        **line_of(turns),
    }


def _begin(work: Work) -> None:
    work.begin("One of many", PLAN, permissions="all")


def turn_in(journal: Sequence[RecordView]) -> StartOrder:
    def at(kind: type[object]) -> datetime:
        return next(record.at for record in journal if isinstance(record.event, kind))

    return StartOrder(at(RunQueued), at(RunStarted), at(RunEnded))


def line_of(turns: Sequence[StartOrder]) -> dict[str, Any]:
    """Return the waiting times, and by how many places the order changed."""
    waits = [turn.wait for turn in turns]
    in_line = sorted(turns, key=lambda turn: turn.queued)
    started = sorted(turns, key=lambda turn: turn.started)
    moved = [abs(place - started.index(turn)) for place, turn in enumerate(in_line)]
    marks = sorted([(turn.started, 1) for turn in turns] + [(turn.ended, -1) for turn in turns])
    return {
        "wait_s": {"mean": mean(waits), "longest": max(waits)},
        "moved": max(moved),
        "most_at_once": max(accumulate(step for _, step in marks)),
    }
