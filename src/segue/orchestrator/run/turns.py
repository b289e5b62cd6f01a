"""Turns with one agent: a prompt goes out, and everything up to the agent's stop is written down."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

import anyio

from segue.drivers import Agent, Image
from segue.journal import Transaction
from segue.journal.reading import queued_prompt, shown_with
from segue.journal.rows import PromptRow, prompt_by_id
from segue.model import events as e
from segue.model.crash import crash_point
from segue.model.errors import AgentError, NeverAnswered, NothingToAnswer
from segue.model.ids import PromptId, RequestId, SessionId, new_prompt_id
from segue.model.status import Permissions, PromptStatus, SessionStatus, Trigger, WaitingFor
from segue.orchestrator.run.capacity import Capacity, event_of
from segue.orchestrator.run.messages import Said, together
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.refreshing import refresh, save_before_compaction
from segue.orchestrator.run.tenure import Tenure
from segue.orchestrator.runtime.alongside import alongside, unless
from segue.orchestrator.runtime.house import Urgent, Verdict
from segue.orchestrator.runtime.permissions import by_policy, option_for, policy
from segue.orchestrator.settling.ends import exited, failed_turn
from segue.orchestrator.settling.settling import close_questions
from segue.protocol.capacity import Compaction, Reached, Refresh, Rung, WindowUnknown
from segue.protocol.stalls import NoReaction, Stalled, Watch, hear, look
from segue.resume.prompts import after_a_word

NOTHING_TO_INTERRUPT = "The agent is between two turns, and gets it before the next one."
AFTER_THE_PAUSE = "A pause was asked for, and comes first; the agent gets it when the work goes on."
CANCEL_GRACE = 10.0
"""Seconds an agent gets to end a turn that was cancelled."""
WINDOW_UNKNOWN = (
    "The agent does not say how large its window is, and neither does the table of models: "
    "nobody is warned, and nothing is handed over, before it is full."
)
NO_PICTURES = "the agent takes no pictures, so neither they nor the words were sent"
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
        self._over = anyio.Event()
        """The turn under way has come to its end."""
        self._gives_way = False
        """The turn under way was interrupted because somebody has something to say."""
        self._begun: set[PromptId] = set()
        self._pressing: set[PromptId] = set()
        self.joined: PromptId | None = None
        """A prompt that the agent had before anybody listened to it here; it is not sent again."""
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
            verdict = await self._live.verdicts.get()
            question = self._questions.pop(verdict.request_id, None)
            if question is None or not await self._deliver(question, verdict.allow, verdict.words):
                await self._too_late(verdict)

    async def overhear(self) -> e.AgentEvent:
        """The next thing the agent does while nobody speaks to it."""
        event = await self._heard.get()
        # Whoever speaks now ends this, but what was taken from the queue must still be written down.
        with anyio.CancelScope(shield=True):
            await self._write_down(event)
        return event

    # ── a turn ──────────────────────────────────────────────────────────────────────────────────────

    async def take(
        self, prompt: e.PromptQueued, text: str, *, sent: bool = False, parts: tuple[PromptId, ...] = ()
    ) -> e.StopReason:
        """One prompt, in the words the agent gets, and everything up to its stop. `sent`: it is written down already
        that it goes out. `parts`: the messages whose words it has besides its own."""
        reason = await self._turn(prompt, text, sent=sent, parts=parts)
        while reason == "cancelled" and self._gives_way and prompt.task_id is not None:
            reason = await self._after_what_was_said(prompt)
        return reason

    async def _turn(
        self, prompt: e.PromptQueued, text: str, *, sent: bool = False, parts: tuple[PromptId, ...] = ()
    ) -> e.StopReason:
        joins = prompt.prompt_id == self.joined
        if not (joins or sent):
            await self._tenure.write("prompt.sent", lambda t: self._send(t, prompt.prompt_id, parts))
        # Read before the turn is under way: until the agent has its prompt, nothing of it can be cancelled.
        images = [] if joins else await self._images(prompt)
        self.words = []
        self._begun |= {prompt.prompt_id, *parts}
        self._gives_way, self._over = False, anyio.Event()
        self.under_way = True
        if not joins:
            if self._capacity:
                self._capacity.prompted(text)
            await self._agent.prompt(prompt.prompt_id, text, images)
            crash_point("prompt.delivered")
        acknowledged = joins and await self._acknowledged(prompt.prompt_id)
        now = self._house.clock.now()
        # Who has reacted to it before is not asked to react again.
        self._watch = Watch(sent_at=now, heard_at=now if acknowledged else None)
        try:
            async with alongside(self._notice_silence):
                reason = await self._hear_out((*parts, prompt.prompt_id), acknowledged)
        finally:
            self._over.set()
        if self._questions:
            await self._refuse(await self._take_back_questions())
        return reason

    async def _images(self, prompt: e.PromptQueued) -> list[Image]:
        if not prompt.pictures:
            return []
        shown = await self._house.journal.read(lambda c: shown_with(c, prompt))
        return [Image(media_type=each.media_type, data=data) for each, data in zip(prompt.pictures, shown, strict=True)]

    async def _acknowledged(self, prompt_id: PromptId) -> bool:
        row = await self._house.journal.read(lambda c: prompt_by_id(c, prompt_id))
        return row.status is PromptStatus.ACKNOWLEDGED

    async def _hear_out(self, prompts: tuple[PromptId, ...], acknowledged: bool) -> e.StopReason:
        while True:
            event = await self._heard.get()
            if not acknowledged and isinstance(event, _REACTIONS):
                acknowledged = True
                await self._acknowledge(prompts, understood=not isinstance(event, e.TurnFailed))
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

    # ── giving way ──────────────────────────────────────────────────────────────────────────────────

    async def give_way(self) -> None:
        """What somebody wants heard now interrupts the turn under way, unless a pause comes anyway."""
        while True:
            said = await self._live.urgent.get()
            pausing = (await self._house.journal.workflow(self._tenure.workflow_id)).pause_trigger is not None
            if pausing or said.prompt_id in self._begun:
                said.decide(False, AFTER_THE_PAUSE if pausing else "")
            elif self.under_way and not self.aside:
                await self._break_off(said)
            else:
                self._press(said)

    @property
    def pressing(self) -> bool:
        """Whether somebody wants something heard before anything else is asked of the agent."""
        return not self._pressing <= self._begun

    def _press(self, said: Urgent) -> None:
        self._pressing.add(said.prompt_id)
        said.decide(False, NOTHING_TO_INTERRUPT)

    async def _break_off(self, said: Urgent) -> None:
        self._gives_way, over = True, self._over
        # Cancelled, the agent takes its questions back, so nobody may answer them any more.
        taken_back = await self._take_back_questions()
        if over.is_set():
            # It came to its end by itself meanwhile; whatever is under way now is not to be cancelled.
            await self._refuse(taken_back)
            self._press(said)
            return
        said.decide(True)
        with anyio.move_on_after(CANCEL_GRACE):
            await self.cancel()
            # Cancelled, it knows; one that ended its turn just before does not.
            await self._refuse(taken_back)
        async with unless(over):
            await self._house.clock.sleep(CANCEL_GRACE)
            raise AgentError("The agent was asked to stop, since somebody has something to say, and did not.")

    async def _after_what_was_said(self, interrupted: e.PromptQueued) -> e.StopReason:
        """What people have said; then the work goes on that was interrupted for it."""
        if (reason := await self.hear_people()) is not None:
            return reason
        self._tenure.pay_for_a_turn()
        again = replace(interrupted, prompt_id=new_prompt_id(), text=after_a_word(interrupted.text))
        session_id, run = self._speaker.session_id, self._speaker.run
        await self._tenure.step("prompt.again", lambda t: t.queue_prompt(again, session_id, run))
        return await self._turn(again, again.text)

    async def hear_people(self) -> e.StopReason | None:
        """Everything that they have said, in their order; else why it came to no end."""
        while (said := await self._tenure.step("message.now", self._take_said)) is not None:
            reason = await self._turn(said.prompt, said.prompt.text, parts=said.parts)
            if reason == "max_tokens" or (reason == "cancelled" and not self._gives_way):
                return reason
        return None

    def _take_said(self, t: Transaction) -> Said | None:
        if t.session.status is not SessionStatus.RUNNING:
            self._tenure.move(t, SessionStatus.RUNNING)
        return self.take_said(t)

    def take_said(self, t: Transaction) -> Said | None:
        """What people said and no agent has got yet: all of it at once, unless each message is to have its own turn."""
        waiting = self._waiting(t) if self._house.rules.merge_messages else self._waiting(t)[:1]
        taken = [t.take_message(each, self._tenure.session_id, self._tenure.number) for each in waiting]
        return together(taken) if taken else None

    def _waiting(self, t: Transaction) -> list[PromptRow]:
        """Pictures that the agent turns out not to take are given back, with their words."""
        waiting: list[PromptRow] = []
        for message in t.messages:
            if self._agent.capabilities.images or not queued_prompt(t.connection, message.id).pictures:
                waiting.append(message)
                continue
            session_id, run = self._speaker.session_id, self._speaker.run
            t.move_prompt(message.id, PromptStatus.NOT_SENT, session_id, run, reason=NO_PICTURES)
        return waiting

    # ── silence ─────────────────────────────────────────────────────────────────────────────────────

    async def _notice_silence(self) -> None:
        """Silence is said once; an agent that never reacted has not come up. While a question is open, it may wait."""
        notice_after = timedelta(seconds=self._house.rules.stall_notice)
        while True:
            await self._house.clock.sleep(min(self._house.rules.stall_look, self._house.rules.stall_notice))
            now = self._house.clock.now()
            if self._questions:
                self._watch = hear(self._watch, now)
            awake = now - self._house.clock.away_since(self._watch.since)
            self._watch, notice = look(self._watch, awake, notice_after)
            match notice:
                case NoReaction(reason=reason):
                    raise NeverAnswered(reason)
                case Stalled(reason=reason):
                    await self._recorder.record(e.Warned(code="stalled", message=reason))
                case None:
                    pass

    async def cancel(self) -> None:
        """Ask the agent to stop; the turn still comes to its end."""
        await self._agent.cancel()

    async def _write_down(self, event: e.AgentEvent) -> None:
        if self._capacity and (estimate := self._capacity.overhear(event)) is not None:
            await self._write_down(estimate)
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
                await self._recorder.hold(event)
                await self._fill(event)
                await self._tenure.spend(self._speaker.session_id, event)
            case e.AgentHeard():
                await self._recorder.heard(event)
            case e.TurnEnded() | e.TurnFailed() | e.AgentExited():
                await self._recorder.record(event)
            case _:
                await self._recorder.hold(event)

    def _send(self, t: Transaction, prompt_id: PromptId, parts: tuple[PromptId, ...]) -> None:
        """All that goes out with it in one commit, and the one that the agent knows it by last."""
        session_id, run = self._speaker.session_id, self._speaker.run
        for each in parts:
            t.move_prompt(each, PromptStatus.SENT, session_id, run, part_of=prompt_id)
        t.move_prompt(prompt_id, PromptStatus.SENT, session_id, run)

    async def _acknowledge(self, prompts: tuple[PromptId, ...], *, understood: bool) -> None:
        session_id, run = self._speaker.session_id, self._speaker.run

        def acknowledge(t: Transaction) -> None:
            for each in prompts:
                if prompt_by_id(t.connection, each).status is not PromptStatus.ACKNOWLEDGED:
                    t.move_prompt(each, PromptStatus.ACKNOWLEDGED, session_id, run, understood=understood)

        await self._tenure.transact(acknowledge)
        crash_point("prompt.acknowledged")

    # ── usage ───────────────────────────────────────────────────────────────────────────────────────

    async def _fill(self, report: e.UsageReported) -> None:
        """The context has grown: say what is said at each rung, and see to what follows."""
        for notice in self._capacity.hear(report) if self._capacity else ():
            match notice:
                case Refresh():
                    await refresh(self._tenure, notice)
                case Reached(rung=Rung.SNAPSHOT_BEFORE_COMPACTION):
                    await save_before_compaction(self._tenure, notice)
                case Reached():
                    await self._reach(notice)
                case WindowUnknown():
                    await self._recorder.record(e.Warned(code="window_unknown", message=WINDOW_UNKNOWN))
                case Compaction():
                    # The driver saw it too, and has said it.
                    pass

    async def _reach(self, reached: Reached) -> None:
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
        if verdict is not None and not await self._deliver(question, verdict):
            await self._too_late(Verdict(request_id=question.request_id, title=question.title, allow=verdict))

    async def _deliver(self, question: e.PermissionRequested, allow: bool, words: str = "") -> bool:
        """Whether the agent still waited for it."""
        crash_point("permission.answered")
        try:
            await self._agent.answer(question.request_id, option_for(question, allow), words)
        except NothingToAnswer:
            return False
        return True

    async def _too_late(self, verdict: Verdict) -> None:
        """Nobody heard it, which is said; words are kept for when the agent listens."""
        message = f"The answer to “{verdict.title}” came too late: the agent did not wait for it any more."
        session_id, run = self._speaker.session_id, self._speaker.run

        def keep(t: Transaction) -> None:
            t.append(e.Warned(code="answer_too_late", message=message), session_id=session_id, run=run)
            if verdict.words:
                t.queue_prompt(e.PromptQueued(prompt_id=new_prompt_id(), text=verdict.words), session_id, None)

        await self._tenure.transact(keep)
        self._live.spoken.set()

    async def _take_back_questions(self) -> list[e.PermissionRequested]:
        """Those that nobody has answered; nobody can any more. An answer that is on its way arrives all the same."""

        def close(t: Transaction) -> frozenset[RequestId]:
            closed = close_questions(t, self._tenure.session_id, self._tenure.number)
            if closed and t.session.waiting_for is WaitingFor.PERMISSION:
                self._tenure.move(t, SessionStatus.RUNNING)
            return closed

        closed = await self._tenure.transact(close)
        return [self._questions.pop(each) for each in list(self._questions) if each in closed]

    async def _refuse(self, questions: Sequence[e.PermissionRequested]) -> None:
        """The agent would wait for ever for what nobody will answer."""
        for question in questions:
            with suppress(NothingToAnswer):
                await self._agent.answer(question.request_id, None)


_REACTIONS = (e.TextDelta, e.ToolCalled, e.TodoUpdated, e.PermissionRequested, e.Compacted, e.TurnEnded, e.TurnFailed)
"""What shows that the agent has the prompt; a late report of the turn before does not."""
