"""One run of a session: from start or resume to pause, end or crash."""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio

from segue import drivers
from segue.drivers import Agent, Driver, Launch, Left
from segue.drivers.environment import variables_for
from segue.journal import Transaction
from segue.journal.rows import (
    RunRow,
    SessionRow,
    WorkflowRow,
)
from segue.model import events as e
from segue.model.agents import Choices
from segue.model.checkpoint import CheckpointType, GitState
from segue.model.codec import decode
from segue.model.crash import crash_point
from segue.model.errors import AgentError, SegueError, TokenRejected, TransportLost
from segue.model.ids import SessionId, new_session_id
from segue.model.plan import TaskStatus
from segue.model.status import (
    SAME_CONVERSATION,
    Carrying,
    Failure,
    Purpose,
    RunStatus,
    SessionStatus,
    Trigger,
    WaitingFor,
    Way,
    WorkflowStatus,
)
from segue.orchestrator.run import fixing
from segue.orchestrator.run.arrivals import process_of, started_of
from segue.orchestrator.run.capacity import Capacity
from segue.orchestrator.run.dialogue import Dialogue
from segue.orchestrator.run.keeping import Keeper
from segue.orchestrator.run.limits import Allowance
from segue.orchestrator.run.pausing import force_pauses
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.tenure import Superseded, Tenure
from segue.orchestrator.runtime import containers, origins, projections
from segue.orchestrator.runtime.alongside import alongside
from segue.orchestrator.runtime.handle import RunHandle
from segue.orchestrator.runtime.house import DIVERGED, House
from segue.orchestrator.runtime.queueing import queue
from segue.orchestrator.runtime.remaking import made_again
from segue.orchestrator.settling import retrying
from segue.orchestrator.settling.ends import CANCELLED, INTERNAL, End, Torn
from segue.orchestrator.settling.settling import (
    Settling,
    close_questions,
    give_task_back,
    left_standing,
    settle,
    settling_after,
    settling_for,
    withdraw_messages,
    write_checkpoint,
)
from segue.protocol.retries import may_start_over
from segue.resume.advice import NO_ADVICE
from segue.resume.failures import POLICIES, failure_of
from segue.resume.planner import Original, ResumePlan
from segue.resume.prompts import Occasion as PromptOccasion
from segue.snapshot.gather import Occasion, Workspace
from segue.state.fold import WorkflowState
from segue.workspace.git import read_state
from segue.workspace.worktrees import Worktree, discard_worktree, require_worktree, run_setup

log = logging.getLogger("segue")

UNCOPIED = frozenset(
    {
        Failure.TOKEN_REJECTED,
        Failure.OTHER_CONVERSATION,
        Failure.TRANSCRIPT_CORRUPT,
        Failure.HANDSHAKE_FAILED,
        Failure.NOT_RESTORED,
        Failure.OTHER,
    }
)
"""Why a conversation is not copied, while the agent may well begin another."""
START = Occasion(
    type=CheckpointType.START, trigger=Trigger.PAUSE, reason="nothing is done yet", snapshot=False, clean_boundary=True
)
MOST_REPORTS = 500
"""Reports of usage that are looked back at."""
HEARTBEAT = 10.0
"""Seconds between two signs of life of a run."""


async def run_session(house: House, session_id: SessionId, number: int) -> None:
    """Execute a run that was taken from the queue; errors are logged and settled, never raised."""
    try:
        queued = await house.journal.runs.get(session_id, number)
        async with house.places.one(queued.queued_at) as place:
            if place:
                await _run_session(house, session_id, number)
    except Exception:  # whatever it is, the workflow must not hang on it
        log.exception("run %s/r%s could not be brought to its end", session_id, number)
        await _settle_after_a_fault(house, session_id, number)


async def _run_session(house: House, session_id: SessionId, number: int) -> None:
    run = await house.journal.runs.get(session_id, number)
    # One that was paused or cancelled while it stood in line must not be taken for the one that may have followed it.
    if run.status is not RunStatus.ENDED:
        session = await house.journal.sessions.get(session_id)
        workflow = await house.journal.workflows.get(session.workflow_id)
        with house.alive(workflow.id) as live:
            await Run(house, live, workflow, session, run).carry_out()
            await projections.refresh(house, session_id)
    house.environments.pop((session_id, number), None)


async def _settle_after_a_fault(house: House, session_id: SessionId, number: int) -> None:
    try:
        await settle(house, session_id, number, settling_for(INTERNAL))
    except Exception:  # the database, perhaps; the sweep tries again
        log.exception("run %s/r%s is left to the sweep", session_id, number)


class Run:
    """The life of one agent process: a worktree to stand in, the dialogue, and an end that is written down."""

    def __init__(self, house: House, live: RunHandle, workflow: WorkflowRow, session: SessionRow, run: RunRow) -> None:
        self.house = house
        self.live = live
        self.workflow = workflow
        self.tenure = Tenure(house, live, workflow, session, run)
        self.agent = house.agents[session.agent]
        self.choices = decode(Choices, workflow.choices)
        self.way = run.way
        self.reached_agent = False
        self.advised_on: str | None = None
        """The step that a second agent is being asked about."""

    async def carry_out(self) -> None:
        if not await self.tenure.claim():
            return
        crash_point("run.claimed")
        try:
            await self._until_stopped()
        except Torn as torn:
            await self._settle(settling_for(torn.stop))
        except Superseded:
            await self._settle(settling_for(CANCELLED))
        except SegueError as error:
            await self._fail(error)

    # ── the shape of a run ──────────────────────────────────────────────────────────────────────────

    async def _until_stopped(self) -> None:
        """Work through the plan to a clean end, unless somebody tears the run away."""
        with anyio.CancelScope() as scope:
            async with alongside(lambda: self._cancel_when_stopped(scope)):
                await self._finish(await self._work())
        if scope.cancelled_caught and self.live.stop is not None:
            raise Torn(self.live.stop)

    async def _cancel_when_stopped(self, scope: anyio.CancelScope) -> None:
        await self.live.stopping.wait()
        scope.cancel()

    async def _work(self) -> End:
        directory, git = await self._worktree()
        occasion = await self._look_back(git)
        if (end := await self._advised()) is not None:
            return end
        if not self.tenure.has_worktree:
            await self.tenure.write("session.starting", lambda t: self.tenure.move(t, SessionStatus.STARTING))
        async with AsyncExitStack() as stack:
            left = await self._left()
            agent = await self._open_agent(stack, self._launch(directory), left)
            occasion = replace(occasion, way=self.way)
            await self._ready(agent)
            await self._keep_start()
            async with alongside(self._show_life):
                capacity = await self._capacity()
                dialogue = Dialogue(self.tenure, agent, self._recorder(), occasion, capacity, self._environment())
                end = await dialogue.hold(joined=left.turn if left else None)
                if end.status is WorkflowStatus.COMPLETED:
                    await agent.close()
                return end

    async def _capacity(self) -> Capacity:
        """Of a conversation that goes on, what was reported before still counts."""
        if self.way not in SAME_CONVERSATION:
            return Capacity(self.tenure, self.agent, joined=self.way is Way.FORK)
        records = await self.house.journal.last_records(self.tenure.workflow_id, ["usage.reported"], limit=MOST_REPORTS)
        mine = [record.event for record in reversed(records) if record.session_id == self.tenure.session_id]
        before = [event for event in mine if isinstance(event, e.UsageReported)]
        whole = bool(before) and len(records) < MOST_REPORTS
        return Capacity(self.tenure, self.agent, joined=not whole, before=before)

    async def _advised(self) -> End | None:
        """What is tried for the last time is tried with advice; None when it is to be tried."""
        state = await self.house.journal.state(self.tenure.workflow_id)
        failures = retrying.to_be_advised_on(self.house, self.workflow, state)
        if not failures:
            return None
        self.advised_on = failures[-1].step
        async with alongside(lambda: force_pauses(self.tenure, self._recorder()), Allowance(self.tenure).time_out):
            advice = await fixing.consult(self.tenure, self._environment(), failures)
        self.advised_on = None
        match advice.verdict:
            case "fix":
                return None
            case "rewind" if may_start_over(self.house.rules.retries, state.replans):
                return retrying.start_over_as_advised(advice, self.house.clock.now())
            case "rewind" | "escalate":
                look = f"a person has to look at it: {advice.advice or NO_ADVICE}"
                return End(WorkflowStatus.PAUSED, look, Trigger.CRASH)

    def _recorder(self) -> Recorder:
        return Recorder(
            journal=self.house.journal,
            workflow_id=self.workflow.id,
            session_id=self.tenure.session_id,
            run=self.tenure.number,
            attempt=self.tenure.attempt,
        )

    async def _worktree(self) -> tuple[Path, GitState]:
        workflow, path, branch = self.workflow, Path(self.workflow.worktree), self.workflow.branch
        if self.tenure.has_worktree and (standing := await self._standing(path)) is not None:
            return path, standing
        if workflow.base is not None:
            await require_worktree(Path(workflow.repository), path, branch, here=workflow.here)
        if workflow.here:
            worktree = Worktree(path, branch, (await read_state(path, None)).head)
        else:
            worktree, gone = await made_again(self.house, workflow)
            if gone is not None:
                await self._recorder().record(gone)
        if not workflow.here and (worktree.made or workflow.base is None):
            await self._set_up(path)
        if workflow.base is None:
            await self.tenure.write("worktree.ready", lambda t: t.worktree_ready(str(path), branch, worktree.commit))
        return path, await read_state(path, self.workflow.base)

    async def _standing(self, path: Path) -> GitState | None:
        """The worktree as the run before left it, which is the ordinary case and needs only one look."""
        git = await read_state(path, self.workflow.base)
        return git if self.workflow.here or git.branch == self.workflow.branch else None

    async def _set_up(self, path: Path) -> None:
        rules = self.house.rules
        if (setup := rules.setup_for(self.choices)) is not None:
            environment = self._environment()
            await run_setup(setup, path, environment, rules.setup_watchdog, execution=self.tenure.attempt)

    async def _look_back(self, git: GitState) -> PromptOccasion:
        """What this run finds: the last snapshot, and what was seen to have changed in the worktree since."""
        state = await self.house.journal.state(self.tenure.workflow_id)
        return PromptOccasion(
            way=self.way,
            checkpoint=await self.house.journal.checkpoints.base(self.tenure.workflow_id, state),
            git=git,
            divergence=await self._divergence(),
            taken_back=state.taken_back,
            directory=self.workflow.worktree,
            copied_from=await origins.worktree_of_original(self.house, state),
            knows_issue=state.sessions[self.tenure.session_id].was_given_a_task,
        )

    async def _divergence(self) -> tuple[str, ...]:
        """Whoever asked for this run has looked already, and it stands beside the run in the journal."""
        warnings = await self.house.journal.last_records(self.tenure.workflow_id, ["warning"], limit=50)
        mine = (record for record in reversed(warnings) if record.session_id == self.tenure.session_id)
        told = (record.event for record in mine if record.run == self.tenure.number)
        return tuple(each.message for each in told if isinstance(each, e.Warned) and each.code == DIVERGED)

    def _environment(self) -> dict[str, str]:
        return dict(self.house.environments.get((self.tenure.session_id, self.tenure.number), {}))

    def _launch(self, directory: Path) -> Launch:
        return Launch(
            command=self.agent.command,
            directory=directory,
            environment=variables_for(self.agent, self._environment(), self.choices.variables),
            execution=self.tenure.attempt,
            handshake_timeout=self.house.rules.handshake_timeout,
            mode=self.choices.mode or self.agent.modes.get(self.workflow.permissions),
            model=self.choices.model,
            mcp_servers=self.choices.mcp_servers,
            serves=self.agent.serves,
            counts_since_start=self.agent.counts_since_start,
            keeper=self._keeper() if self.agent.keep_conversations else None,
            container=self.agent.container,
            engine=containers.engine_of(self.house) if self.agent.container else "",
            now=self.house.clock.now,
        )

    def _keeper(self) -> Keeper:
        return Keeper(self.house.journal, self._recorder())

    async def _left(self) -> Left | None:
        """The agent to be joined again; on every other way, whoever is left over makes room."""
        if self.way is not Way.REATTACH:
            await containers.end_all(self.house, self.tenure.workflow_id)
            return None
        left = await containers.left(self.house, self.tenure.workflow_id, self.tenure.session_id)
        if left is None:
            raise TransportLost("The container that the agent was in does not run any more.")
        return left

    async def _open_agent(self, stack: AsyncExitStack, launch: Launch, left: Left | None) -> Agent:
        driver = drivers.load(self.agent.driver)
        if left is not None and self.tenure.token is not None:
            return await stack.enter_async_context(driver.reattach(launch, self.tenure.token, left))
        if self.way is Way.FORK:
            try:
                return await stack.enter_async_context(self._copied(driver, launch))
            except AgentError as error:
                if error.failure not in UNCOPIED:
                    raise
                await self._begin_anew(error)
        if self.way is Way.NATIVE and self.tenure.token is not None:
            return await stack.enter_async_context(driver.resume(launch, self.tenure.token))
        return await stack.enter_async_context(driver.start(launch))

    @asynccontextmanager
    async def _copied(self, driver: Driver, launch: Launch) -> AsyncGenerator[Agent]:
        """The agent with a copy of the original's conversation, as that was at the snapshot and not later."""
        original = await self._original()
        token, at = original.session.token, original.bookmark
        if token is None:
            raise TokenRejected("The original has no conversation any more.")
        # Drivers whose agents know no places in a conversation need not know of places either.
        async with driver.fork(launch, token, at) if at else driver.fork(launch, token) as agent:
            if at is None and (await self._original()).moved:
                raise TokenRejected("The original's conversation went on before it was copied.")
            crash_point("fork.copied")
            yield agent

    async def _original(self) -> Original:
        original = await origins.original(self.house, await self.house.journal.state(self.tenure.workflow_id))
        assert original is not None, "only a fork is queued to begin with a copy"
        return original

    async def _begin_anew(self, error: AgentError) -> None:
        """The agent did not copy its conversation: a new one begins with a compiled context, and that is said."""
        self.way = Way.CONTEXT
        changed = e.WayChanged(before=Way.FORK, after=Way.CONTEXT, reason=error.message)
        session_id, number = self.tenure.session_id, self.tenure.number
        await self.tenure.transact(lambda t: t.runs.change_way(session_id, number, changed, Carrying.NEEDED))

    async def _ready(self, agent: Agent) -> None:
        started = started_of(agent, self.tenure.attempt, resumed=self.way in SAME_CONVERSATION)
        process = process_of(agent, self.tenure.attempt, await self._container())

        def ready(t: Transaction) -> None:
            t.append(started, session_id=self.tenure.session_id, run=self.tenure.number)
            t.runtimes.occupy(self.tenure.session_id, process)
            t.runtimes.capture_token(self.tenure.session_id, self.tenure.number, self.tenure.attempt, agent.token)
            self.tenure.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self.tenure.write("session.ready", ready)
        self.tenure.token = agent.token
        self.reached_agent = True

    async def _container(self) -> str | None:
        """The one that the agent is in; one that was joined again stays the one it was."""
        if self.agent.container is None:
            return None
        if self.way is Way.REATTACH:
            return (await self.house.journal.sessions.runtime(self.tenure.session_id)).container
        return await containers.begun(self.house, self.tenure.attempt)

    async def _keep_start(self) -> None:
        """The files as they were before the first prompt, so that the first task can be undone like any other."""
        journal, workflow_id = self.house.journal, self.tenure.workflow_id
        if await journal.checkpoints.exist(workflow_id):
            return
        state, workspace = await self.tenure.gather()
        session_id, number = self.tenure.session_id, self.tenure.number
        await self.tenure.write(
            "start.kept", lambda t: write_checkpoint(t, session_id, number, START, t.catch_up(state), workspace)
        )

    async def _show_life(self) -> None:
        """A dead row must be told from a live one without guessing."""
        while True:
            await self.house.clock.sleep(HEARTBEAT)
            await self.tenure.transact(
                lambda t: t.runtimes.record_heartbeat(self.tenure.session_id, self.tenure.attempt)
            )

    # ── ends ────────────────────────────────────────────────────────────────────────────────────────

    async def _finish(self, end: End) -> None:
        """A clean end. The agent's process is gone by now, so the worktree holds still."""
        state, workspace = await self.tenure.gather()
        child = new_session_id(self.house.clock.now())

        def finish(t: Transaction) -> bool:
            return self._end(t, _unless_paused(t, end), t.catch_up(state), workspace, child)

        _, _, outcome = end.ending
        # Nothing is waited for after the commit: a run that is torn away meanwhile must still say what follows it.
        if await self.tenure.write(f"run.{outcome}", finish):
            self.house.kept_environments[self.tenure.workflow_id] = self._environment()
            self.house.retry_scheduled.set()
        await left_standing(self.house, self.tenure.workflow_id, state)

    def _end(self, t: Transaction, end: End, state: WorkflowState, workspace: Workspace, child: SessionId) -> bool:
        """Whether it is tried again by itself."""
        kind, session_to, outcome = end.ending
        # A talk is no boundary of the work: what the last snapshot says of it still holds.
        occasion = Occasion(
            type=kind,
            trigger=end.trigger,
            reason=end.reason,
            snapshot=not end.talked,
            clean_boundary=end.retry is None,
        )
        again = end.retry if t.workflow.pause_trigger is None else None
        close_questions(t, self.tenure.session_id, self.tenure.number)
        if end.status is WorkflowStatus.FAILED:
            self._fail_task(t, end.reason)
        if end.asks is not None:
            self._ask_person(t, end.asks)
        if end.retry is not None:
            give_task_back(t, self.tenure.session_id, self.tenure.number, end.reason)
        write_checkpoint(t, self.tenure.session_id, self.tenure.number, occasion, state, workspace)
        if not end.talked:
            self.tenure.move(t, session_to, reason=end.reason)
        if not end.talked and end.status is not WorkflowStatus.IN_PROGRESS:
            _move_workflow(t, end)
        if end.status is WorkflowStatus.COMPLETED:
            withdraw_messages(t)
        if again is not None:
            t.schedule_retry(again, self.tenure.session_id, self.tenure.number)
        t.runs.end(self.tenure.session_id, self.tenure.number, e.RunEnded(outcome=outcome, reason=end.reason))
        if end.status is WorkflowStatus.IN_PROGRESS:
            self._hand_over(t, child, end.reason)
        return again is not None

    def _hand_over(self, t: Transaction, child: SessionId, reason: str) -> None:
        """A new session goes on with a compiled context, before the old one is too full to."""
        t.sessions.create(child, self.agent.name, self.tenure.session_id, Carrying.NEEDED)
        queue(self.house, t, child, ResumePlan(way=Way.CONTEXT, reason=reason), Purpose.WORK, self._environment())

    def _fail_task(self, t: Transaction, reason: str) -> None:
        for task in t.tasks.all():
            if task.status is TaskStatus.IN_PROGRESS:
                t.tasks.fail(task.id, self.tenure.attempt, self.tenure.session_id, self.tenure.number, reason)

    def _ask_person(self, t: Transaction, asked: e.PersonAsked) -> None:
        session_id, number = self.tenure.session_id, self.tenure.number
        t.tasks.interrupt(asked.task_id, session_id, number, "somebody has to say what becomes of it")
        t.append(asked, session_id=session_id, run=number)

    async def _fail(self, error: SegueError) -> None:
        """The agent did not do its part: what follows stands in the table of failures. Nothing starts in its place."""
        policy = POLICIES[failure_of(error)]
        if self.tenure.token is not None and not policy.keeps_token:
            session_id, number, token = self.tenure.session_id, self.tenure.number, self.tenure.token
            await self.tenure.transact(lambda t: t.runtimes.refuse_token(session_id, number, token, error.message))
            crash_point("token.refused")
        await self._settle(settling_after(error, reached=self.reached_agent, advised_on=self.advised_on))
        if not self.reached_agent and policy.session is None:
            await self._discard_worktree()

    async def _discard_worktree(self) -> None:
        """A first start that failed leaves nothing behind; a worktree that was there before, or is needed for the next
        try, stays."""
        row = await self.house.journal.workflows.get(self.tenure.workflow_id)
        if self.workflow.base is not None or row.base is None or row.here or row.retry_at is not None:
            return
        worktree = Worktree(Path(row.worktree), row.branch, row.base)
        if await discard_worktree(Path(row.repository), worktree):
            await self.house.journal.transact(
                self.tenure.workflow_id, lambda t: t.worktree_discarded(row.worktree, row.branch)
            )

    async def _settle(self, settling: Settling) -> None:
        with anyio.CancelScope(shield=True):
            await settle(self.house, self.tenure.session_id, self.tenure.number, settling)


def _unless_paused(t: Transaction, end: End) -> End:
    """Nobody takes the work over when somebody has asked for a pause since that was decided."""
    trigger, reason = t.workflow.pause_trigger, t.workflow.pause_reason
    if end.status is not WorkflowStatus.IN_PROGRESS or trigger is None:
        return end
    return End(WorkflowStatus.PAUSED, reason or "", trigger)


def _move_workflow(t: Transaction, end: End) -> None:
    """Where the run leads; a pause that was asked for meanwhile holds for what waits for a person's word, too. One for
    want of money or room does not: waiting costs nothing."""
    wanted = t.workflow
    t.move_workflow(end.status, reason=end.reason, trigger=end.trigger)
    asks = end.status in (WorkflowStatus.BLOCKED, WorkflowStatus.REVIEW)
    if asks and wanted.pause_trigger not in (None, Trigger.EXHAUSTION):
        t.move_workflow(WorkflowStatus.PAUSED, reason=wanted.pause_reason or "", trigger=wanted.pause_trigger)
