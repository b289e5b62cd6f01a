"""Retirement of unused sessions: suspended when idle, expired later, and their files archived."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from segue.journal import Transaction
from segue.journal.rows import SessionRow
from segue.model.ids import WorkflowId
from segue.model.status import SessionStatus, WorkflowStatus
from segue.orchestrator.runtime import projections
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling.error_log import errors_logged
from segue.state.moves import WORKFLOW_ENDED

W = WorkflowStatus
MOST_AT_ONCE = 500
"""Sessions that are looked up together."""
MOST_ARCHIVED = 100
"""Sessions whose files one sweep moves, so that it gets to its other duties; the next one goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """Rule for sessions that rest for too long."""

    of: Collection[SessionStatus]
    within: Collection[WorkflowStatus]
    """How the workflow may stand meanwhile."""
    to: SessionStatus
    reason: str


IDLE = Retirement(
    of=[SessionStatus.WAITING_FOR_INPUT],
    within=frozenset(W) - WORKFLOW_ENDED,
    to=SessionStatus.SUSPENDED,
    reason="idle",
)
EXPIRY = Retirement(
    of=[SessionStatus.WAITING_FOR_INPUT, SessionStatus.SUSPENDED],
    # In `blocked` and `review` a person was asked something, and may answer whenever they like.
    within=[W.PAUSED, W.FAILED],
    to=SessionStatus.EXPIRED,
    reason="nobody came back to it",
)


async def retire_sessions(services: RuntimeServices) -> None:
    """Expire old sessions, suspend idle ones, and archive the files of old ones. No workflow moves, and no agent is
    started or ended."""
    now = services.clock.now()
    idle_since = now - timedelta(seconds=services.rules.session_idle)
    old_since = now - timedelta(seconds=services.rules.session_ttl)
    # To be suspended counts as a sign of life, so what is over goes first.
    await _retire_all(services, EXPIRY, old_since)
    await _retire_all(services, IDLE, idle_since)
    await _archive_all(services, old_since)


async def _retire_all(services: RuntimeServices, retirement: Retirement, since: datetime) -> None:
    """Retire all sessions that rest since then; an error of one is logged."""
    for session in await services.journal.sessions.resting(retirement.of, retirement.within, since):
        with errors_logged(f"session {session.id} could not be retired"):
            if await _retire(services, session, retirement, since):
                _forget(services, session.workflow_id)


async def _retire(services: RuntimeServices, session: SessionRow, retirement: Retirement, since: datetime) -> bool:
    """Move one session to the retirement's status; return False, with nothing written, if it was used meanwhile."""

    def move(t: Transaction) -> bool:
        resting = t.sessions.resting(retirement.of, retirement.within, since)
        if session.id not in [each.id for each in resting]:
            return False
        t.sessions.move(session.id, retirement.to, reason=retirement.reason)
        return True

    return await services.journal.transact(session.workflow_id, move)


async def _archive_all(services: RuntimeServices, since: datetime) -> None:
    """Archive the files of old sessions, up to a maximum at a time. The files show which are not archived yet, so an
    interrupted archival is completed."""
    names = iter(sorted(await projections.not_archived(services)))
    found: list[SessionRow] = []
    while len(found) < MOST_ARCHIVED and (ids := list(islice(names, MOST_AT_ONCE))):
        found += await services.journal.sessions.to_archive(ids, since)
    for session in found[:MOST_ARCHIVED]:
        with errors_logged(f"session {session.id} could not be retired"):
            await projections.archive(services, session.id)
            _forget(services, session.workflow_id)


def _forget(services: RuntimeServices, workflow_id: WorkflowId) -> None:
    """Free the cached state and facts of a workflow without a live run; else do nothing."""
    if workflow_id not in services.live:
        services.journal.forget(workflow_id)
        services.facts.forget(workflow_id)
