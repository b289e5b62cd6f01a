"""The talk with an agent: one turn after the other, until there is nothing more to say."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import anyio

from segue.drivers import Agent
from segue.journal import Transaction
from segue.journal.rows import PromptRow, session_by_id
from segue.model import events as e
from segue.model.checkpoint import CheckpointType
from segue.model.crash import crash_point
from segue.model.errors import AgentError, NothingToAnswer
from segue.model.findings import ExamResult
from segue.model.ids import RequestId, TaskId, new_prompt_id
from segue.model.plan import Issue, Task, TaskStatus
from segue.model.status import Carrying, PromptStatus, Purpose, SessionStatus, Trigger, WaitingFor, Way, WorkflowStatus
from segue.orchestrator.alongside import alongside
from segue.orchestrator.capacity import Capacity, event_of
from segue.orchestrator.contexts import Present, compile_workflow
from segue.orchestrator.ends import DEAF, FORCED, WINDOW_FULL, End, Torn, exited, failed_turn
from segue.orchestrator.house import Stop
from segue.orchestrator.limits import Allowance
from segue.orchestrator.permissions import by_policy, option_for, policy
from segue.orchestrator.recorder import Recorder
from segue.orchestrator.settling import close_questions, write_checkpoint
from segue.orchestrator.tenure import Tenure
from segue.protocol.capacity import Rung
from segue.resume.handover import with_context
from segue.resume.history import KINDS as HISTORY_KINDS
from segue.resume.history import history, with_history
from segue.resume.prompts import Occasion as PromptOccasion
from segue.resume.prompts import introduction, task_prompt
from segue.snapshot.extraction import QUESTION, Unreadable, read_answer, repair
from segue.snapshot.gather import Occasion
from segue.state.fold import WorkflowState

log = logging.getLogger("segue")

FLUSH_EVERY = 1.0
"""Seconds that streamed text waits, at most, before it is journalled."""
CANCEL_GRACE = 10.0
"""Seconds an agent gets to end a turn that was cancelled."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The next prompt, as the agent gets it, and the task it asks for; without a task somebody just talks."""

    task: Task | None
    prompt: e.PromptQueued
    text: str


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
        self, tenure: Tenure, agent: Agent, recorder: Recorder, occasion: PromptOccasion, capacity: Capacity
    ) -> None:
        self._tenure = tenure
        self._house = tenure.house
        self._live = tenure.live
        self._agent = agent
        self._recorder = recorder
        self._occasion: PromptOccasion | None = occasion
        self._questions: dict[RequestId, e.PermissionRequested] = {}
        self._talking_from = WorkflowStatus.PAUSED
        """Where the workflow stood before somebody said something."""
        self._in_turn = False
        self._allowance = Allowance(tenure)
        self._capacity = capacity
        self._forced: Stop | None = None
        """A pause was forced, so a turn that ends cancelled is no failure."""
        self._heard: asyncio.Queue[e.AgentEvent] = asyncio.Queue()
        self._tired = False
        """Nobody spoke for so long that the agent need not be kept."""
        self._gone: AgentError | None = None
        """Why the agent is not there any more, if it went away between two turns."""
        self._done: TaskId | None = None
        """The last task that was done here, and that no report was asked about."""
        self._report: list[str] | None = None
        """What the agent says while it is asked for a report."""

    async def hold(self) -> End:
        """Talk to the end, and see to what happens beside the turns meanwhile."""
        beside = (self._listen, self._flush_regularly, self._deliver_answers, self._force_pause)
        async with alongside(*beside, self._allowance.time_out):
            try:
                return await self._converse()
            finally:
                # Torn away in the middle of a sentence, what was heard of it is still true.
                await self._recorder.flush()

    async def _listen(self) -> None:
        """All the time: an agent may speak between two turns, and may go away there."""
        async for event in self._agent.events():
            self._heard.put_nowait(event)
        self._heard.put_nowait(e.AgentExited(code=None, detail="The agent's connection ended."))

    async def _converse(self) -> End:
        """One turn after the other: what people say comes first, then the plan, if it is to be worked on."""
        while True:
            following = await self._tenure.write("turn.start", await self._choice())
            if isinstance(following, _Idle):
                following = await self._until_spoken_to()
            if isinstance(following, End):
                if await self._reports(following):
                    # Meanwhile the pause may have been withdrawn.
                    continue
                return following
            if following is None:
                continue
            reason = await self._turn(following)
            if following.task is None:
                await self._answered(reason)
            elif reason != "end_turn":
                return self._broken_off(reason)
            else:
                await self._complete(following.task)
                self._allowance.task_done()
                self._occasion = None
                self._done = following.task.id

    async def _choice(self) -> Callable[[Transaction], "_Work | End | _Idle"]:
        """Chooses what comes next, to be done under the lock, where a pause cannot slip in between."""
        state = await self._house.journal.state(self._tenure.workflow_id)
        issue, plan = state.issue, state.plan
        assert issue is not None and plan is not None, "every journal begins with its workflow's plan"
        session = await self._house.journal.read(lambda c: session_by_id(c, self._tenure.session_id))
        told = await self._what_came_before(state) if session.carrying is Carrying.NEEDED else None
        used_up = self._allowance.used_up(state)
        if (sentence := self._allowance.cannot_be_kept(state)) is not None:
            await self._recorder.record(e.Warned(code="limit_unmeasured", message=sentence))

        def choose(t: Transaction) -> _Work | End | _Idle:
            workflow, run = t.workflow, self._tenure.run(t)
            if workflow.pause_trigger is None and t.messages:
                return self._message(t, t.messages[0], told or self._introduction(issue, session.carrying))
            task = plan.next_ready(_completed(t))
            if run.purpose is Purpose.WORK and task is None and not t.messages:
                return End(WorkflowStatus.COMPLETED)
            if workflow.pause_trigger is not None:
                return End(WorkflowStatus.PAUSED, workflow.pause_reason or "", workflow.pause_trigger)
            if run.purpose is Purpose.TALK or task is None:
                return _Idle()
            if used_up is not None:
                return End(WorkflowStatus.PAUSED, used_up.reason, used_up.trigger)
            if (full := self._capacity.hand_over) is not None:
                return End(WorkflowStatus.IN_PROGRESS, full.sentence, Trigger.EXHAUSTION)
            text = task_prompt(issue, plan, task, self._occasion)
            prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=text, task_id=task.id)
            t.start_task(task.id, self._tenure.attempt, self._tenure.session_id, self._tenure.number)
            t.queue_prompt(prompt, self._tenure.session_id, self._tenure.number)
            self._tenure.move(t, SessionStatus.RUNNING)
            return _Work(task, prompt, self._carry(t, prompt, told))

        return choose

    def _message(self, t: Transaction, message: PromptRow, told: _Told | None) -> _Work:
        prompt = t.take_message(message, self._tenure.session_id, self._tenure.number)
        if t.workflow.status is not WorkflowStatus.IN_PROGRESS:
            self._talking_from = t.workflow.status
            t.move_workflow(WorkflowStatus.IN_PROGRESS, reason="somebody talks to the agent")
        self._tenure.move(t, SessionStatus.RUNNING)
        return _Work(None, prompt, self._carry(t, prompt, told))

    async def _what_came_before(self, state: WorkflowState) -> _Told:
        """As the session was to be told it: compiled, or word for word."""
        if state.sessions[self._tenure.session_id].told_by is Way.CONTEXT:
            try:
                return await self._context()
            except Exception:  # nobody must be kept from going on by a sentence that could not be understood
                log.exception("no context could be compiled for %s", self._tenure.workflow_id)
                message = "No context could be compiled; the server's log says why. The history is told instead."
                await self._recorder.record(e.Warned(code="context_failed", message=message))
                if self._occasion is not None:
                    self._occasion = replace(self._occasion, way=Way.HISTORY)
        records = await self._house.hearings.last_records(self._tenure.workflow_id, HISTORY_KINDS)
        return _Told(Way.HISTORY, history(records), with_history)

    async def _context(self) -> _Told:
        git, divergence = (self._occasion.git, self._occasion.divergence) if self._occasion else (None, ())
        present = Present(git=git, at=self._house.clock.now(), divergence=divergence)
        budget = self._house.rules.context_budget
        compiled = await compile_workflow(self._house, self._tenure.workflow_id, present, budget)
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
            event = await self._heard.get()
            # Whoever speaks now ends this, but what was taken from the queue must still be written down.
            with anyio.CancelScope(shield=True):
                await self._write_down(event)
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
            close_questions(t, self._tenure.session_id, self._tenure.number)
            self._tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)
            if self._tenure.run(t).purpose is Purpose.TALK and t.workflow.pause_trigger is None:
                t.move_workflow(self._talking_from, reason="the agent was only talked to", trigger=Trigger.PAUSE)

        await self._tenure.write("message.answered", answered)

    async def _turn(self, work: _Work) -> e.StopReason:
        """One prompt and everything up to the agent's stop."""
        prompt = work.prompt
        await self._tenure.write("prompt.sent", lambda t: self._move_prompt(t, prompt, PromptStatus.SENT))
        self._in_turn = True
        await self._agent.prompt(prompt.prompt_id, work.text)
        crash_point("prompt.delivered")
        acknowledged = False
        while True:
            event = await self._heard.get()
            if not acknowledged and isinstance(event, _REACTIONS):
                acknowledged = True
                await self._acknowledge(prompt, understood=not isinstance(event, e.TurnFailed))
            await self._write_down(event)
            match event:
                case e.TurnEnded(reason=reason):
                    self._in_turn = False
                    return reason
                case e.TurnFailed():
                    self._in_turn = False
                    raise failed_turn(event)
                case e.AgentExited():
                    raise exited(event)
                case _:
                    pass

    async def _write_down(self, event: e.AgentEvent) -> None:
        match event:
            case e.TextDelta(role="message", text=text) if self._report is not None:
                self._report.append(text)
            case e.TextDelta():
                await self._recorder.hear(event)
            case e.PermissionRequested():
                await self._ask(event)
            case e.UsageReported():
                await self._recorder.record(event)
                await self._fill(event)
            case _:
                await self._recorder.record(event)

    async def _fill(self, report: e.UsageReported) -> None:
        """The context has grown: say what is said at each rung, and see to what follows."""
        for reached in self._capacity.hear(report):
            if reached.rung is Rung.SNAPSHOT_BEFORE_COMPACTION:
                continue
            await self._recorder.record(event_of(reached))
            if reached.rung in (Rung.PAUSE, Rung.FORCE):
                now = self._house.clock.now()
                wait = self._house.rules.pause_force_after if reached.rung is Rung.PAUSE else 0.0
                await self._tenure.request_pause(Trigger.EXHAUSTION, reached.sentence, now + timedelta(seconds=wait))

    def _broken_off(self, reason: e.StopReason) -> End:
        """A turn that did not end by itself: a full window and a pause interrupt the task, the rest fails it."""
        if reason == "max_tokens":
            raise Torn(WINDOW_FULL)
        if reason == "cancelled" and self._forced is not None:
            raise Torn(self._forced)
        return End(WorkflowStatus.FAILED, f"the agent stopped without finishing the task ({reason})", Trigger.CRASH)

    def _move_prompt(self, t: Transaction, prompt: e.PromptQueued, after: PromptStatus) -> None:
        t.move_prompt(prompt.prompt_id, after, self._tenure.session_id, self._tenure.number)

    async def _acknowledge(self, prompt: e.PromptQueued, *, understood: bool) -> None:
        session_id, number = self._tenure.session_id, self._tenure.number

        def acknowledge(t: Transaction) -> None:
            t.move_prompt(prompt.prompt_id, PromptStatus.ACKNOWLEDGED, session_id, number, understood=understood)

        await self._tenure.transact(acknowledge)
        crash_point("prompt.acknowledged")

    async def _complete(self, task: Task) -> None:
        """Adopt the task's result: the checkpoint and the status, together or not at all."""
        occasion = Occasion(
            type=CheckpointType.TASK_COMPLETE,
            trigger=Trigger.TASK_COMPLETE,
            reason=f"task {task.id} is done",
            snapshot=False,
            clean_boundary=True,
        )
        state, workspace = await self._tenure.gather()

        def complete(t: Transaction) -> None:
            close_questions(t, self._tenure.session_id, self._tenure.number)
            t.complete_task(task.id, self._tenure.attempt, self._tenure.session_id, self._tenure.number)
            write_checkpoint(t, self._tenure.session_id, self._tenure.number, occasion, state, workspace)
            self._tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self._tenure.write("task.complete", complete)

    # ── before a pause ──────────────────────────────────────────────────────────────────────────────

    async def _reports(self, end: End) -> bool:
        """Ask the agent, where that is switched on, what it decided and what went wrong; one repair, and in time."""
        if end.status is not WorkflowStatus.PAUSED or self._house.rules.extraction.by != "agent" or self._done is None:
            return False
        task, self._done = self._done, None
        try:
            async with alongside(self._hurry):
                told = await self._hear_report(QUESTION, task)
                if told is not None and isinstance(refused := read_answer(told), Unreadable):
                    await self._hear_report(repair(refused), task)
        except AgentError as error:
            # The work came to a clean end before, and pauses there all the same.
            message = f"The agent did not report its decisions: {error.message}"
            await self._recorder.record(e.Warned(code="not_reported", message=message))
            return False
        return True

    async def _hear_report(self, question: str, task: TaskId) -> str | None:
        """The agent's answer, or None if it did not come to its end. The question belongs to the task it did last."""
        session_id, number = self._tenure.session_id, self._tenure.number
        prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=question, task_id=task, report=True)

        def ask(t: Transaction) -> None:
            t.queue_prompt(prompt, session_id, number)
            self._tenure.move(t, SessionStatus.RUNNING)

        await self._tenure.step("report.asked", ask)
        self._report = []
        try:
            reason = await self._turn(_Work(None, prompt, question))
        finally:
            text, self._report = "".join(self._report), None

        def take_down(t: Transaction) -> None:
            close_questions(t, session_id, number)
            t.append(e.AgentReported(prompt_id=prompt.prompt_id, text=text), session_id=session_id, run=number)
            self._tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self._tenure.step("report.given", take_down)
        return text if reason == "end_turn" else None

    async def _hurry(self) -> None:
        """A report has its time, and an agent that goes on all the same is torn away."""
        await self._house.clock.sleep(self._house.rules.extraction.timeout)
        with anyio.move_on_after(CANCEL_GRACE):
            await self._agent.cancel()
        await self._house.clock.sleep(CANCEL_GRACE)
        self._live.tear_away(DEAF)

    # ── beside the turns ────────────────────────────────────────────────────────────────────────────

    async def _flush_regularly(self) -> None:
        while True:
            await self._house.clock.sleep(FLUSH_EVERY)
            await self._recorder.flush_words()

    async def _ask(self, question: e.PermissionRequested) -> None:
        """Put a question to the policy, or to the user; either way it is on disk before the agent hears an answer."""
        await self._recorder.flush()
        self._questions[question.request_id] = question
        verdict = policy(self._tenure.workflow.permissions, question)
        deadline = self._house.clock.now() + timedelta(seconds=self._house.rules.permission_timeout)

        def ask(t: Transaction) -> None:
            t.ask(question, self._tenure.session_id, self._tenure.number, deadline)
            if verdict is not None:
                t.answer(by_policy(question, verdict), self._tenure.session_id, self._tenure.number)
            elif t.session.status is SessionStatus.RUNNING:
                self._tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PERMISSION)

        await self._tenure.transact(ask)
        crash_point("permission.asked")
        if verdict is not None:
            self._live.answers.put_nowait((question.request_id, verdict))

    async def _deliver_answers(self) -> None:
        """Answers come from the policy, from people, and from the sweep that refuses what nobody answered in time."""
        while True:
            request_id, allow = await self._live.answers.get()
            crash_point("permission.answered")
            question = self._questions.pop(request_id, None)
            if question is not None:
                await self._deliver(question, allow)

    async def _deliver(self, question: e.PermissionRequested, allow: bool) -> None:
        try:
            await self._agent.answer(question.request_id, option_for(question, allow))
        except NothingToAnswer:
            message = f"The answer to “{question.title}” came too late: the agent did not wait for it any more."
            await self._recorder.record(e.Warned(code="answer_too_late", message=message))

    async def _force_pause(self) -> None:
        """A pause waits for the end of the task, but not for ever."""
        while True:
            await self._live.pause.wait()
            self._live.pause = anyio.Event()
            if (trigger := await self._pause_is_due()) is not None:
                break
        self._forced = replace(FORCED, trigger=trigger)
        message = "The task did not come to its end in time; the agent is interrupted in the middle of it."
        await self._recorder.record(e.Warned(code="pause_forced", message=message))
        # Cancelled, the agent takes its questions back, so nobody may answer them any more.
        await self._tenure.transact(lambda t: close_questions(t, self._tenure.session_id, self._tenure.number))
        with anyio.move_on_after(CANCEL_GRACE):
            await self._agent.cancel()
        await self._house.clock.sleep(CANCEL_GRACE)
        self._live.tear_away(self._forced)

    async def _pause_is_due(self) -> Trigger | None:
        """Why to pause, when its time has come and nobody has withdrawn it meanwhile."""
        force_at = (await self._house.journal.workflow(self._tenure.workflow_id)).force_pause_at
        if force_at is None:
            return None
        if not await self._slept_until(force_at):
            return None
        while not self._in_turn or self._report is not None:
            await self._house.clock.sleep(FLUSH_EVERY)
        return (await self._house.journal.workflow(self._tenure.workflow_id)).pause_trigger

    async def _slept_until(self, moment: datetime) -> bool:
        """False when somebody wants the pause sooner."""
        with anyio.CancelScope() as scope:
            async with alongside(lambda: self._cancel_at_a_pause(scope)):
                await self._house.clock.sleep(max(0.0, (moment - self._house.clock.now()).total_seconds()))
                return True
        return False

    async def _cancel_at_a_pause(self, scope: anyio.CancelScope) -> None:
        await self._live.pause.wait()
        scope.cancel()


_REACTIONS = (e.TextDelta, e.ToolCalled, e.TodoUpdated, e.PermissionRequested, e.Compacted, e.TurnEnded, e.TurnFailed)
"""What shows that the agent has the prompt; a late report of the turn before does not."""


def _completed(t: Transaction) -> list[TaskId]:
    return [row.id for row in t.tasks if row.status is TaskStatus.COMPLETED]
