"""Turns with one agent: a prompt goes out, and everything up to the agent's stop is written down."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import anyio

from segue.drivers import Agent
from segue.journal import Transaction
from segue.model import events as e
from segue.model.crash import crash_point
from segue.model.errors import NeverAnswered, NothingToAnswer
from segue.model.ids import RequestId, SessionId
from segue.model.status import Permissions, PromptStatus, SessionStatus, Trigger, WaitingFor
from segue.orchestrator.alongside import alongside
from segue.orchestrator.capacity import Capacity, event_of
from segue.orchestrator.ends import exited, failed_turn
from segue.orchestrator.permissions import by_policy, option_for, policy
from segue.orchestrator.recorder import Recorder
from segue.orchestrator.tenure import Tenure
from segue.protocol.capacity import Rung
from segue.protocol.stalls import NeverAnswered as Silent
from segue.protocol.stalls import Stalled, Watch, hear, look

LOOK_EVERY = 60.0
"""Seconds between two looks at whether the agent is silent."""
FLUSH_EVERY = 1.0
"""Seconds that streamed text waits, at most, before it is journalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Whose turns these are."""

    session_id: SessionId
    run: int | None
    """None for one that helps inside another's run."""
    permissions: Permissions


class Turns:
    """One agent, heard all the time; its questions are asked, its usage is measured, its words are kept."""

    def __init__(
        self, tenure: Tenure, agent: Agent, recorder: Recorder, speaker: Speaker, capacity: Capacity | None = None
    ) -> None:
        self._tenure = tenure
        self._house = tenure.house
        self._live = tenure.live
        self._agent = agent
        self._recorder = recorder
        self._speaker = speaker
        self._capacity = capacity
        self._questions: dict[RequestId, e.PermissionRequested] = {}
        self._watch = Watch(sent_at=self._house.clock.now())
        self._heard: asyncio.Queue[e.AgentEvent] = asyncio.Queue()
        self.under_way = False
        self.aside = False
        """What the agent says now is no part of the work, and is not written down as its message."""
        self.reads_only = ""
        """Why nothing but reading is allowed now, whatever was chosen; empty where that is not so."""
        self.words: list[str] = []
        """What the agent has said in this turn."""

    # ── beside the turns ────────────────────────────────────────────────────────────────────────────

    async def listen(self) -> None:
        """All the time: an agent may speak between two turns, and may go away there."""
        async for event in self._agent.events():
            self._heard.put_nowait(event)
        self._heard.put_nowait(e.AgentExited(code=None, detail="The agent's connection ended."))

    async def flush_regularly(self) -> None:
        while True:
            await self._house.clock.sleep(FLUSH_EVERY)
            await self._recorder.flush_words()

    async def deliver_answers(self) -> None:
        """Answers come from people, and from the sweep that refuses what nobody answered in time."""
        while True:
            request_id, allow = await self._live.answers.get()
            question = self._questions.pop(request_id, None)
            if question is not None:
                await self._deliver(question, allow)

    async def overhear(self) -> e.AgentEvent:
        """The next thing the agent does while nobody speaks to it."""
        event = await self._heard.get()
        # Whoever speaks now ends this, but what was taken from the queue must still be written down.
        with anyio.CancelScope(shield=True):
            await self._write_down(event)
        return event

    # ── a turn ──────────────────────────────────────────────────────────────────────────────────────

    async def take(self, prompt: e.PromptQueued, text: str) -> e.StopReason:
        """One prompt, in the words the agent gets, and everything up to its stop."""
        await self._tenure.write("prompt.sent", lambda t: self._move_prompt(t, prompt, PromptStatus.SENT))
        self.words = []
        self.under_way = True
        await self._agent.prompt(prompt.prompt_id, text)
        crash_point("prompt.delivered")
        self._watch = Watch(sent_at=self._house.clock.now())
        async with alongside(self._notice_silence):
            return await self._hear_out(prompt)

    async def _hear_out(self, prompt: e.PromptQueued) -> e.StopReason:
        acknowledged = False
        while True:
            event = await self._heard.get()
            if not acknowledged and isinstance(event, _REACTIONS):
                acknowledged = True
                await self._acknowledge(prompt, understood=not isinstance(event, e.TurnFailed))
            if acknowledged:
                self._watch = hear(self._watch, self._house.clock.now())
            await self._write_down(event)
            match event:
                case e.TurnEnded(reason=reason):
                    self.under_way = False
                    return reason
                case e.TurnFailed():
                    self.under_way = False
                    raise failed_turn(event)
                case e.AgentExited():
                    raise exited(event)
                case _:
                    pass

    async def _notice_silence(self) -> None:
        """Silence is said once; an agent that never reacted has not come up. While a question is open, it may wait."""
        notice_after = timedelta(seconds=self._house.rules.stall_notice)
        while True:
            await self._house.clock.sleep(min(LOOK_EVERY, self._house.rules.stall_notice))
            now = self._house.clock.now()
            if self._questions:
                self._watch = hear(self._watch, now)
            self._watch, notice = look(self._watch, now, notice_after)
            match notice:
                case Silent(reason=reason):
                    raise NeverAnswered(reason)
                case Stalled(reason=reason):
                    await self._recorder.record(e.Warned(code="stalled", message=reason))
                case None:
                    pass

    async def cancel(self) -> None:
        """Ask the agent to stop; the turn still comes to its end."""
        await self._agent.cancel()

    async def _write_down(self, event: e.AgentEvent) -> None:
        if isinstance(event, e.TextDelta) and event.role == "message":
            self.words.append(event.text)
        match event:
            case e.TextDelta(role="message") if self.aside:
                pass
            case e.TextDelta():
                await self._recorder.hear(event)
            case e.PermissionRequested():
                await self._ask(event)
            case e.UsageReported():
                await self._recorder.record(event)
                await self._fill(event)
            case _:
                await self._recorder.record(event)

    def _move_prompt(
        self, t: Transaction, prompt: e.PromptQueued, after: PromptStatus, *, understood: bool = True
    ) -> None:
        t.move_prompt(prompt.prompt_id, after, self._speaker.session_id, self._speaker.run, understood=understood)

    async def _acknowledge(self, prompt: e.PromptQueued, *, understood: bool) -> None:
        await self._tenure.transact(
            lambda t: self._move_prompt(t, prompt, PromptStatus.ACKNOWLEDGED, understood=understood)
        )
        crash_point("prompt.acknowledged")

    # ── usage ───────────────────────────────────────────────────────────────────────────────────────

    async def _fill(self, report: e.UsageReported) -> None:
        """The context has grown: say what is said at each rung, and see to what follows."""
        for reached in self._capacity.hear(report) if self._capacity else ():
            if reached.rung is Rung.SNAPSHOT_BEFORE_COMPACTION:
                continue
            await self._recorder.record(event_of(reached))
            if reached.rung in (Rung.PAUSE, Rung.FORCE):
                now = self._house.clock.now()
                wait = self._house.rules.pause_force_after if reached.rung is Rung.PAUSE else 0.0
                await self._tenure.request_pause(Trigger.EXHAUSTION, reached.sentence, now + timedelta(seconds=wait))

    # ── questions ───────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, question: e.PermissionRequested) -> None:
        """Put a question to the policy, or to the user; either way it is on disk before the agent hears an answer."""
        await self._recorder.flush()
        verdict = policy(Permissions.READ_ONLY if self.reads_only else self._speaker.permissions, question)
        deadline = self._house.clock.now() + timedelta(seconds=self._house.rules.permission_timeout)
        session_id, run = self._speaker.session_id, self._speaker.run

        def ask(t: Transaction) -> None:
            t.ask(question, session_id, run, deadline)
            if verdict is not None:
                t.answer(by_policy(question, verdict, "" if verdict else self.reads_only), session_id, run)
            elif t.session.status is SessionStatus.RUNNING:
                self._tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PERMISSION)

        if verdict is None:
            self._questions[question.request_id] = question
        await self._tenure.transact(ask)
        crash_point("permission.asked")
        if verdict is not None:
            await self._deliver(question, verdict)

    async def _deliver(self, question: e.PermissionRequested, allow: bool) -> None:
        crash_point("permission.answered")
        try:
            await self._agent.answer(question.request_id, option_for(question, allow))
        except NothingToAnswer:
            message = f"The answer to “{question.title}” came too late: the agent did not wait for it any more."
            await self._recorder.record(e.Warned(code="answer_too_late", message=message))


_REACTIONS = (e.TextDelta, e.ToolCalled, e.TodoUpdated, e.PermissionRequested, e.Compacted, e.TurnEnded, e.TurnFailed)
"""What shows that the agent has the prompt; a late report of the turn before does not."""
