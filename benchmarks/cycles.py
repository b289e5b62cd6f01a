"""Fifty pauses must cost fifty times one: how the database grows while a workflow is paused and resumed."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

import anyio

from benchmarks.figures import growth
from benchmarks.sample_events import SIZE, passage
from benchmarks.scripted import Script, ScriptedDriver
from segue.model.agents import AgentConfiguration, Choices
from segue.model.events import AgentEvent, TextDelta, ToolCalled, ToolFinished, UsageReported
from segue.model.plan import Issue
from segue.model.requests import PauseRequest, PlanText, ResumeRequest, RunRequest
from segue.model.status import Permissions
from segue.orchestrator import Orchestrator, open_orchestrator
from segue.server.rules import rules_of
from segue.settings import Settings

CYCLES = 50
CALLS = 5
WITHIN = 60.0
"""Timeout of one cycle, in seconds."""

IDENTITY = {f"GIT_{who}_{what}": "benchmark" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
PLAN = "[" + ", ".join(f"{{id: task-{n}, title: Task {n}}}" for n in range(CYCLES + 2)) + "]"


async def measure(directory: Path) -> dict[str, Any]:
    """Run one task in each cycle, always with the same text; the agent is a script in this process."""
    database = directory / "segue.db"
    ScriptedDriver.script = script = Script(turn())
    sizes: list[Size] = []
    seconds: list[float] = []
    async with orchestrator_at(directory, database) as orchestrator:
        name = (await orchestrator.create(new_workflow(repository_in(directory)), "scripted", Choices())).id
        await pause_at_boundary(orchestrator, name, script)
        sizes.append(size_of(database))
        for _ in range(CYCLES):
            start = perf_counter()
            await orchestrator.resume(name, ResumeRequest(environment=dict(os.environ)))
            await pause_at_boundary(orchestrator, name, script)
            seconds.append(perf_counter() - start)
            sizes.append(size_of(database))
        verified = (await orchestrator.verify(name)).verified
    sizes_in_bytes = [size["bytes"] for size in sizes]
    rows = [after["events"] - before["events"] for before, after in pairwise(sizes)]
    return {
        "cycles": CYCLES,
        "bytes": sizes_in_bytes,
        "bytes_per_cycle": growth(sizes_in_bytes),
        "events_per_cycle": {"min": min(rows), "max": max(rows)},
        "cycle_ms": {
            "first_ten": median(seconds[:10]) * 1e3,
            "last_ten": median(seconds[-10:]) * 1e3,
        },
        "content_per_cycle": {kind: size / (CYCLES + 1) for kind, size in content_of(database).items()},
        "verified": verified,
    }


async def pause_at_boundary(orchestrator: Orchestrator, name: str, script: Script) -> None:
    """Ask for a pause in the middle of a turn, let the turn end, and wait until the workflow is at rest."""
    with anyio.fail_after(WITHIN):
        await script.under_way.wait()
        script.under_way.clear()
        await orchestrator.pause(name, PauseRequest(), wait=False)
        script.may_end.set()
        # The second request changes nothing; it waits.
        await orchestrator.pause(name, PauseRequest(), wait=True)


def turn() -> tuple[AgentEvent, ...]:
    random = Random(3)
    calls: list[AgentEvent] = []
    for number in range(CALLS):
        name = f"call-{number}"
        calls.append(ToolCalled(call_id=name, title="pytest -q", tool="execute", input={"command": "pytest -q"}))
        calls.append(ToolFinished(call_id=name, status="completed", output=passage(random, SIZE)))
    return (*calls, UsageReported(context_tokens=10_000, window=200_000), TextDelta(role="message", text="Done."))


@asynccontextmanager
async def orchestrator_at(home: Path, database: Path) -> AsyncGenerator[Orchestrator]:
    driver = "benchmarks.scripted:ScriptedDriver"
    async with open_orchestrator(
        database_url=f"sqlite:///{database}",
        home=home,
        agents={"scripted": AgentConfiguration(name="scripted", command=(sys.executable,), driver=driver)},
        rules=rules_of(Settings(handshake_timeout=30.0)),
    ) as orchestrator:
        yield orchestrator


def repository_in(directory: Path) -> Path:
    repository = directory / "repository"
    repository.mkdir()
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "Begin"]):
        subprocess.run(["git", *words], cwd=repository, env={**os.environ, **IDENTITY}, check=True)
    return repository


def new_workflow(repository: Path) -> RunRequest:
    return RunRequest(
        issue=Issue(title="Pause and go on"),
        plan=PlanText(format="yaml", text=PLAN),
        permissions=Permissions.ALL,
        repository=repository,
        environment=dict(os.environ),
    )


# ── the database, seen from outside ─────────────────────────────────────────────────────────────────

Size = dict[str, int]


def size_of(database: Path) -> Size:
    """Return the bytes in use, write-ahead log included, and the rows of the journal."""
    connection = sqlite3.connect(str(database))
    try:
        pages, free, page = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        events = connection.execute("SELECT count(*) FROM events").fetchone()[0]
    finally:
        connection.close()
    return {"bytes": (pages - free) * page, "events": events}


def content_of(database: Path) -> dict[str, int]:
    """Return the bytes of event bodies and checkpoint documents."""
    connection = sqlite3.connect(str(database))
    try:
        return {
            "events": connection.execute("SELECT sum(length(body)) FROM events").fetchone()[0],
            "checkpoints": connection.execute("SELECT sum(length(document)) FROM checkpoints").fetchone()[0],
        }
    finally:
        connection.close()
