"""Durable appends per second: many writers, hashing and redaction included, against SQLite alone."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.disk import SliceWork
from benchmarks.raw import LOG, RawFile, RawTable, RawWriter, Row, table_of
from benchmarks.sample_events import WallClock, new_workflow, outputs
from benchmarks.slices import SECONDS, Variant, coverage, interleave, latencies, rates
from segue.journal import Journal, open_journal
from segue.model.codec import encode_event
from segue.model.crash import arm
from segue.model.events import Event
from segue.model.ids import SessionId, WorkflowId

WITHIN = 45.0
SEQ = 1
"""Index of the sequence number in a row of the journal."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How many write, and into how many workflows."""

    writers: int
    workflows: int


LARGEST = Shape(50, 50)
SHAPES: Mapping[str, Shape] = {
    "ten_workflows": Shape(10, 10),
    "fifty_workflows": LARGEST,
    "one_workflow": Shape(50, 1),
}

Target = tuple[WorkflowId, SessionId]


class Writers:
    """So many at once, each of them waiting for its event to be on disk before it brings the next one."""

    def __init__(self, journal: Journal, places: Sequence[Target], writers: int) -> None:
        self._journal = journal
        self.places = [places[number % len(places)] for number in range(writers)]
        self._events: Iterator[Event] = outputs()
        self._latencies: list[float] = []
        self._commits = 0
        self.group = 1
        """Events in one commit, the last time."""

    def _count(self, crash_point: str) -> None:
        self._commits += crash_point == "writer.before_commit"

    async def write(self) -> SliceWork:
        """Append events with all writers until the time is up."""
        self._latencies, self._commits = [], 0
        arm(self._count)
        cpu, start = process_time(), perf_counter()
        await asyncio.gather(*(self._keep_writing(place, start + SECONDS) for place in self.places))
        work = SliceWork(
            count=len(self._latencies),
            seconds=perf_counter() - start,
            cpu=process_time() - cpu,
            latencies=self._latencies,
            group=len(self._latencies) / self._commits,
        )
        arm(None)
        self.group = max(1, round(work.group))
        return work

    async def _keep_writing(self, place: Target, deadline: float) -> None:
        workflow_id, session_id = place
        now = perf_counter()
        while True:
            await self._journal.append(workflow_id, next(self._events), session_id=session_id, run=1)
            before, now = now, perf_counter()
            self._latencies.append(now - before)
            # Not before the first append: on a busy machine the time may be up before any writer has begun.
            if now >= deadline:
                return


@asynccontextmanager
async def writers_at(database: Path, workflows: int, writers: int) -> AsyncIterator[Writers]:
    async with open_journal(f"sqlite:///{database}", WallClock()) as journal:
        places = [await new_workflow(journal, number) for number in range(workflows)]
        yield Writers(journal, places, writers)


def rows_of(places: Sequence[Target]) -> list[Row]:
    """Make a row for each place, as the journal would write it."""
    at, digest = "2026-01-01T00:00:00.000000+00:00", "0" * 64
    bodies = [encode_event(result).decode() for result in islice(outputs(), len(places))]
    return [
        (workflow_id, 0, at, "tool.finished", session_id, 1, body, digest)
        for (workflow_id, session_id), body in zip(places, bodies, strict=True)
    ]


def raw_like(writers: Writers, database: Path) -> RawWriter:
    """Write the same rows with SQLite alone."""
    return RawWriter(RawTable(database.with_suffix(".raw"), table_of(database)), rows_of(writers.places), SEQ)


def log_like(writers: Writers, database: Path) -> RawWriter:
    """Write the same bodies into a table of a number and a text."""
    bodies = [(0, row[-2]) for row in rows_of(writers.places)]
    return RawWriter(RawTable(database.with_suffix(".log"), LOG), bodies, 0)


async def measure(directory: Path) -> dict[str, Any]:
    """Measure each shape, and the same rows without Segue, in groups of the same size."""
    variants: dict[str, Variant] = {}
    async with AsyncExitStack() as stack:
        for name, shape in SHAPES.items():
            database = directory / f"{name}.db"
            writers = await stack.enter_async_context(writers_at(database, shape.workflows, shape.writers))
            variants[name] = writers.write
            variants[f"raw_{name}"] = alone(raw_like(writers, database), writers)
            if shape is LARGEST:
                variants["raw_plain_log"] = alone(log_like(writers, database), writers)
        slices = await interleave(directory, variants, WITHIN)
    return {
        "redaction": "google-re2" if find_spec("re2") else "re",
        **coverage(slices),
        **{name: rates(slices, name, raw=f"raw_{name}") for name in variants},
    }


def alone(raw: RawWriter, like: Writers) -> Variant:
    async def write() -> SliceWork:
        return raw.write(SECONDS, like.group)

    return write


async def measure_one(directory: Path) -> dict[str, Any]:
    """Measure one event by one writer, beside a raw commit of one row and a line of a plain file with its fsync."""
    file = directory / "one.db"
    async with writers_at(file, 1, 1) as writer:
        line = rows_of(writer.places)[0][-2].encode() + b"\n"
        with closing(RawFile(file.with_suffix(".lines"), line)) as raw_file:

            async def write_file() -> SliceWork:
                return raw_file.write(SECONDS)

            variants = {
                "one_event": writer.write,
                "raw_commit": alone(raw_like(writer, file), writer),
                "raw_file": write_file,
            }
            slices = await interleave(directory, variants, WITHIN / 2)
    return {
        **coverage(slices),
        "one_event": latencies(slices, "one_event", raw="raw_file"),
        "raw_commit": latencies(slices, "raw_commit", raw="raw_file"),
        "raw_file": latencies(slices, "raw_file"),
    }
