"""Permission requests of one agent: stored, answered by policy or by people, and closed with their turn."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from segue.drivers import Agent
from segue.journal import Transaction
from segue.model import events as e
from segue.model.crash import crash_point
from segue.model.errors import NothingToAnswer
from segue.model.ids import RequestId, SessionId, new_prompt_id
from segue.model.status import Permissions, SessionStatus, WaitingFor
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.runtime.permissions import by_policy, option_for, policy
from segue.orchestrator.runtime.run_handle import PermissionReply
from segue.orchestrator.settling.recovery import close_questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Session of an agent, and what the agent may do."""

    session_id: SessionId
    run: int | None
    """None for a helper inside another session's run."""
    permissions: Permissions


class Questions:
    """Open permission requests of an agent."""

    def __init__(self, lease: Lease, agent: Agent, recorder: Recorder, speaker: Speaker) -> None:
        """Keep the agent's requests for one speaker; none is open yet."""
        self._lease = lease
        self._agent = agent
        self._recorder = recorder
        self._speaker = speaker
        self._open: dict[RequestId, e.PermissionRequested] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    async def ask(self, question: e.PermissionRequested, denial: str) -> None:
        """Store a request, and answer it by policy or leave it to the user; both are on disk before the agent gets an
        answer. `denial` is why nothing but reading is allowed, if that is so."""
        await self._recorder.flush()
        allowed = policy(Permissions.READ_ONLY if denial else self._speaker.permissions, question)
        services, session_id, run = self._lease.services, self._speaker.session_id, self._speaker.run
        deadline = services.clock.now() + timedelta(seconds=services.rules.permission_timeout)

        def ask(t: Transaction) -> None:
            t.questions.ask(question, session_id, run, deadline)
            if allowed is not None:
                t.questions.answer(by_policy(question, allowed, "" if allowed else denial), session_id, run)
            elif t.sessions.current().status is SessionStatus.RUNNING:
                self._lease.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PERMISSION)

        if allowed is None:
            self._open[question.request_id] = question
        await self._lease.transact(ask)
        crash_point("permission.asked")
        if allowed is not None and not await self._deliver(question, allowed):
            await self._too_late(PermissionReply(request_id=question.request_id, title=question.title, allow=allowed))

    async def deliver_replies(self) -> None:
        """Pass on answers of people, and refusals of the sweep for requests that were not answered in time."""
        while True:
            reply = await self._lease.live.replies.get()
            question = self._open.pop(reply.request_id, None)
            if question is None or not await self._deliver(question, reply.allow, reply.words):
                await self._too_late(reply)

    async def _deliver(self, question: e.PermissionRequested, allow: bool, words: str = "") -> bool:
        """Answer the agent; return False if it did not wait for the answer any more."""
        crash_point("permission.answered")
        try:
            await self._agent.answer(question.request_id, option_for(question, allow), words)
        except NothingToAnswer:
            return False
        return True

    async def _too_late(self, reply: PermissionReply) -> None:
        """Record a warning that an answer was not delivered, and queue its written text, if any, as a message."""
        message = f"The answer to “{reply.title}” came too late: the agent did not wait for it any more."
        session_id, run = self._speaker.session_id, self._speaker.run

        def keep(t: Transaction) -> None:
            t.append(e.Warned(code="answer_too_late", message=message), session_id=session_id, run=run)
            if reply.words:
                t.prompts.queue(e.PromptQueued(prompt_id=new_prompt_id(), text=reply.words), session_id, None)

        await self._lease.transact(keep)
        self._lease.live.spoken.set()

    async def close(self) -> list[e.PermissionRequested]:
        """Close the run's unanswered requests in the journal, and return those of this agent; an answer on its way
        still arrives."""

        def close(t: Transaction) -> frozenset[RequestId]:
            closed = close_questions(t, self._lease.session_id, self._lease.number)
            if closed and t.sessions.current().waiting_for is WaitingFor.PERMISSION:
                self._lease.move(t, SessionStatus.RUNNING)
            return closed

        closed = await self._lease.transact(close)
        return [self._open.pop(each) for each in list(self._open) if each in closed]

    async def refuse(self, questions: Sequence[e.PermissionRequested]) -> None:
        """Refuse closed requests to the agent, which would else wait for ever; one that it gave up is skipped."""
        for question in questions:
            with suppress(NothingToAnswer):
                await self._agent.answer(question.request_id, None)
