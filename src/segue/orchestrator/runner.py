"""One run of a session: from start or resume to pause, end or crash."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import anyio

from segue import drivers
from segue.drivers import Agent, Launch
from segue.journal import Process, Transaction
from segue.journal.rows import PromptRow, RunRow, SessionRow, WorkflowRow, run_by_id, runtime_of, session_by_id
from segue.model import events as e
from segue.model.agents import Choices
from segue.model.checkpoint import CheckpointType
from segue.model.codec import decode
from segue.model.crash import crash_point
from segue.model.errors import (
    AgentError,
    AgentExited,
    LoginRequired,
    NothingToAnswer,
    QuotaExceeded,
    SegueError,
    TranscriptCorrupt,
    TransportLost,
    WrongState,
)
from segue.model.ids import AttemptId, RequestId, SessionId, TaskId, new_attempt_id, new_prompt_id
from segue.model.plan import Task, TaskStatus
from segue.model.status import (
    Carrying,
    Failure,
    PromptStatus,
    Purpose,
    SessionStatus,
    Trigger,
    WaitingFor,
    Way,
    WorkflowStatus,
)
from segue.orchestrator import projections
from segue.orchestrator.alongside import alongside
from segue.orchestrator.house import House, Live, Stop
from segue.orchestrator.permissions import by_policy, option_for, policy
from segue.orchestrator.recorder import Recorder
from segue.orchestrator.settling import (
    Settling,
    checkpoint_ref,
    close_questions,
    settle,
    settling_after,
    settling_for,
    write_checkpoint,
)
from segue.resume.failures import POLICIES, failure_of
from segue.resume.history import KINDS as HISTORY_KINDS
from segue.resume.history import history, with_history
from segue.resume.prompts import Occasion as PromptOccasion
from segue.resume.prompts import task_prompt
from segue.snapshot.gather import Occasion, Workspace, gather
from segue.state.fold import WorkflowState
from segue.state.moves import WORKFLOW_ENDED
from segue.workspace.comparison import divergence
from segue.workspace.git import read_state
from segue.workspace.processes import identity
from segue.workspace.worktrees import Worktree, discard_worktree, ensure_worktree, require_worktree, run_setup

T = TypeVar("T")
log = logging.getLogger("segue")

FLUSH_EVERY = 1.0
"""Seconds that streamed text waits, at most, before it is journalled."""
HEARTBEAT = 10.0
"""Seconds between two signs of life of a run."""
CANCEL_GRACE = 10.0
"""Seconds an agent gets to end a turn that was cancelled."""

FORCED = Stop(trigger=Trigger.PAUSE, reason="the pause was forced in the middle of the task")
WINDOW_FULL = Stop(trigger=Trigger.EXHAUSTION, reason="the agent's context window is full")
INTERNAL = Stop(trigger=Trigger.CRASH, reason="something went wrong inside Segue; the server's log has it")
CANCELLED = Stop(trigger=Trigger.CANCEL, reason="the workflow was cancelled")


class _Superseded(WrongState):
    """Somebody else decided what becomes of this run: a cancel, the sweep, or another process."""


class _Torn(Exception):
    """The run stops here, in the middle of a task."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.reason)
        self.stop = stop


@dataclass(frozen=True, slots=True)
class _Work:
    """The next prompt, as the agent gets it, and the task it asks for; without a task somebody just talks."""

    task: Task | None
    prompt: e.PromptQueued
    text: str


class _Idle:
    """Nobody says anything, and the plan is not to be worked on."""


@dataclass(frozen=True, slots=True)
class _End:
    """Why there is no more to do in this run."""

    status: WorkflowStatus
    reason: str = ""
    trigger: Trigger = Trigger.TASK_COMPLETE
    talked: bool = False
    """Nothing moves: the session waits for a word, and the workflow stands where it stood."""


async def run_session(house: House, session_id: SessionId, number: int) -> None:
    """What the engine calls. Nothing is raised: the engine would store it, words and all."""
    try:
        session = await house.journal.read(lambda c: session_by_id(c, session_id))
        workflow = await house.journal.workflow(session.workflow_id)
        run = await house.journal.read(lambda c: run_by_id(c, session_id, number))
        with house.alive(workflow.id) as live:
            await Run(house, live, workflow, session, run).carry_out()
            await _project(house, session_id)
    except Exception:  # whatever it is, the workflow must not hang on it
        log.exception("run %s/r%s could not be brought to its end", session_id, number)
        await _settle_after_a_fault(house, session_id, number)


async def _project(house: House, session_id: SessionId) -> None:
    """The files are for reading only: what goes wrong with them is noted, and the next run mends it."""
    try:
        await projections.extend(house, session_id)
    except Exception:  # a full disk, perhaps
        log.exception("the files of session %s could not be written", session_id)


async def _settle_after_a_fault(house: House, session_id: SessionId, number: int) -> None:
    try:
        await settle(house, session_id, number, settling_for(INTERNAL))
    except Exception:  # the database, perhaps; the sweep tries again
        log.exception("run %s/r%s is left to the sweep", session_id, number)


class Run:
    """Drives one agent process through the plan's tasks, one after the other."""

    def __init__(self, house: House, live: Live, workflow: WorkflowRow, session: SessionRow, run: RunRow) -> None:
        self.house = house
        self.live = live
        self.workflow = workflow
        self.workflow_id = workflow.id
        self.session_id = session.id
        self.agent = house.agents[session.agent]
        self.choices = decode(Choices, workflow.choices)
        self.token: str | None = None
        self.number = run.number
        self.way = run.way
        self.attempt: AttemptId = new_attempt_id()
        self.recorder = Recorder(
            journal=house.journal,
            workflow_id=workflow.id,
            session_id=session.id,
            run=run.number,
            attempt=self.attempt,
        )
        self.questions: dict[RequestId, e.PermissionRequested] = {}
        self.occasion: PromptOccasion | None = None
        self.talking_from = WorkflowStatus.PAUSED
        """Where the workflow stood before somebody said something."""
        self.reached_agent = False
        self.in_turn = False

    async def carry_out(self) -> None:
        claimed = await self.house.engine.step("claim", self.workflow_id, self._claim)
        if not claimed:
            return
        crash_point("run.claimed")
        try:
            await self._until_stopped()
        except _Torn as torn:
            await self._settle(settling_for(torn.stop))
        except _Superseded:
            await self._settle(settling_for(CANCELLED))
        except SegueError as error:
            await self._fail(error)

    def _claim(self, t: Transaction) -> bool:
        if not t.claim_run(self.session_id, self.number, self.attempt, self.house.boot):
            return False
        if t.workflow.status is WorkflowStatus.PENDING:
            t.move_workflow(WorkflowStatus.IN_PROGRESS)
        self.token = runtime_of(t.connection, self.session_id).token
        return True

    async def _step(self, name: str, work: Callable[[Transaction], T]) -> T:
        """A transaction of the engine that commits only while this attempt owns the run, and is never cut in two."""

        crash_point(f"{name}.before")
        with anyio.CancelScope(shield=True):
            result = await self.house.engine.step(name, self.workflow_id, self._fenced(work))
            crash_point(f"{name}.after")
            return result
        raise AssertionError("a shielded scope swallows nothing")

    async def _transact(self, work: Callable[[Transaction], T]) -> T:
        """Like a step, for what happens beside the steps' order."""
        return await self.house.journal.transact(self.workflow_id, self._fenced(work))

    def _fenced(self, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        def fenced(t: Transaction) -> T:
            run = t.held_run(self.session_id, self.number, self.attempt)
            if run is None or not _may_go_on(run, t.workflow):
                raise _Superseded
            return work(t)

        return fenced

    # ── the shape of a run ──────────────────────────────────────────────────────────────────────────

    async def _until_stopped(self) -> None:
        """Work through the plan to a clean end, unless somebody tears the run away."""
        with anyio.CancelScope() as scope:
            async with alongside(lambda: self._cancel_when_stopped(scope)):
                await self._finish(await self._work())
        if scope.cancelled_caught and self.live.stop is not None:
            raise _Torn(self.live.stop)

    async def _cancel_when_stopped(self, scope: anyio.CancelScope) -> None:
        await self.live.stopping.wait()
        scope.cancel()

    async def _work(self) -> _End:
        directory = await self._prepare()
        async with self._open_agent(directory) as agent:
            await self._ready(agent)
            async with alongside(
                self._flush_regularly,
                self._show_life,
                lambda: self._deliver_answers(agent),
                lambda: self._force_pause(agent),
            ):
                try:
                    end = await self._converse(agent)
                    if end.status is WorkflowStatus.COMPLETED:
                        await agent.close()
                    return end
                finally:
                    # Torn away in the middle of a sentence, what was heard of it is still true.
                    await self.recorder.flush()

    async def _prepare(self) -> Path:
        """The worktree, the occasion, and the session on its way."""
        directory = await self._worktree()
        self.occasion = await self._look_back(directory)
        await self._step("session.starting", lambda t: self._move(t, SessionStatus.STARTING))
        return directory

    async def _worktree(self) -> Path:
        workflow, path, branch = self.workflow, Path(self.workflow.worktree), self.workflow.branch
        if workflow.base is not None:
            await require_worktree(Path(workflow.repository), path, branch, here=workflow.here)
        if workflow.here:
            worktree = Worktree(path, branch, (await read_state(path, None)).head)
        else:
            worktree = await ensure_worktree(Path(workflow.repository), path, branch)
        if not workflow.here and (worktree.made or workflow.base is None):
            await self._set_up(path)
        if workflow.base is None:
            await self._step("worktree.ready", lambda t: t.worktree_ready(str(path), branch, worktree.commit))
        return path

    async def _set_up(self, path: Path) -> None:
        rules = self.house.rules
        if rules.setup is not None:
            environment = self._environment()
            await run_setup(rules.setup, path, environment, rules.setup_watchdog, execution=self.attempt)

    async def _look_back(self, directory: Path) -> PromptOccasion:
        """What this run finds: the last snapshot, and what changed in the worktree since."""
        snapshots = await self.house.journal.snapshots(self.workflow_id, limit=1)
        checkpoint = snapshots[0] if snapshots else None
        git = await read_state(directory, self.workflow.base)
        changes: tuple[str, ...] = ()
        if checkpoint is not None and checkpoint.git is not None:
            changes = await divergence(directory, checkpoint.git, checkpoint.commit)
        state = await self.house.journal.state(self.workflow_id)
        return PromptOccasion(
            way=self.way,
            checkpoint=checkpoint,
            git=git,
            divergence=changes,
            knows_issue=state.sessions[self.session_id].was_given_a_task,
        )

    def _environment(self) -> dict[str, str]:
        return dict(self.house.environments.get(self.workflow_id, {}))

    def _open_agent(self, directory: Path) -> AbstractAsyncContextManager[Agent]:
        driver = drivers.load(self.agent.driver)
        launch = Launch(
            command=self.agent.command,
            directory=directory,
            environment=self._environment(),
            execution=self.attempt,
            handshake_timeout=self.house.rules.handshake_timeout,
            mode=self.choices.mode or self.agent.modes.get(self.workflow.permissions),
            model=self.choices.model,
            mcp_servers=self.choices.mcp_servers,
            serves=self.agent.serves,
        )
        if self.way is Way.NATIVE and self.token is not None:
            return driver.resume(launch, self.token)
        return driver.start(launch)

    async def _ready(self, agent: Agent) -> None:
        started = e.AgentStarted(
            name=agent.name,
            version=agent.version,
            pid=agent.pid,
            guardian_pid=agent.guardian_pid,
            execution=self.attempt,
            resumed=self.way is Way.NATIVE,
            capabilities=agent.capabilities.names(),
        )

        process = _process(agent, self.attempt)

        def ready(t: Transaction) -> None:
            t.append(started, session_id=self.session_id, run=self.number)
            t.occupy(self.session_id, process)
            t.capture_token(self.session_id, self.number, self.attempt, agent.token)
            self._move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self._step("session.ready", ready)
        self.token = agent.token
        self.reached_agent = True

    def _move(
        self, t: Transaction, after: SessionStatus, *, reason: str = "", waiting_for: WaitingFor | None = None
    ) -> None:
        t.move_session(self.session_id, after, run=self.number, reason=reason, waiting_for=waiting_for)

    # ── tasks and turns ─────────────────────────────────────────────────────────────────────────────

    async def _converse(self, agent: Agent) -> _End:
        """One turn after the other: what people say comes first, then the plan, if it is to be worked on."""
        stream = agent.events()
        while True:
            following = await self._step("turn.start", await self._choice())
            if isinstance(following, _Idle):
                following = await self._until_spoken_to()
            if isinstance(following, _End):
                return following
            if following is None:
                continue
            reason = await self._turn(agent, stream, following)
            if following.task is None:
                await self._answered(reason)
            elif reason != "end_turn":
                return self._broken_off(reason)
            else:
                await self._complete(following.task)
                self.occasion = None

    async def _choice(self) -> Callable[[Transaction], "_Work | _End | _Idle"]:
        """Chooses what comes next, to be done under the lock, where a pause cannot slip in between."""
        state = await self.house.journal.state(self.workflow_id)
        issue, plan = state.issue, state.plan
        assert issue is not None and plan is not None, "every journal begins with its workflow's plan"
        told = await self._history()

        def choose(t: Transaction) -> _Work | _End | _Idle:
            workflow, run = t.workflow, t.held_run(self.session_id, self.number, self.attempt)
            assert run is not None, "the fence has seen it"
            if workflow.pause_trigger is None and t.messages:
                return self._message(t, t.messages[0], told)
            task = plan.next_ready(_completed(t))
            if run.purpose is Purpose.WORK and task is None:
                return _End(WorkflowStatus.COMPLETED)
            if workflow.pause_trigger is not None:
                return _End(WorkflowStatus.PAUSED, workflow.pause_reason or "", workflow.pause_trigger)
            if run.purpose is Purpose.TALK or task is None:
                return _Idle()
            text = task_prompt(issue, plan, task, self.occasion)
            prompt = e.PromptQueued(prompt_id=new_prompt_id(), text=text, task_id=task.id)
            t.start_task(task.id, self.attempt, self.session_id, self.number)
            t.queue_prompt(prompt, self.session_id, self.number)
            self._move(t, SessionStatus.RUNNING)
            return _Work(task, prompt, self._carry(t, prompt, told))

        return choose

    def _message(self, t: Transaction, message: PromptRow, told: str) -> _Work:
        prompt = t.take_message(message, self.session_id, self.number)
        if t.workflow.status is not WorkflowStatus.IN_PROGRESS:
            self.talking_from = t.workflow.status
            t.move_workflow(WorkflowStatus.IN_PROGRESS, reason="somebody talks to the agent")
        self._move(t, SessionStatus.RUNNING)
        return _Work(None, prompt, self._carry(t, prompt, told))

    async def _history(self) -> str:
        """What was said before this session, if it has yet to be told."""
        session = await self.house.journal.read(lambda c: session_by_id(c, self.session_id))
        if session.carrying is not Carrying.NEEDED:
            return ""
        return history(await self.house.journal.last_records(self.workflow_id, HISTORY_KINDS))

    def _carry(self, t: Transaction, prompt: e.PromptQueued, told: str) -> str:
        """The prompt's words as the agent gets them."""
        if not told:
            return prompt.text
        carried = e.ContextCarried(prompt_id=prompt.prompt_id, way=Way.HISTORY, text=told)
        t.carry(carried, self.session_id, self.number)
        return with_history(told, prompt.text)

    async def _until_spoken_to(self) -> _End | None:
        """Keep the agent for a while; the next word then finds it awake."""
        async with alongside(self._tire_of_waiting):
            await self.live.spoken.wait()
        self.live.spoken = anyio.Event()
        crash_point("talk.woken")
        return await self._step("talk.over", self._over)

    async def _tire_of_waiting(self) -> None:
        await self.house.clock.sleep(self.house.rules.talk_linger)
        self.live.spoken.set()

    def _over(self, t: Transaction) -> _End | None:
        """Whether the talk is over, decided under the lock: whoever speaks after this starts the next run."""
        run = t.held_run(self.session_id, self.number, self.attempt)
        if t.messages or run is None or run.purpose is Purpose.WORK:
            return None
        return _End(WorkflowStatus.PAUSED, "nobody said anything more", Trigger.PAUSE, talked=True)

    async def _answered(self, reason: e.StopReason) -> None:
        """Somebody was answered. A workflow that only stood aside for that goes back to where it was."""
        if reason == "max_tokens":
            raise _Torn(WINDOW_FULL)

        def answered(t: Transaction) -> None:
            close_questions(t, self.session_id, self.number)
            self._move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)
            run = t.held_run(self.session_id, self.number, self.attempt)
            if run is not None and run.purpose is Purpose.TALK and t.workflow.pause_trigger is None:
                t.move_workflow(self.talking_from, reason="the agent was only talked to", trigger=Trigger.PAUSE)

        await self._step("message.answered", answered)

    async def _turn(self, agent: Agent, stream: AsyncIterator[e.AgentEvent], work: _Work) -> e.StopReason:
        """One prompt and everything up to the agent's stop."""
        prompt = work.prompt
        await self._step("prompt.sent", lambda t: self._move_prompt(t, prompt, PromptStatus.SENT))
        self.in_turn = True
        await agent.prompt(prompt.prompt_id, work.text)
        crash_point("prompt.delivered")
        acknowledged = False
        async for event in stream:
            if not acknowledged and isinstance(event, _REACTIONS):
                acknowledged = True
                await self._acknowledge(prompt)
            match event:
                case e.TextDelta():
                    await self.recorder.hear(event)
                case e.PermissionRequested():
                    await self._ask(event)
                case e.TurnEnded(reason=reason):
                    await self.recorder.record(event)
                    self.in_turn = False
                    return reason
                case e.TurnFailed():
                    await self.recorder.record(event)
                    self.in_turn = False
                    raise _failed_turn(event)
                case e.AgentExited():
                    await self.recorder.record(event)
                    raise _exit(event)
                case _:
                    await self.recorder.record(event)
        raise AgentExited("The agent's connection ended.")

    def _broken_off(self, reason: e.StopReason) -> _End:
        """A turn that did not end by itself: a full window and a pause interrupt the task, the rest fails it."""
        if reason == "max_tokens":
            raise _Torn(WINDOW_FULL)
        if reason == "cancelled" and self.live.pause.is_set():
            raise _Torn(FORCED)
        return _End(WorkflowStatus.FAILED, f"the agent stopped without finishing the task ({reason})", Trigger.CRASH)

    def _move_prompt(self, t: Transaction, prompt: e.PromptQueued, after: PromptStatus) -> None:
        t.move_prompt(prompt.prompt_id, after, self.session_id, self.number)

    async def _acknowledge(self, prompt: e.PromptQueued) -> None:
        def acknowledge(t: Transaction) -> None:
            self._move_prompt(t, prompt, PromptStatus.ACKNOWLEDGED)

        await self._transact(acknowledge)
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
        state, workspace = await self._gather()

        def complete(t: Transaction) -> None:
            close_questions(t, self.session_id, self.number)
            t.complete_task(task.id, self.attempt, self.session_id, self.number)
            write_checkpoint(t, self.session_id, self.number, occasion, state, workspace)
            self._move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self._step("task.complete", complete)

    async def _gather(self) -> tuple[WorkflowState, Workspace]:
        state = await self.house.journal.state(self.workflow_id)
        workspace = await gather(state.worktree, checkpoint_ref(self.workflow_id, state), state.base)
        crash_point("checkpoint.saved")
        return state, workspace

    # ── beside the turns ────────────────────────────────────────────────────────────────────────────

    async def _flush_regularly(self) -> None:
        while True:
            await self.house.clock.sleep(FLUSH_EVERY)
            await self.recorder.flush_words()

    async def _show_life(self) -> None:
        """A dead row must be told from a live one without guessing."""
        while True:
            await self.house.clock.sleep(HEARTBEAT)
            await self._transact(lambda t: t.seen(self.session_id, self.attempt))

    async def _ask(self, question: e.PermissionRequested) -> None:
        """Put a question to the policy, or to the user; either way it is on disk before the agent hears an answer."""
        await self.recorder.flush()
        self.questions[question.request_id] = question
        verdict = policy(self.workflow.permissions, question)
        deadline = self.house.clock.now() + timedelta(seconds=self.house.rules.permission_timeout)

        def ask(t: Transaction) -> None:
            t.ask(question, self.session_id, self.number, deadline)
            if verdict is not None:
                t.answer(by_policy(question, verdict), self.session_id, self.number)
            elif t.session.status is SessionStatus.RUNNING:
                self._move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PERMISSION)

        await self._transact(ask)
        crash_point("permission.asked")
        if verdict is not None:
            self.live.answers.put_nowait((question.request_id, verdict))

    async def _deliver_answers(self, agent: Agent) -> None:
        """Answers come from the policy, from people, and from the sweep that refuses what nobody answered in time."""
        while True:
            request_id, allow = await self.live.answers.get()
            crash_point("permission.answered")
            question = self.questions.pop(request_id, None)
            if question is not None:
                await self._deliver(agent, question, allow)

    async def _deliver(self, agent: Agent, question: e.PermissionRequested, allow: bool) -> None:
        try:
            await agent.answer(question.request_id, option_for(question, allow))
        except NothingToAnswer:
            message = f"The answer to “{question.title}” came too late: the agent did not wait for it any more."
            await self.recorder.record(e.Warned(code="answer_too_late", message=message))

    async def _force_pause(self, agent: Agent) -> None:
        """A pause waits for the end of the task, but not for ever."""
        await self.live.pause.wait()
        force_at = (await self.house.journal.workflow(self.workflow_id)).force_pause_at
        if force_at is None:
            return
        await self.house.clock.sleep(max(0.0, (force_at - self.house.clock.now()).total_seconds()))
        while not self.in_turn:
            await self.house.clock.sleep(FLUSH_EVERY)
        message = "The task did not come to its end in time; the agent is interrupted in the middle of it."
        await self.recorder.record(e.Warned(code="pause_forced", message=message))
        # Cancelled, the agent takes its questions back, so nobody may answer them any more.
        await self._transact(lambda t: close_questions(t, self.session_id, self.number))
        with anyio.move_on_after(CANCEL_GRACE):
            await agent.cancel()
        await self.house.clock.sleep(CANCEL_GRACE)
        self.live.tear_away(FORCED)

    # ── ends ────────────────────────────────────────────────────────────────────────────────────────

    async def _finish(self, end: _End) -> None:
        """A clean end. The agent's process is gone by now, so the worktree holds still."""
        kind, session_to, outcome = _TALKED if end.talked else _ENDS[end.status]
        # A talk is no boundary of the work: what the last snapshot says of it still holds.
        occasion = Occasion(
            type=kind, trigger=end.trigger, reason=end.reason, snapshot=not end.talked, clean_boundary=True
        )
        state, workspace = await self._gather()

        def finish(t: Transaction) -> None:
            close_questions(t, self.session_id, self.number)
            if end.status is WorkflowStatus.FAILED:
                self._fail_task(t, end.reason)
            write_checkpoint(t, self.session_id, self.number, occasion, state, workspace)
            if not end.talked:
                self._move(t, session_to, reason=end.reason)
                t.move_workflow(end.status, reason=end.reason, trigger=end.trigger)
            t.end_run(self.session_id, self.number, e.RunEnded(outcome=outcome, reason=end.reason))

        await self._step(f"run.{outcome}", finish)

    def _fail_task(self, t: Transaction, reason: str) -> None:
        for task in t.tasks:
            if task.status is TaskStatus.IN_PROGRESS:
                t.fail_task(task.id, self.attempt, self.session_id, self.number, reason)

    async def _fail(self, error: SegueError) -> None:
        """The agent did not do its part: what follows stands in the table of failures. Nothing starts in its place."""
        policy = POLICIES[failure_of(error)]
        if self.token is not None and not policy.keeps_token:
            token = self.token
            await self._transact(lambda t: t.refuse_token(self.session_id, self.number, token, error.message))
            crash_point("token.refused")
        await self._settle(settling_after(error, reached=self.reached_agent))
        if not self.reached_agent and policy.session is None:
            await self._discard_worktree()

    async def _discard_worktree(self) -> None:
        """A first start that failed leaves nothing behind; a worktree that was there before stays."""
        row = await self.house.journal.workflow(self.workflow_id)
        if self.workflow.base is not None or row.base is None or row.here:
            return
        worktree = Worktree(Path(row.worktree), row.branch, row.base)
        if await discard_worktree(Path(row.repository), worktree):
            await self.house.journal.transact(
                self.workflow_id, lambda t: t.worktree_discarded(row.worktree, row.branch)
            )

    async def _settle(self, settling: Settling) -> None:
        with anyio.CancelScope(shield=True):
            await settle(self.house, self.session_id, self.number, settling)


_REACTIONS = (e.TextDelta, e.ToolCalled, e.TodoUpdated, e.PermissionRequested, e.Compacted, e.TurnEnded, e.TurnFailed)
"""What shows that the agent has the prompt; a late report of the turn before does not."""

_ENDS: dict[WorkflowStatus, tuple[CheckpointType, SessionStatus, e.RunOutcome]] = {
    WorkflowStatus.COMPLETED: (CheckpointType.SESSION_END, SessionStatus.COMPLETED, "completed"),
    WorkflowStatus.PAUSED: (CheckpointType.PAUSE, SessionStatus.SUSPENDED, "paused"),
    WorkflowStatus.FAILED: (CheckpointType.SESSION_END, SessionStatus.SUSPENDED, "failed"),
}


_TALKED: tuple[CheckpointType, SessionStatus, e.RunOutcome] = (
    CheckpointType.PAUSE,
    SessionStatus.WAITING_FOR_INPUT,
    "talked",
)


def _may_go_on(run: RunRow, workflow: WorkflowRow) -> bool:
    """A run works while its workflow is in progress; one that only talks goes on while there is a workflow."""
    if run.purpose is Purpose.TALK:
        return workflow.status not in WORKFLOW_ENDED
    return workflow.status is WorkflowStatus.IN_PROGRESS


def _completed(t: Transaction) -> list[TaskId]:
    return [row.id for row in t.tasks if row.status is TaskStatus.COMPLETED]


def _process(agent: Agent, execution: AttemptId) -> Process:
    known = identity(agent.pid)
    return Process(
        execution=execution,
        pid=agent.pid,
        pid_started=str(known.started) if known else None,
        guardian_pid=agent.guardian_pid,
        machine_boot=known.boot if known else None,
    )


_FAILED_TURNS: dict[Failure, type[AgentError]] = {
    Failure.LOGIN_REQUIRED: LoginRequired,
    Failure.TRANSCRIPT_CORRUPT: TranscriptCorrupt,
    Failure.TRANSPORT_LOST: TransportLost,
}


def _failed_turn(event: e.TurnFailed) -> AgentError:
    if event.failure is Failure.QUOTA:
        again = f" It is full again at {event.reset_at:%Y-%m-%d %H:%M} UTC." if event.reset_at else ""
        return QuotaExceeded(f"{event.message}{again}", reset_at=event.reset_at)
    return _FAILED_TURNS.get(event.failure, AgentError)(event.message)


def _exit(event: e.AgentExited) -> AgentError:
    if event.code is None and event.detail:
        # The process was there when the connection broke, so it is not known how it would have ended.
        return TransportLost(event.detail)
    how = f"with exit code {event.code}" if event.code is not None else "and nobody knows how"
    detail = f": {event.detail.strip()}" if event.detail.strip() else "."
    return AgentExited(f"The agent's process ended {how}{detail}")
