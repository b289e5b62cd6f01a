"""Life of a run, from start or resume to pause, end or crash: prepare, open the agent, hold the dialogue, end."""

import logging
from contextlib import AsyncExitStack
from dataclasses import replace

from segue import drivers
from segue.drivers import Agent, Left
from segue.journal import Transaction
from segue.journal.rows import RunRow
from segue.model.crash import crash_point
from segue.model.errors import SegueError
from segue.model.events import UsageReported
from segue.model.ids import SessionId
from segue.model.status import SAME_CONVERSATION, RunStatus, SessionStatus, Trigger, WaitingFor, Way, WorkflowStatus
from segue.orchestrator.run import fixer
from segue.orchestrator.run.agent_start import (
    agent_to_join,
    container_of,
    launch_for,
    open_agent,
    process_of,
    started_of,
)
from segue.orchestrator.run.allowance import Allowance
from segue.orchestrator.run.capacity_meter import Capacity
from segue.orchestrator.run.closure import commit_end, settle_failure, settle_run
from segue.orchestrator.run.dialogue import Dialogue
from segue.orchestrator.run.forced_pauses import force_pauses
from segue.orchestrator.run.lease import Lease, Superseded, claim
from segue.orchestrator.run.preparation import collect_occasion, prepare_worktree, save_start
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.run.spending import limits_of
from segue.orchestrator.runtime import projections
from segue.orchestrator.runtime.concurrency import alongside, cancelled_by
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling import retry_schedule
from segue.orchestrator.settling.recovery import Settling, settle, settling_for
from segue.orchestrator.settling.run_ends import CANCELLED, INTERNAL, End, RunStopped
from segue.protocol.retries import may_start_over
from segue.resume.advice import NO_ADVICE
from segue.state.fold import WorkflowState

log = logging.getLogger("segue")

MOST_REPORTS = 500
"""Reports of usage that are looked back at."""
HEARTBEAT = 10.0
"""Seconds between two heartbeats of a run."""


async def run_session(services: RuntimeServices, session_id: SessionId, number: int) -> None:
    """Wait for a slot, claim a queued run and execute it to its end; errors are logged and settled, never raised."""
    journal = services.journal
    try:
        queued = await journal.runs.get(session_id, number)
        async with services.slots.one(queued.queued_at) as has_slot:
            if not has_slot:
                return
            # One that was paused or cancelled while it waited must not be taken for the one that may have followed it.
            if (run := await journal.runs.get(session_id, number)).status is not RunStatus.ENDED:
                with services.alive(run.workflow_id) as live:
                    if (lease := await claim(services, live, run)) is not None:
                        state = await journal.state(run.workflow_id)
                        await Run(lease, run, state).carry_out()
                    await projections.refresh(services, session_id)
            services.environments.pop((session_id, number), None)
    except Exception:  # whatever it is, the workflow must not hang on it
        log.exception("run %s/r%s could not be brought to its end", session_id, number)
        try:
            await settle(services, session_id, number, settling_for(INTERNAL))
        except Exception:  # the database, perhaps; the sweep tries again
            log.exception("run %s/r%s is left to the sweep", session_id, number)


class Run:
    """Life of one agent process, from the claim of its run to an end that is written down."""

    def __init__(self, lease: Lease, run: RunRow, state: WorkflowState) -> None:
        """Prepare a claimed run; the spending meter begins with the usage of earlier runs."""
        services = lease.services
        self.lease = lease
        self.way = run.way
        self.reached_agent = False
        self.advised_on: str | None = None
        """The step that a second agent is being asked about."""
        self._services = services
        self._live = lease.live
        self._began_with = state
        self._agent = lease.configuration
        self._environment = dict(services.environments.get((lease.session_id, lease.number), {}))
        self._recorder = Recorder(
            journal=services.journal,
            workflow_id=lease.workflow_id,
            session_id=lease.session_id,
            run=lease.number,
            attempt=lease.attempt,
        )
        lease.meter.fill(limits_of(lease.workflow), state)

    async def carry_out(self) -> None:
        """Work through the plan and commit the end; a stop, a lost lease or a failure is settled instead."""
        crash_point("run.claimed")
        try:
            async with cancelled_by(self._live.stopping):
                await self._finish(await self._work())
                return
            assert self._live.stop is not None, "a run that is stopped has the reason"
            raise RunStopped(self._live.stop)
        except RunStopped as stopped:
            await self._settle(settling_for(stopped.stop))
        except Superseded:
            await self._settle(settling_for(CANCELLED))
        except SegueError as error:
            await settle_failure(self.lease, error, reached=self.reached_agent, advised_on=self.advised_on)

    async def _work(self) -> End:
        """Prepare the worktree, ask the fixer if one is due, open the agent, hold the dialogue, and return the run's
        end; a completed workflow's agent is closed first."""
        git = await prepare_worktree(self.lease, self._recorder, self._environment)
        occasion = await collect_occasion(self.lease, self._began_with, self.way, git)
        if (end := await self._ask_fixer()) is not None:
            return end
        if not self.lease.has_worktree:
            await self.lease.write("session.starting", lambda t: self.lease.move(t, SessionStatus.STARTING))
        async with AsyncExitStack() as stack:
            left = await agent_to_join(self.lease, self.way)
            agent = await self._open_agent(stack, left)
            await self._ready(agent)
            await save_start(self.lease, self._began_with)
            async with alongside(self._record_heartbeats):
                occasion, capacity = replace(occasion, way=self.way), await self._capacity()
                dialogue = Dialogue(self.lease, agent, self._recorder, occasion, capacity, self._environment)
                end = await dialogue.hold(joined=left.turn if left else None)
                if end.status is WorkflowStatus.COMPLETED:
                    await agent.close()
                return end

    async def _ask_fixer(self) -> End | None:
        """Ask a second agent before the last try of a step; return the end of the run if no further try follows,
        None if the run goes on or no fixer is due."""
        state, workflow = self._began_with, self.lease.workflow
        failures = retry_schedule.to_be_advised_on(self._services, workflow, state)
        if not failures:
            return None
        self.advised_on = failures[-1].step
        async with alongside(lambda: force_pauses(self.lease, self._recorder), Allowance(self.lease).time_out):
            advice = await fixer.consult(self.lease, self._environment, failures)
        self.advised_on = None
        match advice.verdict:
            case "fix":
                return None
            case "rewind" if may_start_over(self._services.rules.retries, state.replans):
                return retry_schedule.start_over_as_advised(advice, self._services.clock.now())
            case "rewind" | "escalate":
                look = f"a person has to look at it: {advice.advice or NO_ADVICE}"
                return End(WorkflowStatus.PAUSED, look, Trigger.CRASH)

    async def _open_agent(self, stack: AsyncExitStack, left: Left | None) -> Agent:
        """Open the run's agent in the stack and return it; `way` becomes the way that was taken in fact."""
        driver = drivers.load(self._agent.driver)
        launch = launch_for(self.lease, self._agent, self._environment, self._recorder)
        agent, self.way = await open_agent(stack, self.lease, driver, self.way, launch, left)
        return agent

    async def _ready(self, agent: Agent) -> None:
        """Write that the agent has started and waits for a prompt: its process, its token and the session's status."""
        lease = self.lease
        started = started_of(agent, lease.attempt, resumed=self.way in SAME_CONVERSATION)
        process = process_of(agent, lease.attempt, await container_of(lease, self._agent, self.way))

        def ready(t: Transaction) -> None:
            t.append(started, session_id=lease.session_id, run=lease.number)
            t.runtimes.occupy(lease.session_id, process)
            t.runtimes.capture_token(lease.session_id, lease.number, lease.attempt, agent.token)
            lease.move(t, SessionStatus.WAITING_FOR_INPUT, waiting_for=WaitingFor.PROMPT)

        await lease.write("session.ready", ready)
        lease.token = agent.token
        self.reached_agent = True

    async def _capacity(self) -> Capacity:
        """Return the meter of the context; a conversation that goes on is given its earlier usage reports, oldest
        first."""
        if self.way not in SAME_CONVERSATION:
            return Capacity(self.lease, self._agent, joined=self.way is Way.FORK)
        lease = self.lease
        records = await self._services.journal.last_records(lease.workflow_id, ["usage.reported"], limit=MOST_REPORTS)
        mine = [record.event for record in reversed(records) if record.session_id == lease.session_id]
        before = [event for event in mine if isinstance(event, UsageReported)]
        return Capacity(lease, self._agent, joined=not before or len(records) == MOST_REPORTS, before=before)

    async def _record_heartbeats(self) -> None:
        """Record a heartbeat of this attempt regularly, until cancelled, so that a dead run is recognised."""
        while True:
            await self._services.clock.sleep(HEARTBEAT)
            await self.lease.transact(lambda t: t.runtimes.record_heartbeat(self.lease.session_id, self.lease.attempt))

    async def _finish(self, end: End) -> None:
        """Commit the end of the run, of whatever kind."""
        await commit_end(self.lease, end, self._environment)

    async def _settle(self, settling: Settling) -> None:
        """Settle the interrupted run, even while it is being cancelled."""
        await settle_run(self.lease, settling)
