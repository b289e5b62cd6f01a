"""The talk with an agent: one turn after the other, until there is nothing more to say."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import anyio

from segue.drivers import Agent
from segue.journal import Transaction
from segue.journal.reading import queued_prompt
from segue.journal.rows import session_by_id
from segue.model import events as e
from segue.model.crash import crash_point
from segue.model.errors import AgentError
from segue.model.findings import ExamResult
from segue.model.ids import PromptId, TaskId, new_prompt_id
from segue.model.plan import PLANNING, Issue, Task
from segue.model.status import Carrying, PromptStatus, Purpose, SessionStatus, Trigger, WaitingFor, Way, WorkflowStatus
from segue.orchestrator.run.capacity import Capacity
from segue.orchestrator.run.finishing import Finishing
from segue.orchestrator.run.limits import Allowance
from segue.orchestrator.run.messages import Said, parts_of
from segue.orchestrator.run.pausing import Pausing
from segue.orchestrator.run.planning import Planner, adopt_without_planning, blocked_by
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.reporting import Reports
from segue.orchestrator.run.spending import limits_of
from segue.orchestrator.run.tenure import Tenure
from segue.orchestrator.run.turns import Speaker, Turns
from segue.orchestrator.runtime.alongside import alongside
from segue.orchestrator.runtime.contexts import Present, compile_workflow
from segue.orchestrator.runtime.house import Stop
from segue.orchestrator.settling.ends import WINDOW_FULL, End, Torn, exited
from segue.resume.advice import advised
from segue.resume.handover import with_context
from segue.resume.history import KINDS as HISTORY_KINDS
from segue.resume.history import history, with_history
from segue.resume.planning import said_of_plans
from segue.resume.prompts import Occasion as PromptOccasion
from segue.resume.prompts import introduction, task_prompt
from segue.resume.remarks import remarks
from segue.state.fold import WorkflowState

log = logging.getLogger("segue")

MOST_PARTS = 1000
"""Messages that are looked through for those that went out together."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The next prompt, as the agent gets it, and the task it asks for; without a task somebody just talks."""

    task: Task | None
    prompt: e.PromptQueued
    text: str
    parts: tuple[PromptId, ...] = ()
    """The messages that go out with the prompt."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What an agent has to know before the prompt's own words, and how the two are put together."""

    way: Way
    text: str
    before: Callable[[str, str], str]
    exam: ExamResult | None = None


class _Idle:
    """Nobody says anything, and the plan is not to be worked on."""


class Dialogue:
    """What people say comes first, then the plan, if it is to be worked on."""

    def __init__(
        self,
        tenure: Tenure,
        agent: Agent,
        recorder: Recorder,
        occasion: PromptOccasion,
        capacity: Capacity,
        environment: Mapping[str, str],
    ) -> None:
        self._tenure = tenure
        self._house = tenure.house
        self._live = tenure.live
        self._recorder = recorder
        speaker = Speaker(session_id=tenure.session_id, run=tenure.number, permissions=tenure.workflow.permissions)
        self._turns = Turns(tenure, agent, recorder, speaker, capacity)
        self._reports = Reports(tenure, self._turns, recorder)
        self._finishing = Finishing(tenure, self._turns, recorder, environment, self._broken_off)
        self._pausing = Pausing(tenure, recorder, self._turns, self._at_work)
        self._planner = Planner(tenure, self._turns, recorder, self._broken_off)
        self._plans = tenure.house.agents[tenure.agent].plans
        self._occasion: PromptOccasion | None = occasion
        self._talking_from = WorkflowStatus.PAUSED
        """Where the workflow stood before somebody said something."""
        self._allowance = Allowance(tenure)
        self._capacity = capacity
        self._tired = False
        """Nobody spoke for so long that the agent need not be kept."""
        self._gone: AgentError | None = None
        """Why the agent is not there any more, if it went away between two turns."""
        self._done: TaskId | None = None
        """The last task that was done here, and that no report was asked about."""

    async def hold(self, joined: PromptId | None = None) -> End:
        """Talk to the end, and see to what happens beside the turns meanwhile; first the turn that is joined, if one is
        under way."""
        turns = self._turns
        beside = (turns.listen, turns.flush_regularly, turns.deliver_answers, turns.give_way, self._pausing.force)
        async with alongside(*beside, self._allowance.time_out):
            try:
                end = await self._converse(await self._join(joined) if joined else None)
                if (sentence := self._allowance.passed_over(end)) is not None:
                    await self._recorder.record(e.Warned(code="limit_passed", message=sentence))
                return end
            finally:
                # Torn away in the middle of a sentence, what was heard of it is still true.
                await self._recorder.flush()

    async def _converse(self, joined: "_Work | None") -> End:
        """One turn after the other: what people say comes first, then the plan, if it is to be worked on."""
        while True:
            following = joined or await self._tenure.write("turn.start", await self._choice())
            joined = None
            if isinstance(following, _Idle):
                following = await self._until_spoken_to()
            if isinstance(following, End):
                if await self._reported(following):
                    # Meanwhile the pause may have been withdrawn.
                    continue
                return following
            if following is None:
                continue
            if following.prompt.task_id == PLANNING:
                if (end := await self._planner.make(following.prompt, following.text)) is not None:
                    return end
                self._occasion = None
                continue
            sent = following.task is not None
            reason = await self._turns.take(following.prompt, following.text, sent=sent, parts=following.parts)
            if following.task is None:
                await self._answered(reason)
            elif reason != "end_turn":
                return self._broken_off(reason)
            elif (end := await self._finishing.finish(following.task)) is not None:
                return end
            else:
                self._allowance.task_done()
                self._occasion = None
                self._done = following.task.id

    async def _join(self, prompt_id: PromptId) -> "_Work":
        """The agent is in the middle of it; what it does is heard again from here on."""
        plan = (await self._house.journal.state(self._tenure.workflow_id)).plan
        sent = await self._house.journal.last_records(self._tenure.workflow_id, ["prompt.sent"], limit=MOST_PARTS)
        session_id, run = self._tenure.session_id, self._tenure.number

        def join(t: Transaction) -> _Work:
            prompt = queued_prompt(t.connection, prompt_id)
            task = next((each for each in plan.tasks if each.id == prompt.task_id), None) if plan else None
            if task is not None and not prompt.report:
                t.start_task(task.id, self._tenure.attempt, session_id, run)
            self._tenure.move(t, SessionStatus.RUNNING)
            t.append(e.TurnJoined(prompt_id=prompt_id), session_id=session_id, run=run)
            return _Work(None if prompt.report else task, prompt, prompt.text, parts_of(prompt_id, sent))

        self._turns.joined = prompt_id
        return await self._tenure.write("turn.joined", join)

    def _at_work(self) -> bool:
        """Whether there is something that a pause would interrupt."""
        return self._finishing.under_way or (self._turns.under_way and not self._turns.aside)

    async def _reported(self, end: End) -> bool:
        """Whether the agent was asked, before a pause, what it decided and what went wrong."""
        if end.status is not WorkflowStatus.PAUSED or self._house.rules.extraction.by != "agent" or self._done is None:
            return False
        if not self._plans:
            return False
        if self._tenure.purse.empty(self._house.clock.now()) is not None:
            return False
        task, self._done = self._done, None
        return await self._reports.ask(task, Stop(trigger=end.trigger, reason=end.reason))

    async def _choice(self) -> Callable[[Transaction], "_Work | End | _Idle"]:
        """Chooses what comes next, to be done under the lock, where a pause cannot slip in between."""
        state = await self._house.journal.state(self._tenure.workflow_id)
        issue = state.issue
        assert issue is not None, "every journal begins with its workflow's issue"
        carrying = await self._carrying()
        told = await self._what_came_before(state) if carrying is Carrying.NEEDED else None
        if (sentence := self._allowance.cannot_be_kept(state)) is not None:
            await self._recorder.record(e.Warned(code="limit_unmeasured", message=sentence))

        def choose(t: Transaction) -> _Work | End | _Idle:
            workflow, run, now = t.workflow, self._tenure.run(t), t.catch_up(state)
            plan, planning = now.plan, now.planning
            self._allowance.allow(limits_of(workflow))
            if workflow.pause_trigger is None and (said := self._turns.take_said(t)) is not None:
                return self._message(t, said, told or self._introduction(issue, carrying))
            task = now.next_task if not planning else None
            if run.purpose is Purpose.WORK and not (task or planning or t.messages):
                # Whoever speaks after this is told how it ended.
                t.repurpose(self._tenure.session_id, self._tenure.number, Purpose.LEAVING)
                return End(WorkflowStatus.COMPLETED)
            asks = planning is not None and planning.proposed is not None
            if workflow.pause_trigger is not None and not (asks and workflow.pause_trigger is Trigger.EXHAUSTION):
                return End(WorkflowStatus.PAUSED, workflow.pause_reason or "", workflow.pause_trigger)
            if run.purpose is Purpose.TALK or not (task or planning):
                return _Idle()
            if planning and planning.proposed:
                return blocked_by(planning.proposed, now)
            if (used_up := self._allowance.used_up(now)) is not None:
                return End(WorkflowStatus.PAUSED, used_up.reason, used_up.trigger)
            if (full := self._capacity.hand_over) is not None:
                return End(WorkflowStatus.IN_PROGRESS, full.sentence, Trigger.EXHAUSTION)
            if planning and self._plans:
                prompt = self._planner.ask(t, now, self._occasion)
                return _Work(None, prompt, self._carry(t, prompt, told))
            if planning:
                now = adopt_without_planning(t, now, self._tenure.agent)
                plan, task = now.plan, now.next_task
            assert plan is not None and task is not None, "there is something to do"
            before = said_of_plans(planning) if planning else ()
            remarked = (*before, *advised(now.advice, task.id), *remarks(now, task))
            text = task_prompt(issue, plan, task, self._occasion, remarked)
            prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=text, task_id=task.id)
            session_id, number = self._tenure.session_id, self._tenure.number
            t.start_task(task.id, self._tenure.attempt, session_id, number)
            t.queue_prompt(prompt, session_id, number)
            self._tenure.move(t, SessionStatus.RUNNING)
            words = self._carry(t, prompt, told)
            # It goes out at once, so one commit will do for both.
            t.move_prompt(prompt.prompt_id, PromptStatus.SENT, session_id, number)
            return _Work(task, prompt, words)

        return choose

    async def _carrying(self) -> Carrying:
        """What the agent has still to be told of what came before; nothing any more when it has done a task."""
        if self._occasion is None:
            return Carrying.DONE
        return (await self._house.journal.read(lambda c: session_by_id(c, self._tenure.session_id))).carrying

    def _message(self, t: Transaction, said: Said, told: _Told | None) -> _Work:
        if t.workflow.status is not WorkflowStatus.IN_PROGRESS:
            self._talking_from = t.workflow.status
            t.move_workflow(WorkflowStatus.IN_PROGRESS, reason="somebody talks to the agent")
        self._tenure.move(t, SessionStatus.RUNNING)
        return _Work(None, said.prompt, self._carry(t, said.prompt, told), said.parts)

    async def _what_came_before(self, state: WorkflowState) -> _Told:
        """As the session was to be told it: compiled, or word for word."""
        if state.sessions[self._tenure.session_id].told_by is Way.CONTEXT:
            try:
                return await self._context(state.sessions[self._tenure.session_id].own_context)
            except Exception:  # nobody must be kept from going on by a sentence that could not be understood
                log.exception("no context could be compiled for %s", self._tenure.workflow_id)
                message = "No context could be compiled; the server's log says why. The history is told instead."
                await self._recorder.record(e.Warned(code="context_failed", message=message))
                if self._occasion is not None:
                    self._occasion = replace(self._occasion, way=Way.HISTORY)
        records = await self._house.hearings.last_records(self._tenure.workflow_id, HISTORY_KINDS)
        return _Told(Way.HISTORY, history(records, self._house.rules.history), with_history)

    async def _context(self, own: str) -> _Told:
        """Compiled, unless a person wrote one; either is examined."""
        git, divergence = (self._occasion.git, self._occasion.divergence) if self._occasion else (None, ())
        present = Present(git=git, at=self._house.clock.now(), divergence=divergence)
        budget = self._house.rules.context_budget
        compiled = await compile_workflow(self._house, self._tenure.workflow_id, present, budget, own)
        return _Told(Way.CONTEXT, compiled.text, with_context, compiled.exam)

    def _introduction(self, issue: Issue, carrying: Carrying) -> _Told | None:
        """What a conversation has to know that begins with a talk."""
        occasion = self._occasion
        if carrying is not Carrying.NOTHING or occasion is None or occasion.knows_issue:
            return None
        return _Told(occasion.way, introduction(issue, occasion), "{}\n\n{}".format)

    def _carry(self, t: Transaction, prompt: e.PromptQueued, told: _Told | None) -> str:
        """The prompt's words as the agent gets them."""
        if told is None or not told.text:
            return prompt.text
        carried = e.ContextCarried(prompt_id=prompt.prompt_id, way=told.way, text=told.text, exam=told.exam)
        t.carry(carried, self._tenure.session_id, self._tenure.number)
        return told.before(told.text, prompt.text)

    async def _until_spoken_to(self) -> End | None:
        """Keep the agent for a while; the next word then finds it awake."""
        self._tired = False
        async with alongside(self._tire_of_waiting, self._overhear):
            await self._live.spoken.wait()
        if self._gone is not None:
            raise self._gone
        self._live.spoken = anyio.Event()
        if not self._tired:
            return None
        crash_point("talk.woken")
        return await self._tenure.step("talk.over", self._over)

    async def _overhear(self) -> None:
        """What the agent does while nobody speaks; one that goes away then is not spoken to any more."""
        while self._gone is None:
            event = await self._turns.overhear()
            if isinstance(event, e.AgentExited):
                self._gone = exited(event)
        self._live.spoken.set()

    async def _tire_of_waiting(self) -> None:
        await self._house.clock.sleep(self._house.rules.talk_linger)
        self._tired = True
        self._live.spoken.set()

    def _over(self, t: Transaction) -> End | None:
        """Whether the talk is over, decided under the lock: whoever speaks after this starts the next run."""
        if t.messages or self._tenure.run(t).purpose is Purpose.WORK:
            return None
        t.repurpose(self._tenure.session_id, self._tenure.number, Purpose.LEAVING)
        return End(WorkflowStatus.PAUSED, "nobody said anything more", Trigger.PAUSE, talked=True)

    async def _answered(self, reason: e.StopReason) -> None:
        """Somebody was answered. A workflow that only stood aside for that goes back to where it was."""
        if reason == "max_tokens":
            raise Torn(WINDOW_FULL)

        def answered(t: Transaction) -> None:
            self._tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)
            if self._tenure.run(t).purpose is Purpose.TALK and t.workflow.pause_trigger is None:
                t.move_workflow(self._talking_from, reason="the agent was only talked to", trigger=Trigger.PAUSE)

        await self._tenure.write("message.answered", answered)

    def _broken_off(self, reason: e.StopReason) -> End:
        """A turn that did not end by itself: a full window and a pause interrupt the task, the rest fails it."""
        if reason == "max_tokens":
            raise Torn(WINDOW_FULL)
        if reason == "cancelled" and self._pausing.forced is not None:
            raise Torn(self._pausing.forced)
        return End(WorkflowStatus.FAILED, f"the agent stopped without finishing its turn ({reason})", Trigger.CRASH)
