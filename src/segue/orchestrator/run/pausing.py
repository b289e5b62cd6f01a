"""A pause that was asked for waits for the end of the task, but not for ever."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import anyio

from segue.model import events as e
from segue.model.status import Trigger
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.tenure import Tenure
from segue.orchestrator.run.turns import CANCEL_GRACE, FLUSH_EVERY, Turns
from segue.orchestrator.runtime.alongside import unless
from segue.orchestrator.runtime.house import Stop, sleep_until
from segue.orchestrator.settling.ends import FORCED, UNADVISED
from segue.orchestrator.settling.settling import close_questions

INTERRUPTED = "The task did not come to its end in time; the agent is interrupted in the middle of it."
NO_ADVICE = "The second agent did not give its advice in time; it is not waited for any longer."


class Pausing:
    """Forces a pause whose time has come while a task is under way; without turns, while a second agent is asked before
    there are any."""

    def __init__(
        self,
        tenure: Tenure,
        recorder: Recorder,
        turns: Turns | None = None,
        at_work: Callable[[], bool] = lambda: True,
    ) -> None:
        self._tenure = tenure
        self._house = tenure.house
        self._live = tenure.live
        self._turns = turns
        self._recorder = recorder
        self._at_work = at_work
        self.forced: Stop | None = None
        """A pause was forced, so a turn that ends cancelled is no failure."""

    async def force(self) -> None:
        # Looked at before it is waited for: somebody may have asked before there was anybody to hear it.
        while (trigger := await self._due()) is None:
            await self._live.pause.wait()
            self._live.pause = anyio.Event()
        stop, message = (FORCED, INTERRUPTED) if self._turns else (UNADVISED, NO_ADVICE)
        self.forced = replace(stop, trigger=trigger, reason=f"{stop.reason}{await self._why()}")
        await self._recorder.record(e.Warned(code="pause_forced", message=message))
        # Cancelled, the agent takes its questions back, so nobody may answer them any more.
        await self._tenure.transact(lambda t: close_questions(t, self._tenure.session_id, self._tenure.number))
        if self._turns and self._turns.under_way:
            with anyio.move_on_after(CANCEL_GRACE):
                await self._turns.cancel()
            await self._house.clock.sleep(CANCEL_GRACE)
        self._live.tear_away(self.forced)

    async def _due(self) -> Trigger | None:
        """Why to pause, when its time has come and nobody has withdrawn it meanwhile."""
        force_at = (await self._house.journal.workflow(self._tenure.workflow_id)).force_pause_at
        if force_at is None:
            return None
        if not await self._slept_until(force_at):
            return None
        while not self._at_work():
            await self._house.clock.sleep(FLUSH_EVERY)
        return (await self._house.journal.workflow(self._tenure.workflow_id)).pause_trigger

    async def _slept_until(self, moment: datetime) -> bool:
        """False when somebody wants the pause sooner."""
        async with unless(self._live.pause):
            await sleep_until(self._house.clock, moment)
            return True
        return False

    async def _why(self) -> str:
        """What the person said who asked for the pause, or which limit it was."""
        row = await self._house.journal.workflow(self._tenure.workflow_id)
        return f": {row.pause_reason}" if row.pause_reason else ""
