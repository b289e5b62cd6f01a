"""The sweep, so that no state is sticky: it stops runs that hang, settles runs without a process, refuses overdue
permission requests and retires unused sessions."""

import logging
import signal
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

import anyio
import anyio.to_thread

from segue.journal.rows import QuestionRow, RunRow, SessionRow
from segue.model.errors import AlreadyServing
from segue.model.ids import WorkflowId
from segue.model.status import Purpose, RunStatus, SessionStatus, Trigger, WaitingFor
from segue.orchestrator.runtime import containers
from segue.orchestrator.runtime.permissions import answer_question
from segue.orchestrator.runtime.run_handle import RunHandle, Stop
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling.error_log import noted
from segue.orchestrator.settling.recovery import CRASHED, settle, settling_for
from segue.orchestrator.settling.retirement import retire_sessions
from segue.workspace.private import take_away_left

log = logging.getLogger("segue")

SETTLE_AT_START = 20.0
"""Seconds the settling of one run may take before the server comes up all the same."""
SETTLE_GRACE = 15.0
"""Seconds a run gets to settle itself after it was torn away."""


async def settle_left_runs(services: RuntimeServices) -> list[RunRow]:
    """Settle the runs of earlier boots before serving, queued ones included. No agent is started."""
    runs = await services.journal.runs.open()
    for run in runs:
        # One workflow that cannot be settled must not keep all others out of reach; the sweep tries again.
        with _settled(run), anyio.move_on_after(SETTLE_AT_START):
            await settle(services, run.session_id, run.number, CRASHED)
    return runs


async def sweep_forever(services: RuntimeServices) -> None:
    """Sweep at regular intervals; stop the server when another one owns the database."""
    while True:
        await services.clock.sleep(services.rules.sweep_interval)
        try:
            await sweep(services)
        except AlreadyServing as error:
            log.critical("%s This one stops.", error.message)
            signal.raise_signal(signal.SIGTERM)
            return
        except Exception:  # a server without its sweep would leave things stuck
            log.exception("the sweep could not be finished; the next one tries again")


async def sweep(services: RuntimeServices) -> None:
    """Check everything that should move."""
    await services.journal.check_lock()
    now = services.clock.now()
    for question in await _questions_past(services, now):
        with noted(f"question {question.id} could not be refused"):
            reason = f"nobody answered within {services.rules.permission_timeout:g} seconds"
            await answer_question(services, question.workflow_id, question.id, allow=False, by="timeout", reason=reason)
    for run in await services.journal.runs.open():
        with _settled(run):
            await _look_at(services, run, now)
    # Whoever scheduled a retry may have been cut off before they could say so.
    services.retry_scheduled.set()
    await retire_sessions(services)
    with noted("what killed agents left could not be taken away"):
        await anyio.to_thread.run_sync(take_away_left)
    await containers.tidy(services)


async def _questions_past(services: RuntimeServices, now: datetime) -> list[QuestionRow]:
    """Return the overdue permission requests; time during which the machine was suspended does not count."""
    patience = timedelta(seconds=services.rules.permission_timeout)
    past = await services.journal.questions.overdue(now)
    return [each for each in past if each.deadline + services.clock.away_since(each.deadline - patience) <= now]


def _settled(run: RunRow) -> AbstractContextManager[None]:
    return noted(f"run {run.session_id}/r{run.number} could not be settled")


async def _look_at(services: RuntimeServices, run: RunRow, now: datetime) -> None:
    live = services.live.get(run.workflow_id)
    if live is None:
        if run.boot != services.boot or not await services.queue.knows(run):
            await settle(services, run.session_id, run.number, CRASHED)
        return
    if run.status is not RunStatus.ACTIVE or (live.patience is not None and now < live.patience):
        return
    session = await services.journal.sessions.get(run.session_id)
    if run.purpose is Purpose.TALK and session.status is SessionStatus.WAITING_FOR_INPUT:
        # It waits for a word, and gives up by itself.
        return
    late = _lateness(services, session, await _last_sign(services, run.workflow_id, session), now)
    if late is not None:
        await _tear_away(services, run, live, Stop(trigger=Trigger.CRASH, reason=late))


async def _tear_away(services: RuntimeServices, run: RunRow, live: RunHandle, stop: Stop) -> None:
    live.tear_away(stop)
    with anyio.move_on_after(SETTLE_GRACE):
        await live.done.wait()
    # Whoever hangs so deep that it cannot even be torn away is settled over its head; the fence keeps it out.
    if await settle(services, run.session_id, run.number, settling_for(stop)):
        services.queue.forget(run.session_id, run.number)
        services.live.pop(run.workflow_id, None)


async def _last_sign(services: RuntimeServices, workflow_id: WorkflowId, session: SessionRow) -> datetime:
    last = await services.journal.last_event_at(workflow_id)
    return max(last, session.moved_at) if last else session.moved_at


def _lateness(services: RuntimeServices, session: SessionRow, last_sign: datetime, now: datetime) -> str | None:
    """Return why a session counts as hanging, or None."""
    rules = services.rules
    watchdogs = {
        SessionStatus.CREATED: (rules.setup_watchdog, "the worktree was not ready"),
        SessionStatus.STARTING: (rules.start_watchdog, "the agent did not come up"),
        SessionStatus.RUNNING: (rules.silence_watchdog, "the agent gave no sign"),
        # Between two turns only git is at work.
        SessionStatus.WAITING_FOR_INPUT: (rules.setup_watchdog, "the worktree was not saved"),
    }
    if session.status is SessionStatus.WAITING_FOR_INPUT and session.waiting_for is WaitingFor.PERMISSION:
        return None
    if session.status not in watchdogs:
        return None
    seconds, what = watchdogs[session.status]
    if now - last_sign - services.clock.away_since(last_sign) < timedelta(seconds=seconds):
        return None
    return f"{what} within {seconds:g} seconds"
