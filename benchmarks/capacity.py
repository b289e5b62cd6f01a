"""Cost of the capacity ladder and the budgets for each report of usage: the decision alone, beside the storage of
the report."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any, cast

from benchmarks.figures import percentile
from benchmarks.sample_events import WallClock, new_workflow
from segue.journal import open_journal
from segue.model.accounts import ModelUsage
from segue.model.agents import AgentConfiguration, Limits
from segue.model.events import Event, UsageReported
from segue.model.ids import SessionId
from segue.orchestrator.run.capacity_meter import Capacity, event_of
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.spending import SpendingMeter
from segue.protocol.capacity import Reached
from segue.state.fold import SessionState, WorkflowState

REPORTS = 5_000
WINDOW = 200_000
SESSIONS = 1_000
"""Earlier sessions of the workflow."""
WRITER = SessionId("session-writer")
MODEL = "claude-opus-5-5"
NOW = datetime(2026, 11, 18, tzinfo=UTC)
AIM = 1.0
"""Milliseconds."""


async def measure(directory: Path, reports: int = REPORTS) -> dict[str, Any]:
    """Fill a context from nothing to the last rung, report by report; store each as a run does."""
    capacity, meter = new_capacity(), full_meter()
    decided: list[float] = []
    written: list[float] = []
    said = 0
    async with open_journal(f"sqlite:///{directory / 'segue.db'}", WallClock()) as journal:
        workflow_id, session_id = await new_workflow(journal, 0)
        for number in range(1, reports + 1):
            report = UsageReported(
                context_tokens=WINDOW * number // reports,
                window=WINDOW,
                input_tokens=100,
                output_tokens=10,
                model=MODEL,
            )
            start = perf_counter()
            await journal.append(workflow_id, report, session_id=session_id, run=1)
            between = perf_counter()
            events = decide(capacity, report)
            meter.add(WRITER, report, NOW)
            meter.empty(NOW)
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
    """Make the capacity of a new conversation with an agent that does not compact by itself."""
    services = SimpleNamespace(rules=SimpleNamespace(capacity={}))
    run = SimpleNamespace(services=services, workflow=SimpleNamespace(choices="{}"))
    return Capacity(cast(Lease, run), AgentConfiguration(name="any", command=("any",)), joined=False)


def full_meter() -> SpendingMeter:
    """Make the spending of a workflow with many sessions, with limits of both kinds."""
    used = {MODEL: ModelUsage(input_tokens=10_000, output_tokens=1_000, cost_usd=1.0, last_on=NOW.date())}
    before = SessionState(number=0, agent="any", parent=WRITER, models=used)
    others = {SessionId(f"session-{number}"): before for number in range(SESSIONS)}
    meter = SpendingMeter(WRITER)
    writer = SessionState(number=1, agent="any", parent=None)
    meter.fill(Limits(usd=1e9, tokens=10**12), WorkflowState(sessions={WRITER: writer, **others}))
    return meter


def decide(capacity: Capacity, report: UsageReported) -> list[Event]:
    return [event_of(notice) for notice in capacity.measure(report) if isinstance(notice, Reached)]


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{share * 100:.0f}": percentile(seconds, share) * 1e6 for share in (0.50, 0.99)}
