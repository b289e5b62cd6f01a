"""How long it takes to know again where a workflow stands: open its journal and fold 1,500 events."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.figures import spread
from benchmarks.sample_events import WallClock, conversation, new_workflow
from segue.journal import open_journal
from segue.model.ids import WorkflowId
from segue.state.fold import fold

EVENTS = 1_500
FIRST = 3
"""Events that every workflow begins with."""
TIMES = 9
FRESH_TIMES = 5

# Program of a fresh process, which has only the path of the database.
FRESH = """
from time import perf_counter
start = perf_counter()
import asyncio, json, sys
from benchmarks.recovery import recover
imported = perf_counter() - start
print(json.dumps({"import": imported, **asyncio.run(recover(*sys.argv[1:]))}))
"""


async def measure(directory: Path) -> dict[str, Any]:
    """Measure the recovery of a workflow, in a warm and in a fresh process."""
    database = directory / "recovery.db"
    workflow_id = await write_history(database)
    fresh = [await asyncio.to_thread(fresh_process, database, workflow_id) for _ in range(FRESH_TIMES)]
    again = [await recover(str(database), workflow_id) for _ in range(TIMES)]
    return {
        "events": EVENTS,
        "fresh_process": spread([each["whole"] for each in fresh])
        | {f"{part}_ms": median(each[part] for each in fresh) * 1e3 for part in ("import", "open", "state")},
        "fresh_journal": spread([each["open"] + each["state"] for each in again])
        | {f"{part}_ms": median(each[part] for each in again) * 1e3 for part in ("open", "state")},
        "fold_alone": spread([await fold_alone(database, workflow_id) for _ in range(TIMES)]),
        "raw_rows_and_json": spread([raw(database, workflow_id) for _ in range(TIMES)]),
    }


async def write_history(database: Path) -> WorkflowId:
    async with open_journal(f"sqlite:///{database}", WallClock()) as journal:
        workflow_id, session_id = await new_workflow(journal, 1)
        events = list(islice(conversation(EVENTS), EVENTS - FIRST))
        for start in range(0, len(events), 100):
            await journal.append(workflow_id, *events[start : start + 100], session_id=session_id, run=1)
    return workflow_id


async def recover(database: str, workflow_id: str) -> dict[str, float]:
    """Open the journal and fold the workflow's state, as a server does after a crash."""
    start = perf_counter()
    async with open_journal(f"sqlite:///{database}", WallClock()) as journal:
        opened = perf_counter()
        state = await journal.state(WorkflowId(workflow_id))
        folded = perf_counter()
    if state.seq != EVENTS:
        raise AssertionError(f"the state knows {state.seq} events of {EVENTS}")
    return {"open": opened - start, "state": folded - opened}


def fresh_process(database: Path, workflow_id: str) -> dict[str, float]:
    """Measure the same in a fresh process, start of the interpreter included."""
    start = perf_counter()
    command = [sys.executable, "-c", FRESH, str(database), workflow_id]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return {"whole": perf_counter() - start, **json.loads(answer)}


async def fold_alone(database: Path, workflow_id: WorkflowId) -> float:
    """Measure the fold without reading or decoding."""
    async with open_journal(f"sqlite:///{database}", WallClock()) as journal:
        records = await journal.records(workflow_id, limit=EVENTS)
    start = perf_counter()
    fold(records)
    return perf_counter() - start


def raw(database: Path, workflow_id: WorkflowId) -> float:
    """Measure the building block: open the file, read the rows, parse their JSON."""
    start = perf_counter()
    connection = sqlite3.connect(str(database))
    query = "SELECT * FROM events WHERE workflow_id = ? ORDER BY seq"
    bodies = [json.loads(row[6]) for row in connection.execute(query, (workflow_id,))]
    connection.close()
    if len(bodies) != EVENTS:
        raise AssertionError(f"{len(bodies)} rows instead of {EVENTS}")
    return perf_counter() - start
