"""What the capacity ladder adds to each report of usage: the decision alone, beside the writing down of the report."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any, cast

from benchmarks.figures import percentile
from benchmarks.history import WallClock, new_workflow
from segue.journal import open_journal
from segue.model.agents import AgentConfiguration
from segue.model.events import Event, UsageReported
from segue.orchestrator.capacity import Capacity, event_of
from segue.orchestrator.tenure import Tenure

REPORTS = 5_000
WINDOW = 200_000
AIM = 1.0
"""Milliseconds."""


async def measure(directory: Path, reports: int = REPORTS) -> dict[str, Any]:
    """A context that fills from nothing to the last rung, report by report; each is written down as the run does it."""
    capacity = new_capacity()
    decided: list[float] = []
    written: list[float] = []
    said = 0
    async with open_journal(f"sqlite:///{directory / 'segue.db'}", WallClock()) as journal:
        workflow_id, session_id = await new_workflow(journal, 0)
        for number in range(1, reports + 1):
            report = UsageReported(context_tokens=WINDOW * number // reports, window=WINDOW)
            start = perf_counter()
            await journal.append(workflow_id, report, session_id=session_id, run=1)
            between = perf_counter()
            events = decide(capacity, report)
            decided.append(perf_counter() - between)
            written.append(between - start)
            said += len(events)
    return {
        "reports": reports,
        "rungs": said,
        "decision_us": _percentiles(decided),
        "written_us": _percentiles(written),
        "aim_ms": AIM,
        "reached": percentile(decided, 0.99) * 1e3 < AIM,
    }


def new_capacity() -> Capacity:
    """Of a new conversation with an agent that does not compact; of a run it asks only what the user chose."""
    house = SimpleNamespace(rules=SimpleNamespace(capacity={}))
    run = SimpleNamespace(house=house, workflow=SimpleNamespace(choices="{}"))
    return Capacity(cast(Tenure, run), AgentConfiguration(name="any", command=("any",)), joined=False)


def decide(capacity: Capacity, report: UsageReported) -> list[Event]:
    return [event_of(reached) for reached in capacity.hear(report)]


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{share * 100:.0f}": percentile(seconds, share) * 1e6 for share in (0.50, 0.99)}
