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
from segue.orchestrator.run import fixer
from segue.orchestrator.run.agent_start import process_of, started_of
from segue.orchestrator.run.allowance import Allowance
from segue.orchestrator.run.capacity_meter import Capacity
from segue.orchestrator.run.conversation_keeper import Keeper
from segue.orchestrator.run.dialogue import Dialogue
from segue.orchestrator.run.forced_pauses import force_pauses
from segue.orchestrator.run.lease import Lease, Superseded
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.runtime import containers, fork_origins, projections
from segue.orchestrator.runtime.concurrency import alongside
from segue.orchestrator.runtime.queued_runs import queue
from segue.orchestrator.runtime.run_handle import RunHandle
from segue.orchestrator.runtime.services import DIVERGED, RuntimeServices
from segue.orchestrator.runtime.worktree_recovery import made_again
from segue.orchestrator.settling import retry_schedule
from segue.orchestrator.settling.recovery import (
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
from segue.orchestrator.settling.run_ends import CANCELLED, INTERNAL, End, RunStopped
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


async def run_session(services: RuntimeServices, session_id: SessionId, number: int) -> None:
    """Execute a run that was taken from the queue; errors are logged and settled, never raised."""
    try:
        queued = await services.journal.runs.get(session_id, number)
        async with services.slots.one(queued.queued_at) as place:
            if place:
                await _run_session(services, session_id, number)
    except Exception:  # whatever it is, the workflow must not hang on it
        log.exception("run %s/r%s could not be brought to its end", session_id, number)
        await _settle_after_a_fault(services, session_id, number)


async def _run_session(services: RuntimeServices, session_id: SessionId, number: int) -> None:
    run = await services.journal.runs.get(session_id, number)
    # One that was paused or cancelled while it stood in line must not be taken for the one that may have followed it.
    if run.status is not RunStatus.ENDED:
        session = await services.journal.sessions.get(session_id)
        workflow = await services.journal.workflows.get(session.workflow_id)
        with services.alive(workflow.id) as live:
            await Run(services, live, workflow, session, run).carry_out()
            await projections.refresh(services, session_id)
    services.environments.pop((session_id, number), None)


async def _settle_after_a_fault(services: RuntimeServices, session_id: SessionId, number: int) -> None:
    try:
        await settle(services, session_id, number, settling_for(INTERNAL))
    except Exception:  # the database, perhaps; the sweep tries again
        log.exception("run %s/r%s is left to the sweep", session_id, number)


class Run:
    """The life of one agent process: a worktree to stand in, the dialogue, and an end that is written down."""

    def __init__(
        self, services: RuntimeServices, live: RunHandle, workflow: WorkflowRow, session: SessionRow, run: RunRow
    ) -> None:
        self.services = services
        self.live = live
        self.workflow = workflow
        self.lease = Lease(services, live, workflow, session, run)
        self.agent = services.agents[session.agent]
        self.choices = decode(Choices, workflow.choices)
        self.way = run.way
        self.reached_agent = False
        self.advised_on: str | None = None
        """The step that a second agent is being asked about."""

    async def carry_out(self) -> None:
        """Claim the run and work; settle whatever interrupts it."""
        if not await self.lease.claim():
            return
        crash_point("run.claimed")
        try:
            await self._until_stopped()
        except RunStopped as torn:
            await self._settle(settling_for(torn.stop))
        except Superseded:
            await self._settle(settling_for(CANCELLED))
        except SegueError as error:
            await self._fail(error)

    # ── the shape of a run ──────────────────────────────────────────────────────────────────────────

    async def _until_stopped(self) -> None:
        """Work through the plan to a clean end, unless the run is stopped."""
        with anyio.CancelScope() as scope:
            async with alongside(lambda: self._cancel_when_stopped(scope)):
                await self._finish(await self._work())
        if scope.cancelled_caught and self.live.stop is not None:
            raise RunStopped(self.live.stop)

    async def _cancel_when_stopped(self, scope: anyio.CancelScope) -> None:
        await self.live.stopping.wait()
        scope.cancel()

    async def _work(self) -> End:
        directory, git = await self._worktree()
        occasion = await self._look_back(git)
        if (end := await self._advised()) is not None:
            return end
        if not self.lease.has_worktree:
            await self.lease.write("session.starting", lambda t: self.lease.move(t, SessionStatus.STARTING))
        async with AsyncExitStack() as stack:
            left = await self._left()
            agent = await self._open_agent(stack, self._launch(directory), left)
            occasion = replace(occasion, way=self.way)
            await self._ready(agent)
            await self._keep_start()
            async with alongside(self._show_life):
                capacity = await self._capacity()
                dialogue = Dialogue(self.lease, agent, self._recorder(), occasion, capacity, self._environment())
                end = await dialogue.hold(joined=left.turn if left else None)
                if end.status is WorkflowStatus.COMPLETED:
                    await agent.close()
                return end

    async def _capacity(self) -> Capacity:
        """Measure the context; a conversation that goes on keeps its earlier usage."""
        if self.way not in SAME_CONVERSATION:
            return Capacity(self.lease, self.agent, joined=self.way is Way.FORK)
        records = await self.services.journal.last_records(
            self.lease.workflow_id, ["usage.reported"], limit=MOST_REPORTS
        )
        mine = [record.event for record in reversed(records) if record.session_id == self.lease.session_id]
        before = [event for event in mine if isinstance(event, e.UsageReported)]
        whole = bool(before) and len(records) < MOST_REPORTS
        return Capacity(self.lease, self.agent, joined=not whole, before=before)

    async def _advised(self) -> End | None:
        """Ask a second agent before the last try of a step; return the end of the run if no further try follows."""
        state = await self.services.journal.state(self.lease.workflow_id)
        failures = retry_schedule.to_be_advised_on(self.services, self.workflow, state)
        if not failures:
            return None
        self.advised_on = failures[-1].step
        async with alongside(lambda: force_pauses(self.lease, self._recorder()), Allowance(self.lease).time_out):
            advice = await fixer.consult(self.lease, self._environment(), failures)
        self.advised_on = None
        match advice.verdict:
            case "fix":
                return None
            case "rewind" if may_start_over(self.services.rules.retries, state.replans):
                return retry_schedule.start_over_as_advised(advice, self.services.clock.now())
            case "rewind" | "escalate":
                look = f"a person has to look at it: {advice.advice or NO_ADVICE}"
                return End(WorkflowStatus.PAUSED, look, Trigger.CRASH)

    def _recorder(self) -> Recorder:
        return Recorder(
            journal=self.services.journal,
            workflow_id=self.workflow.id,
            session_id=self.lease.session_id,
            run=self.lease.number,
            attempt=self.lease.attempt,
        )

    async def _worktree(self) -> tuple[Path, GitState]:
        workflow, path, branch = self.workflow, Path(self.workflow.worktree), self.workflow.branch
        if self.lease.has_worktree and (standing := await self._standing(path)) is not None:
            return path, standing
        if workflow.base is not None:
            await require_worktree(Path(workflow.repository), path, branch, here=workflow.here)
        if workflow.here:
            worktree = Worktree(path, branch, (await read_state(path, None)).head)
        else:
            worktree, gone = await made_again(self.services, workflow)
            if gone is not None:
                await self._recorder().record(gone)
        if not workflow.here and (worktree.made or workflow.base is None):
            await self._set_up(path)
        if workflow.base is None:
            await self.lease.write("worktree.ready", lambda t: t.worktree_ready(str(path), branch, worktree.commit))
        return path, await read_state(path, self.workflow.base)

    async def _standing(self, path: Path) -> GitState | None:
        """Return the git state of a worktree that is as the run before left it, which needs only one look."""
        git = await read_state(path, self.workflow.base)
        return git if self.workflow.here or git.branch == self.workflow.branch else None

    async def _set_up(self, path: Path) -> None:
        rules = self.services.rules
        if (setup := rules.setup_for(self.choices)) is not None:
            environment = self._environment()
            await run_setup(setup, path, environment, rules.setup_watchdog, execution=self.lease.attempt)

    async def _look_back(self, git: GitState) -> PromptOccasion:
        """Collect what the first prompt needs: the last snapshot, and changes of the worktree since."""
        state = await self.services.journal.state(self.lease.workflow_id)
        return PromptOccasion(
            way=self.way,
            checkpoint=await self.services.journal.checkpoints.base(self.lease.workflow_id, state),
            git=git,
            divergence=await self._divergence(),
            taken_back=state.taken_back,
            directory=self.workflow.worktree,
            copied_from=await fork_origins.worktree_of_original(self.services, state),
            knows_issue=state.sessions[self.lease.session_id].was_given_a_task,
        )

    async def _divergence(self) -> tuple[str, ...]:
        """Read the worktree's changes from the warnings that were journalled with the request for this run."""
        warnings = await self.services.journal.last_records(self.lease.workflow_id, ["warning"], limit=50)
        mine = (record for record in reversed(warnings) if record.session_id == self.lease.session_id)
        told = (record.event for record in mine if record.run == self.lease.number)
        return tuple(each.message for each in told if isinstance(each, e.Warned) and each.code == DIVERGED)

    def _environment(self) -> dict[str, str]:
        return dict(self.services.environments.get((self.lease.session_id, self.lease.number), {}))

    def _launch(self, directory: Path) -> Launch:
        return Launch(
            command=self.agent.command,
            directory=directory,
            environment=variables_for(self.agent, self._environment(), self.choices.variables),
            execution=self.lease.attempt,
            handshake_timeout=self.services.rules.handshake_timeout,
            mode=self.choices.mode or self.agent.modes.get(self.workflow.permissions),
            model=self.choices.model,
            mcp_servers=self.choices.mcp_servers,
            serves=self.agent.serves,
            counts_since_start=self.agent.counts_since_start,
            keeper=self._keeper() if self.agent.keep_conversations else None,
            container=self.agent.container,
            engine=containers.engine_of(self.services) if self.agent.container else "",
            now=self.services.clock.now,
        )

    def _keeper(self) -> Keeper:
        return Keeper(self.services.journal, self._recorder())

    async def _left(self) -> Left | None:
        """Return the agent that is to be joined again; on every other way, end the containers that are left over."""
        if self.way is not Way.REATTACH:
            await containers.end_all(self.services, self.lease.workflow_id)
            return None
        left = await containers.left(self.services, self.lease.workflow_id, self.lease.session_id)
        if left is None:
            raise TransportLost("The container that the agent was in does not run any more.")
        return left

    async def _open_agent(self, stack: AsyncExitStack, launch: Launch, left: Left | None) -> Agent:
        driver = drivers.load(self.agent.driver)
        if left is not None and self.lease.token is not None:
            return await stack.enter_async_context(driver.reattach(launch, self.lease.token, left))
        if self.way is Way.FORK:
            try:
                return await stack.enter_async_context(self._copied(driver, launch))
            except AgentError as error:
                if error.failure not in UNCOPIED:
                    raise
                await self._begin_anew(error)
        if self.way is Way.NATIVE and self.lease.token is not None:
            return await stack.enter_async_context(driver.resume(launch, self.lease.token))
        return await stack.enter_async_context(driver.start(launch))

    @asynccontextmanager
    async def _copied(self, driver: Driver, launch: Launch) -> AsyncGenerator[Agent]:
        """Copy the original's conversation up to the snapshot into a new agent."""
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
        original = await fork_origins.original(self.services, await self.services.journal.state(self.lease.workflow_id))
        assert original is not None, "only a fork is queued to begin with a copy"
        return original

    async def _begin_anew(self, error: AgentError) -> None:
        """Begin a new conversation with a compiled context, because the agent did not copy its conversation."""
        self.way = Way.CONTEXT
        changed = e.WayChanged(before=Way.FORK, after=Way.CONTEXT, reason=error.message)
        session_id, number = self.lease.session_id, self.lease.number
        await self.lease.transact(lambda t: t.runs.change_way(session_id, number, changed, Carrying.NEEDED))

    async def _ready(self, agent: Agent) -> None:
        started = started_of(agent, self.lease.attempt, resumed=self.way in SAME_CONVERSATION)
        process = process_of(agent, self.lease.attempt, await self._container())

        def ready(t: Transaction) -> None:
            t.append(started, session_id=self.lease.session_id, run=self.lease.number)
            t.runtimes.occupy(self.lease.session_id, process)
            t.runtimes.capture_token(self.lease.session_id, self.lease.number, self.lease.attempt, agent.token)
            self.lease.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await self.lease.write("session.ready", ready)
        self.lease.token = agent.token
        self.reached_agent = True

    async def _container(self) -> str | None:
        """Return the name of the agent's container; an agent that was joined again keeps its own."""
        if self.agent.container is None:
            return None
        if self.way is Way.REATTACH:
            return (await self.services.journal.sessions.runtime(self.lease.session_id)).container
        return await containers.begun(self.services, self.lease.attempt)

    async def _keep_start(self) -> None:
        """Save the files before the first prompt, so that the first task can be undone like any other."""
        journal, workflow_id = self.services.journal, self.lease.workflow_id
        if await journal.checkpoints.exist(workflow_id):
            return
        state, workspace = await self.lease.gather()
        session_id, number = self.lease.session_id, self.lease.number
        await self.lease.write(
            "start.kept", lambda t: write_checkpoint(t, session_id, number, START, t.catch_up(state), workspace)
        )

    async def _show_life(self) -> None:
        """Record a heartbeat regularly, so that a dead run is recognised."""
        while True:
            await self.services.clock.sleep(HEARTBEAT)
            await self.lease.transact(lambda t: t.runtimes.record_heartbeat(self.lease.session_id, self.lease.attempt))

    # ── ends ────────────────────────────────────────────────────────────────────────────────────────

    async def _finish(self, end: End) -> None:
        """Commit a clean end. The agent's process has exited, so the worktree does not change any more."""
        state, workspace = await self.lease.gather()
        child = new_session_id(self.services.clock.now())

        def finish(t: Transaction) -> bool:
            return self._end(t, _unless_paused(t, end), t.catch_up(state), workspace, child)

        _, _, outcome = end.ending
        # Nothing is waited for after the commit: a run that is torn away meanwhile must still say what follows it.
        if await self.lease.write(f"run.{outcome}", finish):
            self.services.kept_environments[self.lease.workflow_id] = self._environment()
            self.services.retry_scheduled.set()
        await left_standing(self.services, self.lease.workflow_id, state)

    def _end(self, t: Transaction, end: End, state: WorkflowState, workspace: Workspace, child: SessionId) -> bool:
        """Write the end of the run; return True if it is retried by itself."""
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
        close_questions(t, self.lease.session_id, self.lease.number)
        if end.status is WorkflowStatus.FAILED:
            self._fail_task(t, end.reason)
        if end.asks is not None:
            self._ask_person(t, end.asks)
        if end.retry is not None:
            give_task_back(t, self.lease.session_id, self.lease.number, end.reason)
        write_checkpoint(t, self.lease.session_id, self.lease.number, occasion, state, workspace)
        if not end.talked:
            self.lease.move(t, session_to, reason=end.reason)
        if not end.talked and end.status is not WorkflowStatus.IN_PROGRESS:
            _move_workflow(t, end)
        if end.status is WorkflowStatus.COMPLETED:
            withdraw_messages(t)
        if again is not None:
            t.schedule_retry(again, self.lease.session_id, self.lease.number)
        t.runs.end(self.lease.session_id, self.lease.number, e.RunEnded(outcome=outcome, reason=end.reason))
        if end.status is WorkflowStatus.IN_PROGRESS:
            self._hand_over(t, child, end.reason)
        return again is not None

    def _hand_over(self, t: Transaction, child: SessionId, reason: str) -> None:
        """Queue a new session with a compiled context, before the old one is full."""
        t.sessions.create(child, self.agent.name, self.lease.session_id, Carrying.NEEDED)
        queue(self.services, t, child, ResumePlan(way=Way.CONTEXT, reason=reason), Purpose.WORK, self._environment())

    def _fail_task(self, t: Transaction, reason: str) -> None:
        for task in t.tasks.all():
            if task.status is TaskStatus.IN_PROGRESS:
                t.tasks.fail(task.id, self.lease.attempt, self.lease.session_id, self.lease.number, reason)

    def _ask_person(self, t: Transaction, asked: e.PersonAsked) -> None:
        session_id, number = self.lease.session_id, self.lease.number
        t.tasks.interrupt(asked.task_id, session_id, number, "somebody has to say what becomes of it")
        t.append(asked, session_id=session_id, run=number)

    async def _fail(self, error: SegueError) -> None:
        """Settle a run whose agent failed, by the table of failures; no other agent is started."""
        policy = POLICIES[failure_of(error)]
        if self.lease.token is not None and not policy.keeps_token:
            session_id, number, token = self.lease.session_id, self.lease.number, self.lease.token
            await self.lease.transact(lambda t: t.runtimes.refuse_token(session_id, number, token, error.message))
            crash_point("token.refused")
        await self._settle(settling_after(error, reached=self.reached_agent, advised_on=self.advised_on))
        if not self.reached_agent and policy.session is None:
            await self._discard_worktree()

    async def _discard_worktree(self) -> None:
        """Remove the new worktree of a first start that failed; one that existed before, or is needed for a retry,
        stays."""
        row = await self.services.journal.workflows.get(self.lease.workflow_id)
        if self.workflow.base is not None or row.base is None or row.here or row.retry_at is not None:
            return
        worktree = Worktree(Path(row.worktree), row.branch, row.base)
        if await discard_worktree(Path(row.repository), worktree):
            await self.services.journal.transact(
                self.lease.workflow_id, lambda t: t.worktree_discarded(row.worktree, row.branch)
            )

    async def _settle(self, settling: Settling) -> None:
        with anyio.CancelScope(shield=True):
            await settle(self.services, self.lease.session_id, self.lease.number, settling)


def _unless_paused(t: Transaction, end: End) -> End:
    """Replace a hand-over by a pause if a pause was requested since it was decided."""
    trigger, reason = t.workflow.pause_trigger, t.workflow.pause_reason
    if end.status is not WorkflowStatus.IN_PROGRESS or trigger is None:
        return end
    return End(WorkflowStatus.PAUSED, reason or "", trigger)


def _move_workflow(t: Transaction, end: End) -> None:
    """Move the workflow to the end's status. A pause requested meanwhile also pauses a workflow that waits for a
    person, except a pause for want of money or context, since waiting costs nothing."""
    wanted = t.workflow
    t.move_workflow(end.status, reason=end.reason, trigger=end.trigger)
    asks = end.status in (WorkflowStatus.BLOCKED, WorkflowStatus.REVIEW)
    if asks and wanted.pause_trigger not in (None, Trigger.EXHAUSTION):
        t.move_workflow(WorkflowStatus.PAUSED, reason=wanted.pause_reason or "", trigger=wanted.pause_trigger)
