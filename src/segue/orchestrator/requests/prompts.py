"""Messages of people to a workflow's agent, and their delivery."""

from dataclasses import replace
from datetime import datetime, timedelta

from segue.journal import Transaction
from segue.journal.rows import WorkflowRow
from segue.model.crash import crash_point
from segue.model.errors import BadInput
from segue.model.events import PromptNotSent, PromptQueued, PromptSent, RunEnded, RunQueued
from segue.model.ids import PromptId, Seq, SessionId, new_prompt_id
from segue.model.pictures import pictures_of, with_names
from segue.model.requests import PromptRequest
from segue.model.status import Failure, PromptStatus, Purpose, WorkflowStatus
from segue.model.views import Prompted, Resumed
from segue.orchestrator.requests.launches import Ask
from segue.orchestrator.requests.resumption import Resuming
from segue.orchestrator.runtime.concurrency import cancelled_by, within
from segue.orchestrator.runtime.permissions import answer_question
from segue.orchestrator.runtime.run_handle import UrgentMessage
from segue.state.fold import WorkflowState

W = WorkflowStatus
WAITS = "The agent gets it at the end of what it does now."
NOBODY_LISTENS = "The agent does not listen yet, and gets it first when it does."
INTERRUPTED = "What it did was interrupted for that."
GONE = frozenset({Failure.PROCESS_EXITED, Failure.TRANSPORT_LOST})
"""Failures of a run whose agent turned out to be gone."""


class Talking:
    """Service that sends people's messages to agents, and starts an agent again if it is gone."""

    def __init__(self, resuming: Resuming) -> None:
        self._resuming = resuming
        self._launching = resuming.launching
        self._services = resuming.services
        self._journal = resuming.services.journal

    async def prompt(self, name: str, request: PromptRequest) -> Prompted:
        """Send a message to a workflow's agent, which is started again if it is gone.

        Without `wait`, an agent in the middle of a task is not waited for: the message is stored, and the agent gets it
        at the end of the task. With `now`, the agent is interrupted, gets the message, and continues its task.
        """
        if not request.text.strip():
            raise BadInput("There is nothing to say.", hint="Give the words: segue prompt 'What is left to do?'")
        row = await self._journal.workflows.get(name)
        pictures = pictures_of(request.images)
        text = with_names(request.text, pictures)
        if pictures:
            _refuse_unseen(await self._journal.state(row.id), row.agent)
        if (answered := await self._answer_in_words(row, text)) is not None:
            return answered
        said = PromptQueued(prompt_id=new_prompt_id(), text=text, pictures=pictures)
        without = self._resuming.ask(row, Purpose.TALK, request.environment)
        head = await self._journal.head(row.id)
        launched = await self._launching.launch(row, replace(without, message=said, pictures=request.images))
        crash_point("prompt.queued")
        answer_by = self._services.clock.now() + timedelta(seconds=self._services.rules.delivery_wait)
        urgent = await self._pressed(row, said.prompt_id, answer_by) if request.now else None
        at_work = launched.status == "joined" and row.status is W.IN_PROGRESS
        patience = 0 if at_work and not request.wait else self._until(answer_by)
        answer = await self._until_delivered(row, without, launched, said.prompt_id, head, patience)
        return _with_what_was_decided(answer, urgent) if urgent else answer

    async def _pressed(self, row: WorkflowRow, prompt_id: PromptId, answer_by: datetime) -> UrgentMessage | None:
        """Mark the message as urgent for the live run, and wait until it decides to interrupt or not, it ends, or the
        time is over; None if no run is live."""
        live = self._services.live.get(row.id)
        if live is None:
            return None
        live.urgent.put_nowait(urgent := UrgentMessage(prompt_id, reason=NOBODY_LISTENS))
        async with within(self._services.clock, self._until(answer_by)), cancelled_by(live.done):
            await urgent.decided.wait()
        return urgent

    def _until(self, moment: datetime) -> float:
        """Return the seconds until the moment, 0 if it is over."""
        return max(0.0, (moment - self._services.clock.now()).total_seconds())

    # ── delivery ────────────────────────────────────────────────────────────────────────────────────

    async def _answer_in_words(self, row: WorkflowRow, text: str) -> Prompted | None:
        """Answer the open question that takes free text with this message, and return the result; None if there is
        none, or no run is live."""
        state = await self._journal.state(row.id)
        session = state.session
        asked = next((id for id, each in session.questions.items() if each.free_text), None) if session else None
        if asked is None or state.current_session is None or row.id not in self._services.live:
            return None
        question = await answer_question(self._services, row.id, asked, allow=True, by="user", words=text)
        if question is None:
            return None
        return Prompted(
            status="answered", workflow_id=row.id, session=state.current_session, reason=f"It answers: {question.title}"
        )

    async def _until_delivered(
        self, row: WorkflowRow, ask: Ask, launched: Resumed, prompt_id: PromptId, head: Seq, patience: float
    ) -> Prompted:
        """Wait at most `patience` seconds for the delivery of the message, and return the result. If the chat was just
        over or its agent gone, launch another run, once."""
        answer = Prompted(
            status="waiting",
            workflow_id=row.id,
            session=launched.session,
            prompt_id=prompt_id,
            way=launched.way if launched.status == "resumed" else None,
            reason=WAITS,
        )
        joined_a_talk = launched.status == "joined" and row.status is not W.IN_PROGRESS
        async with within(self._services.clock, patience):
            session, ended = await self._sent_or_ended(launched, prompt_id, head)
            if isinstance(ended, RunEnded) and (ended.outcome == "talked" or (joined_a_talk and ended.failure in GONE)):
                again = await self._launching.launch(row, ask)
                answer = replace(answer, way=again.way)
                session, ended = await self._sent_or_ended(again, prompt_id, head)
            answer = replace(answer, session=session)
            if ended is None:
                return replace(answer, status="sent", reason="")
            if isinstance(ended, PromptNotSent):
                return replace(answer, status="not_delivered", reason=ended.reason)
            return await self._not_taken(row, prompt_id, answer, ended)
        return answer

    async def _not_taken(self, row: WorkflowRow, prompt_id: PromptId, answer: Prompted, ended: RunEnded) -> Prompted:
        """Build the result for a run that ended without the message: it waits for the next run after a stop, is
        withdrawn after completed or cancelled work, and else is not delivered."""
        if ended.outcome in ("paused", "asked"):
            return replace(answer, reason="The workflow stopped; the agent gets it when the work goes on.")
        if ended.outcome in ("completed", "cancelled"):
            await self._journal.transact(row.id, lambda t: _withdraw(t, prompt_id))
        return replace(answer, status="not_delivered", reason=ended.reason or f"The workflow is {ended.outcome}.")

    async def _sent_or_ended(
        self, launched: Resumed, prompt_id: PromptId, head: Seq
    ) -> tuple[SessionId, RunEnded | PromptNotSent | None]:
        """Wait until the message is sent (None), is refused, or its run ends, and return the session with that event.
        After a hand-over, follow the run of the session that takes over."""
        session, run, handed_over = launched.session, launched.run, False
        async for record in self._journal.follow(launched.workflow_id, head):
            mine = (record.session_id, record.run) == (session, run)
            match record.event:
                case PromptSent(prompt_id=sent) if sent == prompt_id:
                    return session, None
                case PromptNotSent(prompt_id=unsent, reason=reason) if unsent == prompt_id and reason:
                    return session, record.event
                case RunEnded(outcome="handed_over") if mine:
                    handed_over = True
                case RunEnded() if mine:
                    return session, record.event
                case RunQueued() if handed_over and record.session_id is not None and record.run is not None:
                    session, run, handed_over = record.session_id, record.run, False
                case _:
                    pass
        raise AssertionError("a journal is followed for ever")


def _refuse_unseen(state: WorkflowState, agent: str) -> None:
    """Raise BadInput if the agent has reported that it takes no pictures, or a question waits for free text; else do
    nothing."""
    told = [each.capabilities for each in state.sessions.values() if each.agent == agent]
    known = [each for each in told if each is not None]
    if known and "images" not in known[-1]:
        raise BadInput(f"{agent} takes no pictures.", hint="Say it in words, or hand the work to an agent that does.")
    if state.session and any(each.free_text for each in state.session.questions.values()):
        raise BadInput("An open question is answered in words.", hint="Answer it first, and show the pictures after.")


def _with_what_was_decided(answer: Prompted, urgent: UrgentMessage) -> Prompted:
    """Return the answer with what the run decided about an urgent message: interrupted, or why not."""
    if urgent.interrupts:
        return replace(answer, interrupted=True, reason=INTERRUPTED if answer.status == "waiting" else answer.reason)
    waits = answer.status == "waiting" and answer.reason == WAITS
    return replace(answer, reason=urgent.reason or answer.reason) if waits else answer


def _withdraw(t: Transaction, prompt_id: PromptId) -> None:
    """Mark a prompt as not sent, if it is still queued; else do nothing."""
    if t.prompts.get(prompt_id).status is PromptStatus.QUEUED:
        t.prompts.move(prompt_id, PromptStatus.NOT_SENT, t.sessions.current().id, None)
