"""What an agent is asked before a pause, where that is switched on: its decisions, and what went wrong."""

from dataclasses import replace

import anyio

from segue.journal import Transaction
from segue.model import events as e
from segue.model.errors import AgentError
from segue.model.ids import TaskId, new_prompt_id
from segue.model.status import SessionStatus, WaitingFor
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.tenure import Tenure
from segue.orchestrator.run.turns import CANCEL_GRACE, REPORT_TURN, Turns
from segue.orchestrator.runtime.alongside import alongside
from segue.orchestrator.runtime.handle import Stop
from segue.orchestrator.settling.ends import DEAF
from segue.snapshot.extraction import QUESTION, Unreadable, read_answer, repair


class Reports:
    """Asks about the last task; one repair, and in time."""

    def __init__(self, tenure: Tenure, turns: Turns, recorder: Recorder) -> None:
        self._tenure = tenure
        self._house = tenure.house
        self._turns = turns
        self._recorder = recorder

    async def ask(self, task: TaskId, pause: Stop) -> bool:
        """Whether the agent was heard; the work came to a clean end before, and pauses there all the same."""
        try:
            async with alongside(lambda: self._hurry(pause)):
                told = await self._hear(QUESTION, task)
                if told is not None and isinstance(refused := read_answer(told), Unreadable):
                    await self._hear(repair(refused), task)
        except AgentError as error:
            message = f"The agent did not report its decisions: {error.message}"
            await self._recorder.record(e.Warned(code="not_reported", message=message))
            return False
        return True

    async def _hear(self, question: str, task: TaskId) -> str | None:
        """The agent's answer, or None if it did not come to its end. The question belongs to the task it did last."""
        session_id, number = self._tenure.session_id, self._tenure.number
        prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=question, task_id=task, report=True)

        def ask(t: Transaction) -> None:
            t.prompts.queue(prompt, session_id, number)
            self._tenure.move(t, SessionStatus.RUNNING)

        await self._tenure.write("report.asked", ask)
        turn = await self._turns.take(prompt, question, REPORT_TURN)

        def take_down(t: Transaction) -> None:
            t.append(e.AgentReported(prompt_id=prompt.prompt_id, text=turn.text), session_id=session_id, run=number)
            self._tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self._tenure.write("report.given", take_down)
        return turn.text if turn.reason == "end_turn" else None

    async def _hurry(self, pause: Stop) -> None:
        """A report has its time, and an agent that goes on all the same is torn away; the work pauses for the reason
        that it was to pause for."""
        await self._house.clock.sleep(self._house.rules.extraction.timeout)
        with anyio.move_on_after(CANCEL_GRACE):
            await self._turns.cancel()
        await self._house.clock.sleep(CANCEL_GRACE)
        why = f"{pause.reason.rstrip('.')}; {DEAF}" if pause.reason else DEAF
        self._tenure.live.tear_away(replace(pause, reason=why))
