"""The dialogue with an agent: one turn after the other, until the run ends."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import anyio

from segue.drivers import Agent
from segue.journal import Transaction
from segue.model import events as e
from segue.model.crash import crash_point
from segue.model.errors import AgentError
from segue.model.findings import ExamResult
from segue.model.ids import PromptId, TaskId, new_prompt_id
from segue.model.plan import PLANNING, Task
from segue.model.status import (
    Carrying,
    Phase,
    PromptStatus,
    Purpose,
    SessionStatus,
    Trigger,
    WaitingFor,
    Way,
    WorkflowStatus,
)
from segue.orchestrator.run.allowance import Allowance
from segue.orchestrator.run.capacity_meter import Capacity
from segue.orchestrator.run.forced_pauses import force_pauses
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.plan_proposals import Planner, adopt_without_planning, blocked_by
from segue.orchestrator.run.questions import Speaker
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.reports import ask_for_report
from segue.orchestrator.run.spending import limits_of
from segue.orchestrator.run.task_completion import Finishing
from segue.orchestrator.run.turns import Turns, broken_off, parts_of
from segue.orchestrator.runtime.concurrency import alongside, first_of
from segue.orchestrator.runtime.contexts import Present, compile_workflow
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.settling.run_ends import WINDOW_FULL, End, RunStopped
from segue.protocol.budgets import LimitReached
from segue.protocol.steps import (
    AdoptPlan,
    AskForPlan,
    AwaitApproval,
    AwaitMessage,
    Complete,
    HandOver,
    Pause,
    Situation,
    Step,
    TakeMessage,
    Work,
    next_step,
)
from segue.resume.advice import advised
from segue.resume.handover import with_context
from segue.resume.history import KINDS as HISTORY_KINDS
from segue.resume.history import history, with_history
from segue.resume.planning import said_of_plans
from segue.resume.prompts import Occasion as PromptOccasion
from segue.resume.prompts import introduction as issue_introduction
from segue.resume.prompts import task_prompt
from segue.resume.remarks import remarks
from segue.state.fold import WorkflowState

log = logging.getLogger("segue")

MOST_PARTS = 1000
"""Messages that are looked through for those that went out together."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The next prompt, as the agent gets it; without a task it is a person's message."""

    task: Task | None
    prompt: e.PromptQueued
    text: str
    parts: tuple[PromptId, ...] = ()
    """The messages that are sent with the prompt."""
    joined: bool = False
    """The agent has it from an earlier run."""


@dataclass(frozen=True, slots=True)
class _Introduction:
    """Text that the agent has to read before the prompt, and how the two are joined."""

    way: Way
    text: str
    join: Callable[[str, str], str]
    exam: ExamResult | None = None


class Dialogue:
    """The turns of a run: people's messages come first, then the plan."""

    def __init__(
        self,
        lease: Lease,
        agent: Agent,
        recorder: Recorder,
        occasion: PromptOccasion,
        capacity: Capacity,
        environment: Mapping[str, str],
    ) -> None:
        self._lease = lease
        self._services = lease.services
        self._live = lease.live
        self._recorder = recorder
        speaker = Speaker(session_id=lease.session_id, run=lease.number, permissions=lease.workflow.permissions)
        self._turns = Turns(lease, agent, recorder, speaker, lease.live.phase, capacity)
        self._finishing = Finishing(lease, self._turns, recorder, environment)
        self._planner = Planner(lease, self._turns, recorder)
        self._plans = lease.configuration.plans
        self._occasion: PromptOccasion | None = occasion
        """Introduction for the first prompt; None after the first task."""
        self._status_before_talk = WorkflowStatus.PAUSED
        self._allowance = Allowance(lease)
        self._capacity = capacity

    async def hold(self, joined: PromptId | None = None) -> End:
        """Exchange turns until the run ends, and return its end; a turn that an earlier run began is joined first.
        Raise RunStopped if a pause was forced already."""
        turns, phase = self._turns, self._live.phase
        if not phase.move_from({Phase.OPENING}, Phase.IDLE):
            # A pause was forced while a second agent was asked for advice.
            assert self._live.forced is not None, "only a forced pause comes before the dialogue"
            raise RunStopped(self._live.forced)
        beside = (
            turns.flush_regularly,
            turns.questions.deliver_replies,
            turns.yield_to_messages,
            lambda: force_pauses(self._lease, self._recorder, turns),
            self._allowance.time_out,
        )
        async with alongside(*beside):
            try:
                end = await self._converse(await self._join(joined) if joined else None)
                if (sentence := self._allowance.passed_over(end)) is not None:
                    await self._recorder.record(e.Warned(code="limit_passed", message=sentence))
                return end
            finally:
                phase.move(Phase.ENDING)
                # The agent has streamed this text, so it is stored even when the run is torn away.
                await self._recorder.flush()

    async def _converse(self, joined: _Prompt | None) -> End:
        """Do one step after the other, a joined turn first, until one ends the run; return that end."""
        reported_on: TaskId | None = None
        """The last task that was done here and that no report was asked about."""
        while True:
            following, joined = joined or await self._next(), None
            if following is None:
                continue
            if isinstance(following, End):
                if not await self._reported(following, reported_on):
                    return following
                # The pause may have been withdrawn during the report.
                reported_on = None
                continue
            task, prompt = following.task, following.prompt
            if prompt.task_id == PLANNING:
                end = await self._planner.make(prompt, following.text)
                self._occasion = None
            else:
                end = await self._take(following)
                if task is not None and end is None:
                    self._allowance.has_worked = True
                    self._occasion, reported_on = None, task.id
            if end is not None:
                return end

    async def _take(self, following: _Prompt) -> End | None:
        """Take one turn and finish its task; return the end of the run, or None if the run goes on. A message has no
        task to finish."""
        stored = following.task is not None
        turn = await self._turns.take(
            following.prompt, following.text, stored=stored, parts=following.parts, joined=following.joined
        )
        if following.task is None:
            await self._answered(turn.reason)
            return None
        if turn.reason != "end_turn":
            return broken_off(self._live, turn.reason)
        return await self._finishing.finish(following.task)

    async def _join(self, prompt_id: PromptId) -> _Prompt:
        """Take over the prompt that the agent is working on since an earlier run: start its task, and journal that
        it was joined."""
        plan = (await self._services.journal.state(self._lease.workflow_id)).plan
        sent = await self._services.journal.last_records(self._lease.workflow_id, ["prompt.sent"], limit=MOST_PARTS)
        session_id, run = self._lease.session_id, self._lease.number

        def join(t: Transaction) -> _Prompt:
            prompt = t.prompts.queued(prompt_id)
            task = next((each for each in plan.tasks if each.id == prompt.task_id), None) if plan else None
            if task is not None and not prompt.report:
                t.tasks.start(task.id, self._lease.attempt, session_id, run)
            self._lease.move(t, SessionStatus.RUNNING)
            t.append(e.TurnJoined(prompt_id=prompt_id), session_id=session_id, run=run)
            return _Prompt(None if prompt.report else task, prompt, prompt.text, parts_of(prompt_id, sent), joined=True)

        return await self._lease.write("turn.joined", join)

    async def _reported(self, end: End, task: TaskId | None) -> bool:
        """Ask the agent, before a pause, for its decisions and errors; return False if none is wanted or affordable,
        or the agent failed to answer."""
        wanted = self._services.rules.extraction.by == "agent" and self._plans
        if end.status is not WorkflowStatus.PAUSED or task is None or not wanted:
            return False
        if self._lease.meter.empty(self._services.clock.now()) is not None:
            return False
        pause = Stop(trigger=end.trigger, reason=end.reason)
        return await ask_for_report(self._lease, self._turns, self._recorder, task, pause)

    # ── the next step ───────────────────────────────────────────────────────────────────────────────

    async def _next(self) -> _Prompt | End | None:
        """Choose the next step and write its beginning; return its prompt or the run's end, or None if the choice
        must be made again."""
        state = await self._services.journal.state(self._lease.workflow_id)
        carrying = Carrying.DONE
        if self._occasion is not None:
            carrying = (await self._services.journal.sessions.get(self._lease.session_id)).carrying
        introduction = await self._what_came_before(state) if carrying is Carrying.NEEDED else None
        if (sentence := self._allowance.cannot_be_kept(state)) is not None:
            await self._recorder.record(e.Warned(code="limit_unmeasured", message=sentence))

        def choose(t: Transaction) -> _Prompt | End | AwaitMessage:
            now, purpose = t.catch_up(state), self._lease.purpose(t)
            return self._prepare(t, next_step(self._situation(t, now, purpose)), now, introduction, carrying)

        # A pause that is requested in this moment commits either before the choice or after it.
        chosen = await self._lease.write("turn.start", choose)
        return await self._await_message() if isinstance(chosen, AwaitMessage) else chosen

    def _situation(self, t: Transaction, now: WorkflowState, purpose: Purpose) -> Situation:
        """Read what the next step depends on, inside the transaction; take over changed limits, and mark messages
        whose pictures the agent cannot take."""
        workflow, full = t.workflow, self._capacity.hand_over
        self._allowance.allow(limits_of(workflow))
        trigger, reason = workflow.pause_trigger, workflow.pause_reason or ""
        pause = None if trigger is None else LimitReached(trigger=trigger, reason=reason)
        return Situation(
            purpose=purpose,
            message_waits=bool(t.prompts.waiting() if pause else self._turns.waiting(t)),
            pause=pause,
            task=None if now.planning else now.next_task,
            planning=now.planning,
            agent_plans=self._plans,
            used_up=self._allowance.used_up(now),
            full=full.sentence if full else None,
        )

    def _prepare(
        self, t: Transaction, step: Step, now: WorkflowState, introduction: _Introduction | None, carrying: Carrying
    ) -> _Prompt | End | AwaitMessage:
        """Write the beginning of the step; return its prompt, the end of the run, or the step itself if a message is
        to be awaited."""
        match step:
            case TakeMessage():
                occasion = self._occasion
                if carrying is Carrying.NOTHING and occasion and not occasion.knows_issue and now.issue:
                    # A conversation that begins with a message is introduced to the issue first.
                    text = issue_introduction(now.issue, occasion)
                    introduction = _Introduction(occasion.way, text, "{}\n\n{}".format)
                return self._message(t, introduction)
            case Complete():
                # A message from here on finds the run leaving, and starts the next one.
                t.runs.set_purpose(self._lease.session_id, self._lease.number, Purpose.LEAVING)
                return End(WorkflowStatus.COMPLETED)
            case Pause(why=why):
                return End(WorkflowStatus.PAUSED, why.reason, why.trigger)
            case AwaitMessage():
                return step
            case AwaitApproval(plan=plan):
                return blocked_by(plan, now)
            case HandOver(reason=reason):
                return End(WorkflowStatus.IN_PROGRESS, reason, Trigger.EXHAUSTION)
            case AskForPlan():
                prompt = self._planner.ask(t, now, self._occasion)
                return _Prompt(None, prompt, self._carry(t, prompt, introduction))
            case AdoptPlan():
                adopted = adopt_without_planning(t, now, self._lease.agent)
                assert now.planning is not None and adopted.next_task is not None, "a plan has something to do"
                return self._task(t, adopted.next_task, adopted, said_of_plans(now.planning), introduction)
            case Work(task=task):
                return self._task(t, task, now, (), introduction)
            case _:
                assert_never(step)

    def _task(
        self,
        t: Transaction,
        task: Task,
        now: WorkflowState,
        about_plans: Sequence[str],
        introduction: _Introduction | None,
    ) -> _Prompt:
        """Start the task, store its prompt as sent, and return it with the text that the agent gets."""
        assert now.issue is not None and now.plan is not None, "a task belongs to an issue's plan"
        notes = (*about_plans, *advised(now.advice, task.id), *remarks(now, task))
        text = task_prompt(now.issue, now.plan, task, self._occasion, notes)
        prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=text, task_id=task.id)
        session_id, number = self._lease.session_id, self._lease.number
        t.tasks.start(task.id, self._lease.attempt, session_id, number)
        t.prompts.queue(prompt, session_id, number)
        self._lease.move(t, SessionStatus.RUNNING)
        sent = self._carry(t, prompt, introduction)
        # The prompt is sent at once, so one commit serves both.
        t.prompts.move(prompt.prompt_id, PromptStatus.SENT, session_id, number)
        return _Prompt(task, prompt, sent)

    def _message(self, t: Transaction, introduction: _Introduction | None) -> _Prompt:
        """Take the waiting messages as one prompt and put workflow and session to work; remember the workflow's
        status before."""
        message = self._turns.merge_waiting(t)
        assert message is not None, "a message waits"
        if t.workflow.status is not WorkflowStatus.IN_PROGRESS:
            self._status_before_talk = t.workflow.status
            t.move_workflow(WorkflowStatus.IN_PROGRESS, reason="somebody talks to the agent")
        self._lease.move(t, SessionStatus.RUNNING)
        return _Prompt(None, message.prompt, self._carry(t, message.prompt, introduction), message.parts)

    # ── introductions to earlier work ────────────────────────────────────────────────────────────────

    async def _what_came_before(self, state: WorkflowState) -> _Introduction:
        """Compile the context of a new conversation; quote the history if that is the planned way or compiling fails
        (with a warning)."""
        if state.sessions[self._lease.session_id].context_way is Way.CONTEXT:
            try:
                return await self._context(state.sessions[self._lease.session_id].own_context)
            except Exception:  # a context that fails to compile must not stop the work
                log.exception("no context could be compiled for %s", self._lease.workflow_id)
                message = "No context could be compiled; the server's log says why. The history is told instead."
                await self._recorder.record(e.Warned(code="context_failed", message=message))
                if self._occasion is not None:
                    self._occasion = replace(self._occasion, way=Way.HISTORY)
        records = await self._services.facts.last_records(self._lease.workflow_id, HISTORY_KINDS)
        return _Introduction(Way.HISTORY, history(records, self._services.rules.history), with_history)

    async def _context(self, own: str) -> _Introduction:
        """Compile the context for the successor, or take `own`, which a person wrote; return it with the result of
        its exam."""
        git, divergence = (self._occasion.git, self._occasion.divergence) if self._occasion else (None, ())
        present = Present(git=git, at=self._services.clock.now(), divergence=divergence)
        budget = self._services.rules.context_budget
        compiled = await compile_workflow(self._services, self._lease.workflow_id, present, budget, own)
        return _Introduction(Way.CONTEXT, compiled.text, with_context, compiled.exam)

    def _carry(self, t: Transaction, prompt: e.PromptQueued, introduction: _Introduction | None) -> str:
        """Return the prompt's text as the agent gets it, and journal the introduction that was added; without one,
        return the text as it is."""
        if introduction is None or not introduction.text:
            return prompt.text
        carried = e.ContextCarried(
            prompt_id=prompt.prompt_id, way=introduction.way, text=introduction.text, exam=introduction.exam
        )
        t.prompts.carry(carried, self._lease.session_id, self._lease.number)
        return introduction.join(introduction.text, prompt.text)

    # ── between messages ────────────────────────────────────────────────────────────────────────────

    async def _await_message(self) -> End | None:
        """Keep the agent ready for a while; return the end of the run if no message comes, None if one does. Raise
        if the agent exits."""
        woken = await first_of(self._spoken, self._linger, self._turns.until_gone)
        if isinstance(woken, AgentError):
            raise woken
        if woken == "message":
            return None
        crash_point("talk.woken")
        return await self._lease.write("talk.over", self._over)

    async def _spoken(self) -> Literal["message"]:
        """Wait until people have sent a message, reset that signal, and return "message"."""
        await self._live.spoken.wait()
        self._live.spoken = anyio.Event()
        return "message"

    async def _linger(self) -> Literal["silence"]:
        """Sleep for the time that an idle agent is kept, and return "silence"."""
        await self._services.clock.sleep(self._services.rules.talk_linger)
        return "silence"

    def _over(self, t: Transaction) -> End | None:
        """End the talk and return the run's end; None if a message or work arrived meanwhile. Later messages start
        the next run."""
        if t.prompts.waiting() or self._lease.purpose(t) is Purpose.WORK:
            return None
        t.runs.set_purpose(self._lease.session_id, self._lease.number, Purpose.LEAVING)
        return End(WorkflowStatus.PAUSED, "nobody said anything more", Trigger.PAUSE, talked=True)

    async def _answered(self, reason: e.StopReason) -> None:
        """Let the session wait for a prompt after a message, and move a chat's workflow back to its status before.
        Raise RunStopped if the window is full."""
        if reason == "max_tokens":
            raise RunStopped(WINDOW_FULL)

        def answered(t: Transaction) -> None:
            self._lease.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)
            if self._lease.purpose(t) is Purpose.TALK and t.workflow.pause_trigger is None:
                reason = "the agent was only talked to"
                t.move_workflow(self._status_before_talk, reason=reason, trigger=Trigger.PAUSE)

        await self._lease.write("message.answered", answered)
