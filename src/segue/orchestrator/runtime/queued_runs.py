"""Queueing of a session's next run."""

from collections.abc import Mapping

from segue.journal import Transaction
from segue.model.events import RunQueued
from segue.model.ids import SessionId
from segue.model.status import Purpose
from segue.orchestrator.runtime.services import RuntimeServices
from segue.resume.planner import ResumePlan


def queue(
    services: RuntimeServices,
    t: Transaction,
    session_id: SessionId,
    plan: ResumePlan,
    purpose: Purpose,
    environment: Mapping[str, str],
    context: str = "",
) -> int:
    """Write the next run of a session, add it to the queue, and return its number; the variables are kept for this
    run alone."""
    queued = RunQueued(way=plan.way, reason=plan.reason, purpose=purpose, prices=plan.prices, context=context)
    number = t.runs.queue(session_id, queued, services.boot)
    services.environments[session_id, number] = environment
    if purpose is Purpose.WORK:
        services.kept_environments.pop(t.workflow_id, None)
    services.queue.enqueue(t, session_id, number)
    return number
