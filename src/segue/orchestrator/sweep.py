"""The sweep: no state is sticky. What hangs is torn away, what lost its run is settled, old questions are refused."""

import logging
from datetime import datetime, timedelta

import anyio

from segue.journal.rows import RunRow, SessionRow, all_questions_past, open_runs, session_by_id
from segue.model.ids import WorkflowId
from segue.model.status import RunStatus, SessionStatus, Trigger
from segue.orchestrator.engine import cancel_left_runs
from segue.orchestrator.house import House, Stop
from segue.orchestrator.permissions import answer_question
from segue.orchestrator.settling import CRASHED, settle, settling_for

log = logging.getLogger("segue")

SETTLE_GRACE = 15.0
"""Seconds a run gets to settle itself after it was torn away."""


async def settle_left_runs(house: House) -> int:
    """At start, before serving: runs of dead boots come to rest, queued ones too. No agent is started."""
    runs = await house.journal.read(open_runs)
    for run in runs:
        await settle(house, run.workflow_id, CRASHED)
    await cancel_left_runs()
    return len(runs)


async def sweep_forever(house: House) -> None:
    while True:
        await house.clock.sleep(house.rules.sweep_interval)
        try:
            await sweep(house)
        except Exception:  # a server without its sweep would leave things stuck
            log.exception("the sweep could not be finished; the next one tries again")


async def sweep(house: House) -> None:
    """One look at everything that should move."""
    now = house.clock.now()
    for question in await house.journal.read(lambda c: all_questions_past(c, now)):
        reason = f"nobody answered within {house.rules.permission_timeout:g} seconds"
        await answer_question(house, question.workflow_id, question.id, allow=False, by="timeout", reason=reason)
    for run in await house.journal.read(open_runs):
        if run.status is RunStatus.ACTIVE:
            await _look_at(house, run, now)


async def _look_at(house: House, run: RunRow, now: datetime) -> None:
    live = house.live.get(run.workflow_id)
    if live is None:
        await settle(house, run.workflow_id, CRASHED)
        return
    session = await house.journal.read(lambda c: session_by_id(c, run.session_id))
    late = _lateness(house, session, await _last_sign(house, run.workflow_id, session), now)
    if late is None:
        return
    stop = Stop(trigger=Trigger.CRASH, reason=late)
    live.tear_away(stop)
    with anyio.move_on_after(SETTLE_GRACE):
        await live.done.wait()
    # Whoever hangs so deep that it cannot even be torn away is settled over its head; the fence keeps it out.
    await settle(house, run.workflow_id, settling_for(stop))


async def _last_sign(house: House, workflow_id: WorkflowId, session: SessionRow) -> datetime:
    last = await house.journal.last_event_at(workflow_id)
    return max(last, session.moved_at) if last else session.moved_at


def _lateness(house: House, session: SessionRow, last_sign: datetime, now: datetime) -> str | None:
    """Why this session counts as hanging, if it does."""
    rules = house.rules
    watchdogs = {
        SessionStatus.CREATED: (rules.setup_watchdog, "the worktree was not ready"),
        SessionStatus.STARTING: (rules.start_watchdog, "the agent did not come up"),
        SessionStatus.RUNNING: (rules.silence_watchdog, "the agent gave no sign"),
    }
    if session.status not in watchdogs:
        return None
    seconds, what = watchdogs[session.status]
    if now - last_sign < timedelta(seconds=seconds):
        return None
    return f"{what} within {seconds:g} seconds"
