"""Forced pauses: a requested pause waits for the end of the task, but only for a limited time."""

from dataclasses import replace

import anyio

from segue.model import events as e
from segue.model.status import Phase
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.turns import CANCEL_GRACE, FLUSH_EVERY, Turns
from segue.orchestrator.runtime.concurrency import cancelled_by
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.runtime.services import sleep_until
from segue.orchestrator.settling.recovery import close_questions
from segue.orchestrator.settling.run_ends import FORCED, UNADVISED
from segue.state.moves import AT_WORK

INTERRUPTED = "The task did not come to its end in time; the agent is interrupted in the middle of it."
NO_ADVICE = "The second agent did not give its advice in time; it is not waited for any longer."


async def force_pauses(lease: Lease, recorder: Recorder, turns: Turns | None = None) -> None:
    """Wait for a requested pause that is due while work is under way, then warn, cancel the turn, and tear the run
    away. `turns` is None while a fixer is asked."""
    live, clock = lease.live, lease.services.clock
    advising = live.phase.now is Phase.OPENING
    stop, message = (UNADVISED, NO_ADVICE) if advising else (FORCED, INTERRUPTED)
    while (due := await _due(lease, stop)) is None or not live.force_pause(due):
        if due is None:
            await live.pause.wait()
            live.pause = anyio.Event()
    await recorder.record(e.Warned(code="pause_forced", message=message))
    # A cancelled agent withdraws its requests, so they can no longer be answered.
    await lease.transact(lambda t: close_questions(t, lease.session_id, lease.number))
    if turns and turns.under_way:
        with anyio.move_on_after(CANCEL_GRACE):
            await turns.cancel()
        await clock.sleep(CANCEL_GRACE)
    live.tear_away(due)


async def _due(lease: Lease, stop: Stop) -> Stop | None:
    """Wait until a requested pause has to be forced and return how the run stops; None if no pause is requested, or
    it changes or is withdrawn meanwhile."""
    live, clock, journal = lease.live, lease.services.clock, lease.services.journal
    force_at = (await journal.workflows.get(lease.workflow_id)).force_pause_at
    if force_at is None:
        return None
    async with cancelled_by(live.pause):
        await sleep_until(clock, force_at)
        while live.phase.now not in AT_WORK:
            await clock.sleep(FLUSH_EVERY)
    row = await journal.workflows.get(lease.workflow_id)
    if live.pause.is_set() or row.pause_trigger is None:
        return None
    why = f": {row.pause_reason}" if row.pause_reason else ""
    return replace(stop, trigger=row.pause_trigger, reason=f"{stop.reason}{why}")
