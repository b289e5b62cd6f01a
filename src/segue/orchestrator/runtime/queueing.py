"""Runs that are handed to the queue."""

from collections.abc import Mapping

from segue.journal import Transaction
from segue.model.events import RunQueued
from segue.model.ids import SessionId
from segue.model.status import Purpose
from segue.orchestrator.runtime.house import House
from segue.resume.planner import ResumePlan


def queue(
    house: House,
    t: Transaction,
    session_id: SessionId,
    plan: ResumePlan,
    purpose: Purpose,
    environment: Mapping[str, str],
    context: str = "",
) -> int:
    """The next run of a session, in the journal and with the engine; the variables are for this run alone."""
    queued = RunQueued(way=plan.way, reason=plan.reason, purpose=purpose, prices=plan.prices, context=context)
    number = t.queue_run(session_id, queued, house.boot)
    house.environments[session_id, number] = environment
    if purpose is Purpose.WORK:
        house.kept_environments.pop(t.workflow_id, None)
    house.engine.enqueue(t, session_id, number)
    return number
