"""The sweep, so that no state is sticky: it stops runs that hang, settles runs without a process, refuses overdue
permission requests and retires unused sessions."""

import logging
import signal
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

import anyio
import anyio.to_thread

from segue.journal.rows import RunRow, SessionRow
from segue.model.errors import AlreadyServing
from segue.model.status import Purpose, RunStatus, SessionStatus, Trigger, WaitingFor
from segue.orchestrator.runtime import containers
from segue.orchestrator.runtime.permissions import answer_question
from segue.orchestrator.runtime.run_handle import RunHandle, Stop
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling.error_log import errors_logged
from segue.orchestrator.settling.recovery import CRASHED, settle, settling_for
from segue.orchestrator.settling.retirement import retire_sessions
from segue.workspace.private import take_away_left

log = logging.getLogger("segue")

SETTLE_AT_START = 20.0
"""Seconds the settling of one run may take before the server comes up all the same."""
SETTLE_GRACE = 15.0
"""Seconds a run gets to settle itself after it was torn away."""


async def settle_left_runs(services: RuntimeServices) -> list[RunRow]:
    """Settle the open runs of earlier boots before serving, queued ones included, and return them. No agent is
    started."""
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
    """Refuse overdue requests, check the open runs, signal retries, retire sessions, and remove leftovers; raise
    AlreadyServing if the lock is lost."""
    await services.journal.check_lock()
    now = services.clock.now()
    patience = timedelta(seconds=services.rules.permission_timeout)
    for question in await services.journal.questions.overdue(now):
        if question.deadline + services.clock.away_since(question.deadline - patience) > now:
            # The machine was suspended for a part of that time.
            continue
        with errors_logged(f"question {question.id} could not be refused"):
            reason = f"nobody answered within {services.rules.permission_timeout:g} seconds"
            await answer_question(services, question.workflow_id, question.id, allow=False, by="timeout", reason=reason)
    for run in await services.journal.runs.open():
        with _settled(run):
            await _check_run(services, run, now)
    # The task that scheduled a retry may have been interrupted before it could signal it.
    services.retry_scheduled.set()
    await retire_sessions(services)
    with errors_logged("what killed agents left could not be taken away"):
        await anyio.to_thread.run_sync(take_away_left)
    await containers.tidy(services)


def _settled(run: RunRow) -> AbstractContextManager[None]:
    """Log an error of the body as a run that could not be settled, and go on."""
    return errors_logged(f"run {run.session_id}/r{run.number} could not be settled")


async def _check_run(services: RuntimeServices, run: RunRow, now: datetime) -> None:
    """Settle a run that nothing executes, and tear away an active one that gave no sign for too long; else do
    nothing."""
    live = services.live.get(run.workflow_id)
    if live is None:
        if run.boot != services.boot or not await services.queue.knows(run):
            await settle(services, run.session_id, run.number, CRASHED)
        return
    if run.status is not RunStatus.ACTIVE or (live.patience is not None and now < live.patience):
        return
    session = await services.journal.sessions.get(run.session_id)
    if run.purpose is Purpose.TALK and session.status is SessionStatus.WAITING_FOR_INPUT:
        # It waits for a message, and has a time limit of its own.
        return
    last = await services.journal.last_event_at(run.workflow_id)
    last_sign = max(last, session.moved_at) if last else session.moved_at
    if (late := _lateness(services, session, last_sign, now)) is not None:
        await _tear_away(services, run, live, Stop(trigger=Trigger.CRASH, reason=late))


async def _tear_away(services: RuntimeServices, run: RunRow, live: RunHandle, stop: Stop) -> None:
    """Stop a live run and settle it after a short grace, even if it does not end."""
    live.tear_away(stop)
    with anyio.move_on_after(SETTLE_GRACE):
        await live.done.wait()
    # A run that hangs so deep that it cannot be cancelled is settled all the same; the fence refuses its later writes.
    if await settle(services, run.session_id, run.number, settling_for(stop)):
        services.queue.forget(run.session_id, run.number)
        services.live.pop(run.workflow_id, None)


def _lateness(services: RuntimeServices, session: SessionRow, last_sign: datetime, now: datetime) -> str | None:
    """Return why a session counts as hanging; None if it does not, or waits for a permission."""
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
