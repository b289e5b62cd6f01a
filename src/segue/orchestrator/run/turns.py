"""Turns with one agent: a prompt is sent, and everything up to the agent's stop is journalled."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import anyio

from segue.drivers import Agent, Image
from segue.journal import Transaction
from segue.journal.rows import PromptRow
from segue.model import events as e
from segue.model.crash import crash_point
from segue.model.errors import AgentError, NeverAnswered
from segue.model.events import PromptQueued, PromptSent, Record
from segue.model.ids import PromptId, new_prompt_id
from segue.model.status import Phase, PromptStatus, SessionStatus, Trigger, WorkflowStatus
from segue.orchestrator.run.capacity_meter import Capacity, event_of
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.periodic_checkpoints import refresh, save_before_compaction
from segue.orchestrator.run.questions import Questions, Speaker
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.runtime.concurrency import alongside, cancelled_by
from segue.orchestrator.runtime.run_handle import RunHandle, RunPhase, UrgentMessage
from segue.orchestrator.settling.run_ends import WINDOW_FULL, End, RunStopped, exited, failed_turn
from segue.protocol.capacity import Compaction, Reached, Refresh, Rung, WindowUnknown
from segue.protocol.stalls import NoReaction, Stalled, Watch, check, observe
from segue.resume.prompts import after_a_word
from segue.state.moves import BETWEEN_TURNS

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
class TurnKind:
    """Rules that hold during a turn."""

    phase: Phase = Phase.IN_TURN
    denial: str = ""
    """Why nothing but reading is allowed, if that is so."""
    keeps_messages: bool = True
    """The agent's text is journalled as its message."""


TASK_TURN = TurnKind()
PLAN_TURN = TurnKind(denial="a plan is being made, and nothing is changed meanwhile")
REPORT_TURN = TurnKind(phase=Phase.REPORTING, keeps_messages=False)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """End of a turn, and the agent's text in it."""

    reason: e.StopReason
    text: str = ""


@dataclass(frozen=True, slots=True)
class MergedMessage:
    """One prompt for the agent, which knows it by the id of the last message in it."""

    prompt: PromptQueued
    parts: tuple[PromptId, ...] = ()
    """Earlier messages, whose text and pictures are in the prompt too."""


def merge(messages: Sequence[PromptQueued]) -> MergedMessage:
    """Merge messages, in the order in which they were sent, into the last one; the others become its parts."""
    *before, last = messages
    text = "\n\n".join(each.text for each in messages)
    pictures = tuple(picture for each in messages for picture in each.pictures)
    return MergedMessage(replace(last, text=text, pictures=pictures), tuple(each.prompt_id for each in before))


def parts_of(prompt_id: PromptId, sent: Sequence[Record]) -> tuple[PromptId, ...]:
    """Return the messages that were sent as parts of this prompt, according to the given records."""
    events = (record.event for record in sent)
    return tuple(each.prompt_id for each in events if isinstance(each, PromptSent) and each.part_of == prompt_id)


@dataclass(slots=True, kw_only=True)
class _Turn:
    """The turn under way, or the last one."""

    kind: TurnKind
    watch: Watch
    text: list[str] = field(default_factory=list[str])
    over: anyio.Event = field(default_factory=anyio.Event)


class Turns:
    """The exchange with one agent: its events are journalled, its requests answered, its usage measured."""

    def __init__(
        self,
        lease: Lease,
        agent: Agent,
        recorder: Recorder,
        speaker: Speaker,
        phase: RunPhase,
        capacity: Capacity | None = None,
    ) -> None:
        """Prepare the exchange with one agent, with no turn under way; without `capacity` the context is not
        measured."""
        self._lease = lease
        self._services = lease.services
        self._live = lease.live
        self._agent = agent
        self._recorder = recorder
        self._speaker = speaker
        self._phase = phase
        self._capacity = capacity
        self.questions = Questions(lease, agent, recorder, speaker)
        self._turn = _Turn(kind=TASK_TURN, watch=Watch(sent_at=self._services.clock.now()))
        self._turn.over.set()
        self._events = agent.events()
        self._begun: set[PromptId] = set()
        self._pressing: set[PromptId] = set()

    # ── beside the turns ────────────────────────────────────────────────────────────────────────────

    async def flush_regularly(self) -> None:
        """Write the streamed text regularly, up to the last whole piece, until cancelled."""
        while True:
            await self._services.clock.sleep(FLUSH_EVERY)
            await self._recorder.flush_whole_words()

    async def until_gone(self) -> AgentError:
        """Record the agent's events between two turns; return the error when it has exited."""
        while True:
            event = await self._next_event()
            # A message that arrives now ends this, but an event taken from the queue must still be journalled.
            with anyio.CancelScope(shield=True):
                await self._journal(event)
            if isinstance(event, e.AgentExited):
                return exited(event)

    async def yield_to_messages(self) -> None:
        """Answer each urgent message: interrupt the turn under way for it, unless a pause comes first or no turn can
        be interrupted. Never return."""
        while True:
            message = await self._live.urgent.get()
            pausing = (await self._services.journal.workflows.get(self._lease.workflow_id)).pause_trigger is not None
            if pausing or message.prompt_id in self._begun:
                message.decide(False, AFTER_THE_PAUSE if pausing else "")
            elif self._phase.now is Phase.YIELDING:
                message.decide(True)
            elif self._phase.move_from({Phase.IN_TURN}, Phase.YIELDING):
                await self._interrupt(message)
            else:
                self._press(message)

    @property
    def pressing(self) -> bool:
        """Return True if an urgent message has to be sent before anything else is asked of the agent."""
        return not self._pressing <= self._begun

    def _press(self, message: UrgentMessage) -> None:
        """Note that an urgent message has to be sent next, and answer that nothing was interrupted."""
        self._pressing.add(message.prompt_id)
        message.decide(False, NOTHING_TO_INTERRUPT)

    async def _interrupt(self, message: UrgentMessage) -> None:
        """Close the open requests and cancel the turn for the message; raise AgentError if it does not end in time.
        A turn that is over already is left alone."""
        over = self._turn.over
        # A cancelled agent withdraws its requests, so they can no longer be answered.
        closed = await self.questions.close()
        if over.is_set():
            # The turn has ended by itself meanwhile; the next one must not be cancelled.
            await self.questions.refuse(closed)
            self._press(message)
            return
        message.decide(True)
        with anyio.move_on_after(CANCEL_GRACE):
            await self.cancel()
            # An agent that ended its turn just before the cancel still waits for its answers.
            await self.questions.refuse(closed)
        async with cancelled_by(over):
            await self._services.clock.sleep(CANCEL_GRACE)
            raise AgentError("The agent was asked to stop, since somebody has something to say, and did not.")

    async def cancel(self) -> None:
        """Ask the agent to stop; return without waiting for the turn's end."""
        await self._agent.cancel()

    @property
    def under_way(self) -> bool:
        """Return True while the agent has a prompt that can be cancelled."""
        return not self._turn.over.is_set()

    # ── a turn ──────────────────────────────────────────────────────────────────────────────────────

    async def take(
        self,
        prompt: e.PromptQueued,
        text: str,
        kind: TurnKind = TASK_TURN,
        *,
        stored: bool = False,
        parts: tuple[PromptId, ...] = (),
        joined: bool = False,
    ) -> TurnEnd:
        """Send a prompt, journal everything up to the agent's stop, and return its reason and text; send it again
        after an urgent message. `stored`: the prompt is journalled as sent already. `parts`: the other messages
        whose text it contains. `joined`: the agent has the prompt from an earlier run."""
        back = self._phase.now
        if not joined:
            await self._begin(prompt.prompt_id, parts, stored=stored)
        end = await self._exchange(prompt, text, kind, back, parts, joined=joined)
        session_id, run = self._speaker.session_id, self._speaker.run
        while (
            self._phase.move_from({Phase.YIELDING}, back) and end.reason == "cancelled" and prompt.task_id is not None
        ):
            if (reason := await self.take_messages(kind)) is not None:
                return TurnEnd(reason)
            self._lease.pay_for_a_turn()
            again = replace(prompt, prompt_id=new_prompt_id(), text=after_a_word(prompt.text))
            await self._lease.write("prompt.again", lambda t, p=again: t.prompts.queue(p, session_id, run))
            await self._begin(again.prompt_id)
            end = await self._exchange(again, again.text, kind, back)
        return end

    async def take_messages(self, kind: TurnKind = TASK_TURN) -> e.StopReason | None:
        """Send people's messages until none waits; return None, or the stop reason of a turn that was broken off."""
        back = self._phase.now

        def take(t: Transaction) -> MergedMessage | None:
            if t.sessions.current().status is not SessionStatus.RUNNING:
                self._lease.move(t, SessionStatus.RUNNING)
            return self.merge_waiting(t)

        while (message := await self._lease.write("message.now", take)) is not None:
            await self._begin(message.prompt.prompt_id, message.parts)
            end = await self._exchange(message.prompt, message.prompt.text, kind, back, message.parts)
            yielded = self._phase.move_from({Phase.YIELDING}, back)
            if end.reason == "max_tokens" or (end.reason == "cancelled" and not yielded):
                return end.reason
        return None

    def merge_waiting(self, t: Transaction) -> MergedMessage | None:
        """Take the waiting messages and return them as one: all, or only the first where each gets its own turn;
        None if none waits."""
        waiting = self.waiting(t) if self._services.rules.merge_messages else self.waiting(t)[:1]
        taken = [t.prompts.take(each, self._lease.session_id, self._lease.number) for each in waiting]
        return merge(taken) if taken else None

    def waiting(self, t: Transaction) -> list[PromptRow]:
        """Return the messages that the agent can take; those with pictures it cannot take are marked as not sent."""
        waiting: list[PromptRow] = []
        for message in t.prompts.waiting():
            if self._agent.capabilities.images or not t.prompts.queued(message.id).pictures:
                waiting.append(message)
                continue
            session_id, run = self._speaker.session_id, self._speaker.run
            t.prompts.move(message.id, PromptStatus.NOT_SENT, session_id, run, reason=NO_PICTURES)
        return waiting

    async def _begin(self, prompt_id: PromptId, parts: tuple[PromptId, ...] = (), *, stored: bool = False) -> None:
        """Mark the prompt as sent, with the messages whose text it contains, unless that is `stored`; raise
        RunStopped if a pause is forced."""
        if not self._phase.move_from(BETWEEN_TURNS, Phase.PROMPTING):
            assert self._live.forced is not None, "only a forced pause keeps prompts back"
            raise RunStopped(self._live.forced)
        if stored:
            return
        session_id, run = self._speaker.session_id, self._speaker.run

        def send(t: Transaction) -> None:
            # The agent knows the prompt by the id of the last message.
            for each in parts:
                t.prompts.move(each, PromptStatus.SENT, session_id, run, part_of=prompt_id)
            t.prompts.move(prompt_id, PromptStatus.SENT, session_id, run)

        await self._lease.write("prompt.sent", send)

    async def _exchange(
        self,
        prompt: e.PromptQueued,
        text: str,
        kind: TurnKind,
        back: Phase,
        parts: tuple[PromptId, ...] = (),
        *,
        joined: bool = False,
    ) -> TurnEnd:
        """Deliver a prompt, journal events until the agent stops, and close its requests; the phase is `back` from
        then on."""
        # Read before the turn: until the agent has its prompt, nothing of it can be cancelled.
        images = [] if joined else await self._images(prompt)
        turn = self._turn = _Turn(kind=kind, watch=Watch(sent_at=self._services.clock.now()))
        self._begun |= {prompt.prompt_id, *parts}
        self._phase.move(kind.phase)
        acknowledged = False
        if joined:
            acknowledged = await self._acknowledged(prompt.prompt_id)
        else:
            if self._capacity:
                self._capacity.prompted(text)
            await self._agent.prompt(prompt.prompt_id, text, images)
            crash_point("prompt.delivered")
        now = self._services.clock.now()
        # An agent that has reacted before is not expected to react again.
        turn.watch = Watch(sent_at=now, last_sign_at=now if acknowledged else None)
        try:
            async with alongside(self._watch_silence):
                reason = await self._until_stop((*parts, prompt.prompt_id), back, acknowledged=acknowledged)
        finally:
            turn.over.set()
            turn.kind = TASK_TURN
        if self.questions:
            await self.questions.refuse(await self.questions.close())
        return TurnEnd(reason, "".join(turn.text))

    async def _images(self, prompt: e.PromptQueued) -> list[Image]:
        """Read the prompt's pictures from the database; none for a prompt without pictures."""
        if not prompt.pictures:
            return []
        shown = await self._services.journal.prompts.pictures(prompt)
        return [Image(media_type=each.media_type, data=data) for each, data in zip(prompt.pictures, shown, strict=True)]

    async def _acknowledged(self, prompt_id: PromptId) -> bool:
        """Return True if the prompt is stored as acknowledged."""
        row = await self._services.journal.prompts.get(prompt_id)
        return row.status is PromptStatus.ACKNOWLEDGED

    async def _until_stop(self, prompts: tuple[PromptId, ...], back: Phase, *, acknowledged: bool) -> e.StopReason:
        """Record events until the turn ends and return its stop reason; raise if the turn fails or the agent exits.
        The first reaction acknowledges the prompts."""
        while True:
            event = await self._next_event()
            if not acknowledged and isinstance(event, _REACTIONS):
                acknowledged = True
                await self._acknowledge(prompts, understood=not isinstance(event, e.TurnFailed))
            if acknowledged:
                self._turn.watch = observe(self._turn.watch, self._services.clock.now())
            await self._journal(event)
            match event:
                case e.TurnEnded(reason=reason):
                    self._phase.move_from({self._turn.kind.phase}, back)
                    return reason
                case e.TurnFailed():
                    self._phase.move_from({self._turn.kind.phase}, back)
                    raise failed_turn(event)
                case e.AgentExited():
                    raise exited(event)
                case _:
                    pass

    async def _acknowledge(self, prompts: tuple[PromptId, ...], *, understood: bool) -> None:
        """Mark the prompts as acknowledged where they are not; `understood` is False after a failed turn."""
        session_id, run = self._speaker.session_id, self._speaker.run

        def acknowledge(t: Transaction) -> None:
            for each in prompts:
                if t.prompts.get(each).status is not PromptStatus.ACKNOWLEDGED:
                    t.prompts.move(each, PromptStatus.ACKNOWLEDGED, session_id, run, understood=understood)

        await self._lease.transact(acknowledge)
        crash_point("prompt.acknowledged")

    async def _watch_silence(self) -> None:
        """Warn about silence; raise NeverAnswered if the agent never reacted. An open request excuses it."""
        notice_after = timedelta(seconds=self._services.rules.stall_notice)
        while True:
            await self._services.clock.sleep(min(self._services.rules.stall_look, self._services.rules.stall_notice))
            now, turn = self._services.clock.now(), self._turn
            if self.questions:
                turn.watch = observe(turn.watch, now)
            awake = now - self._services.clock.away_since(turn.watch.since)
            turn.watch, notice = check(turn.watch, awake, notice_after)
            match notice:
                case NoReaction(reason=reason):
                    raise NeverAnswered(reason)
                case Stalled(reason=reason):
                    await self._recorder.record(e.Warned(code="stalled", message=reason))
                case None:
                    pass

    # ── events ──────────────────────────────────────────────────────────────────────────────────────

    async def _next_event(self) -> e.AgentEvent:
        """Wait for the agent's next event, or return an exit if its stream ended; a driver's stream loses none when
        the wait is cancelled."""
        async for event in self._events:
            return event
        return e.AgentExited(code=None, detail="The agent's connection ended.")

    async def _journal(self, event: e.AgentEvent) -> None:
        """Store one event of the agent, with an estimate of usage if due, and act on it: ask about permissions,
        measure and count usage."""
        if self._capacity and (estimate := self._capacity.estimate(event)) is not None:
            await self._journal(estimate)
        match event:
            case e.TextDelta(role=role, text=text):
                if role == "message":
                    self._turn.text.append(text)
                if role != "message" or self._turn.kind.keeps_messages:
                    await self._recorder.add_text(event)
            case e.PermissionRequested():
                await self.questions.ask(event, self._turn.kind.denial)
            case e.UsageReported():
                await self._recorder.hold(event)
                await self._measure(event)
                await self._lease.spend(self._speaker.session_id, event)
            case e.OutputRecorded():
                await self._recorder.mark(event)
            case e.TurnEnded() | e.TurnFailed() | e.AgentExited():
                await self._recorder.record(event)
            case _:
                await self._recorder.hold(event)

    async def _measure(self, report: e.UsageReported) -> None:
        """Apply the rungs of the capacity ladder that a usage report reaches."""
        for notice in self._capacity.measure(report) if self._capacity else ():
            match notice:
                case Refresh():
                    await refresh(self._lease, notice)
                case Reached(rung=Rung.SNAPSHOT_BEFORE_COMPACTION):
                    await save_before_compaction(self._lease, notice)
                case Reached():
                    await self._reach(notice)
                case WindowUnknown():
                    await self._recorder.record(e.Warned(code="window_unknown", message=WINDOW_UNKNOWN))
                case Compaction():
                    # The driver has reported it.
                    pass

    async def _reach(self, reached: Reached) -> None:
        """Record the rung that was reached, and request a pause if it is one of pausing or forcing."""
        await self._recorder.record(event_of(reached))
        if reached.rung in (Rung.PAUSE, Rung.FORCE):
            now = self._services.clock.now()
            wait = self._services.rules.pause_force_after if reached.rung is Rung.PAUSE else 0.0
            await self._lease.request_pause(Trigger.EXHAUSTION, reached.sentence, now + timedelta(seconds=wait))


def broken_off(live: RunHandle, reason: e.StopReason) -> End:
    """Return the failed end of a run whose turn did not end by itself; raise RunStopped for a full window or a
    forced pause."""
    if reason == "max_tokens":
        raise RunStopped(WINDOW_FULL)
    if reason == "cancelled" and live.forced is not None:
        raise RunStopped(live.forced)
    return End(WorkflowStatus.FAILED, f"the agent stopped without finishing its turn ({reason})", Trigger.CRASH)


_REACTIONS = (e.TextDelta, e.ToolCalled, e.TodoUpdated, e.PermissionRequested, e.Compacted, e.TurnEnded, e.TurnFailed)
"""Events that show that the agent has the prompt; a late report of the turn before does not."""
