"""Reports of an agent before a pause, where they are switched on: its decisions and errors."""

from dataclasses import replace

import anyio

from segue.journal import Transaction
from segue.model import events as e
from segue.model.errors import AgentError
from segue.model.ids import TaskId, new_prompt_id
from segue.model.status import SessionStatus, WaitingFor
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.turns import CANCEL_GRACE, REPORT_TURN, Turns
from segue.orchestrator.runtime.concurrency import alongside
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.settling.run_ends import DEAF
from segue.snapshot.extraction import QUESTION, Unreadable, read_answer, repair


async def ask_for_report(lease: Lease, turns: Turns, recorder: Recorder, task: TaskId, pause: Stop) -> bool:
    """Ask the agent about its last task before a pause, with one repair and within a time limit. Return True if the
    agent was asked to the end, False with a warning if it failed. The work pauses in either case."""
    try:
        async with alongside(lambda: _limit_time(lease, turns, pause)):
            answer = await _ask(lease, turns, QUESTION, task)
            if answer is not None and isinstance(refused := read_answer(answer), Unreadable):
                await _ask(lease, turns, repair(refused), task)
    except AgentError as error:
        message = f"The agent did not report its decisions: {error.message}"
        await recorder.record(e.Warned(code="not_reported", message=message))
        return False
    return True


async def _ask(lease: Lease, turns: Turns, question: str, task: TaskId) -> str | None:
    """Store and send the question of the last finished task, journal the answer, and return it; None if its turn was
    broken off."""
    session_id, number = lease.session_id, lease.number
    prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=question, task_id=task, report=True)

    def ask(t: Transaction) -> None:
        t.prompts.queue(prompt, session_id, number)
        lease.move(t, SessionStatus.RUNNING)

    await lease.write("report.asked", ask)
    turn = await turns.take(prompt, question, REPORT_TURN)

    def store_answer(t: Transaction) -> None:
        t.append(e.AgentReported(prompt_id=prompt.prompt_id, text=turn.text), session_id=session_id, run=number)
        lease.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

    await lease.write("report.given", store_answer)
    return turn.text if turn.reason == "end_turn" else None


async def _limit_time(lease: Lease, turns: Turns, pause: Stop) -> None:
    """Wait for the report's time limit, then cancel the turn, and later tear the run away; the work still pauses for
    its own reason."""
    clock = lease.services.clock
    await clock.sleep(lease.services.rules.extraction.timeout)
    with anyio.move_on_after(CANCEL_GRACE):
        await turns.cancel()
    await clock.sleep(CANCEL_GRACE)
    why = f"{pause.reason.rstrip('.')}; {DEAF}" if pause.reason else DEAF
    lease.live.tear_away(replace(pause, reason=why))
