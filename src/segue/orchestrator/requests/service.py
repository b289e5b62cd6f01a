"""Service behind all interfaces: every request of a person."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio

from segue.drivers.environment import allowed
from segue.journal import NewWorkflowRow, Transaction
from segue.journal.redaction import redact_text
from segue.journal.rows import RunRow, WorkflowRow
from segue.memory import Memory
from segue.model.accounts import WorkflowAccount
from segue.model.agents import AgentConfiguration, Choices, Limits
from segue.model.checkpoint import CheckpointType
from segue.model.crash import crash_point
from segue.model.errors import BadInput, WrongState
from segue.model.events import RunEnded
from segue.model.ids import (
    BootId,
    Seq,
    SessionId,
    WorkflowId,
    new_session_id,
    new_workflow_id,
    slugify,
)
from segue.model.requests import (
    Answer,
    CancelRequest,
    ForkRequest,
    ImportRequest,
    OpenRequest,
    PauseRequest,
    PromptRequest,
    ResumeRequest,
    RunRequest,
)
from segue.model.snapshots import History, MessagePage, Part, Snapshot
from segue.model.status import Purpose, SessionStatus, Trigger, Way, WorkflowStatus
from segue.model.views import (
    Action,
    AgentCheck,
    AgentView,
    Answered,
    CompiledContext,
    EventPage,
    Forked,
    Imported,
    PlanView,
    Prompted,
    RecordView,
    Resumed,
    SessionDetail,
    SessionFiles,
    SessionStanding,
    Verification,
    WorkflowView,
    WorkspaceRestored,
)
from segue.orchestrator.requests import forks, imports, sessions, snapshots
from segue.orchestrator.requests.answers import Answering
from segue.orchestrator.requests.launches import full_context
from segue.orchestrator.requests.prompts import Talking
from segue.orchestrator.requests.resumption import Resuming
from segue.orchestrator.requests.secrets import refuse_secrets
from segue.orchestrator.run.allowance import changed, may_go_on, refuse_unlimited
from segue.orchestrator.run.plan_proposals import ONE_TASK, makes_no_plan
from segue.orchestrator.run.reviews import helpers_variables, refuse_unusable
from segue.orchestrator.run.spending import limits_of
from segue.orchestrator.runtime import agents, containers, projections
from segue.orchestrator.runtime.contexts import compile_workflow
from segue.orchestrator.runtime.plan_text import read_plan
from segue.orchestrator.runtime.queued_runs import queue
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.runtime.views import plan_view, view_of
from segue.orchestrator.settling.recovery import (
    Settling,
    checkpoint_ref,
    left_standing,
    settle,
    settling_for,
    withdraw_messages,
    write_checkpoint,
)
from segue.protocol.accounts import account_of
from segue.protocol.admission import (
    FilesMoving,
    PauseCourse,
    Starting,
    admit_cancel,
    admit_pause,
    admit_pause_at_once,
)
from segue.protocol.capacity import Rung
from segue.resume.planner import ResumePlan
from segue.snapshot.compare import SnapshotDiff
from segue.snapshot.gather import Occasion, gather
from segue.state.moves import SESSION_ENDED, WORKFLOW_ENDED
from segue.state.pauses import RequestedPause
from segue.workspace.containers import require_engine
from segue.workspace.git import branch_exists, read_state, repository_root

W = WorkflowStatus
END_WITHIN = 15.0
"""Seconds that a cancelled run gets to settle itself."""
FINISHED = WORKFLOW_ENDED | {W.FAILED}
WAITING = frozenset({W.BLOCKED, W.REVIEW})
"""Statuses in which the work waits for a person's answer."""


class Orchestrator:
    """Service that starts, pauses, answers, resumes, cancels and shows workflows."""

    def __init__(self, services: RuntimeServices, resuming: Resuming) -> None:
        self._services = services
        self._journal = services.journal
        self._resuming = resuming
        self._answering = Answering(services, resuming)
        self._talking = Talking(resuming)
        self.memory = Memory(services.journal)
        self._naming = anyio.Lock()

    @property
    def boot(self) -> BootId:
        return self._services.boot

    @property
    def busy(self) -> bool:
        """Return True while an agent works, or a run or retry with its variables waits."""
        return bool(self._services.live or self._services.environments or self._services.kept_environments)

    # ── watching ────────────────────────────────────────────────────────────────────────────────────

    async def workflow(self, name: str) -> WorkflowView:
        """Return the present view of a workflow, by id or slug."""
        return view_of(*await self._journal.present(name))

    async def workflows(self, directory: Path | None, statuses: Sequence[str]) -> list[WorkflowView]:
        """Return the workflows, newest first, in these statuses if any are given; with `directory`, those whose
        worktree, or else repository, contains it."""
        rows = await self._journal.workflows.all(_statuses(statuses))
        if directory is not None:
            rows = _those_at(rows, await anyio.Path(directory).resolve())
        return [await self.workflow(row.id) for row in rows]

    async def recent(self, most: int) -> list[WorkflowView]:
        """Return at most `most` workflows: first those that wait for a person, then unfinished ones, then finished
        ones, each group by last change."""
        rows = await self._journal.workflows.all()
        asking = await self._journal.questions.workflows_asking()

        def order(row: WorkflowRow) -> tuple[bool, bool, float]:
            waits = row.status in WAITING or row.id in asking
            return not waits, row.status in FINISHED, -row.updated_at.timestamp()

        rows.sort(key=order)
        return [await self.workflow(row.id) for row in rows[:most]]

    async def plan(self, name: str) -> PlanView:
        """Return the plan that waits for approval, else the adopted one."""
        row = await self._journal.workflows.get(name)
        return plan_view(row, await self._journal.state(row.id))

    async def events(self, name: str, after: int, wait: float, limit: int) -> EventPage:
        """Return the events after this number, at most `limit`; without any, wait up to `wait` seconds for them."""
        row = await self._journal.workflows.get(name)
        records = await self._journal.records(row.id, Seq(after), limit)
        if not records and wait > 0:
            with anyio.move_on_after(wait):
                records = await self._journal.wait(row.id, Seq(after), limit)
        head = await self._journal.head(row.id)
        return EventPage(events=tuple(RecordView.of(record) for record in records), head=head)

    async def snapshots(self, name: str) -> list[Snapshot]:
        """Return the workflow's snapshots, newest first, with the findings of those that were studied."""
        return await snapshots.snapshots(self._services, name)

    async def snapshot(self, name: str, snapshot_id: str) -> Snapshot:
        return await snapshots.snapshot(self._services, name, snapshot_id)

    async def snapshot_diff(self, name: str, before: str, after: str) -> SnapshotDiff:
        return await snapshots.difference(self._services, name, before, after)

    async def detailed_history(
        self, name: str, snapshot_id: str, category: Part, page: MessagePage | None = None
    ) -> History:
        """Return one part of a snapshot in full; only messages come in pages."""
        return await snapshots.detailed_history(self._services, name, snapshot_id, category, page or MessagePage())

    async def context(self, name: str, budget: int | None) -> CompiledContext:
        """Compile the context that a successor would read if the work went on now; without a budget, the configured one
        is used."""
        row = await self._journal.workflows.get(name)
        present = await self._resuming.launching.present(row)
        compiled = await compile_workflow(
            self._services, row.id, present, budget or self._services.rules.context_budget
        )
        return CompiledContext(
            workflow_id=row.id, context=compiled.text, exam=compiled.exam, sections=compiled.sections
        )

    async def verify(self, name: str) -> Verification:
        """Recompute the workflow's hash chain and return the result."""
        verdict = await self._journal.verify((await self._journal.workflows.get(name)).id)
        return Verification(verified=verdict.verified, events=verdict.events, problem=verdict.problem)

    async def sessions(self, name: str) -> list[SessionDetail]:
        return await sessions.details(self._services, await self._journal.workflows.get(name))

    async def usage(self, name: str) -> WorkflowAccount:
        """Return the workflow's tokens and cost, by session and by model."""
        row = await self._journal.workflows.get(name)
        return account_of(row.id, await self._journal.state(row.id))

    async def session(self, session_id: str) -> SessionDetail:
        return await sessions.detail(self._services, session_id)

    async def session_files(self, session_id: str) -> SessionFiles:
        """Write the session's files anew from the journal, and return whether the old ones were right."""
        return await projections.rebuild(self._services, session_id)

    async def session_standing(self, session_id: str) -> SessionStanding:
        """Return whether the session's agent must be started again, and whether that is possible."""
        return await sessions.standing(self._services, session_id)

    # ── starting ────────────────────────────────────────────────────────────────────────────────────

    async def create(self, request: RunRequest, agent: str, choices: Choices) -> WorkflowView:
        """Begin a workflow with the agent and the choices that were resolved for the request."""
        configured = await self._require_agents(agent, choices, request.environment)
        # Names are given one at a time: two requests at the same moment would find the same name free.
        async with self._naming:
            return await self._create(request, configured, choices)

    async def _require_agents(self, name: str, choices: Choices, environment: Mapping[str, str]) -> AgentConfiguration:
        """Return the agent; refuse if a program or an engine is missing, for it or its helpers."""
        agent = agents.agent_named(self._services, name)
        for each in (agent, *agents.helpers(self._services, choices)):
            agents.require(each, environment)
            if each.container is not None:
                await require_engine(containers.engine_of(self._services))
        return agent

    async def _create(self, request: RunRequest, agent: AgentConfiguration, choices: Choices) -> WorkflowView:
        """Refuse everything that can be refused before anything is written, then create the workflow."""
        refuse_secrets(choices)
        refuse_unlimited(choices.limits)
        refuse_unusable(self._services, agent, choices, request.environment)
        if not request.issue.title.strip():
            raise BadInput("The issue is empty.", hint="Say in a sentence what is to be done.")
        proposed = request.propose and request.plan is None
        plan = None if proposed and agent.plans else read_plan(request.issue, request.plan)
        repository = await repository_root(request.repository)
        slug = await self._free_slug(request.issue.title, repository)
        now = self._services.clock.now()
        new = NewWorkflowRow(
            id=new_workflow_id(now),
            slug=slug,
            issue=request.issue,
            plan=plan,
            agent=agent.name,
            permissions=request.permissions,
            repository=str(repository),
            here=request.here,
            worktree=str(repository if request.here else self._services.home / "worktrees" / slug),
            branch=(await read_state(repository, None)).branch if request.here else f"segue/{slug}",
            choices=choices,
        )
        needed = (*agent.environment, *choices.variables, *helpers_variables(self._services, choices))
        variables = allowed(request.environment, needed)

        def begin(t: Transaction) -> None:
            self._begin(t, new_session_id(now), new.agent, variables)
            if proposed and plan is not None:
                t.append(makes_no_plan(new.agent, ONE_TASK))

        crash_point("create.before")
        await self._journal.create(new, begin)
        crash_point("create.after")
        return await self.workflow(new.id)

    async def import_session(self, request: ImportRequest) -> Imported:
        return await imports.import_session(self._services, request, self._free_slug)

    async def _free_slug(self, title: str, repository: Path) -> str:
        """Return a name from the title that no workflow has, and no branch segue/NAME of this repository."""
        wanted = slugify(redact_text(title))
        taken = await self._journal.workflows.slugs_like(wanted)
        number = 1
        slug = wanted
        while slug in taken or await branch_exists(repository, f"segue/{slug}"):
            number += 1
            slug = f"{wanted}-{number}"
        return slug

    def _begin(self, t: Transaction, session_id: SessionId, agent: str, variables: Mapping[str, str]) -> None:
        """Create the first session of a new workflow, and queue its run."""
        t.sessions.create(session_id, agent)
        plan = ResumePlan(way=Way.FIRST, reason="the workflow is new")
        queue(self._services, t, session_id, plan, Purpose.WORK, variables)

    # ── pausing ─────────────────────────────────────────────────────────────────────────────────────

    async def pause(self, name: str, request: PauseRequest, wait: bool) -> Action:
        """Pause a workflow at the next boundary, or at once where no agent works; a second request changes nothing."""
        row = await self._journal.workflows.get(name)
        state = await self._journal.state(row.id)
        launching, services = self._resuming.launching, self._services
        force_at = services.clock.now() + timedelta(seconds=services.rules.pause_force_after)

        def ask(t: Transaction) -> tuple[PauseCourse, bool]:
            """Request the pause; return its course, and whether a retry was called off."""
            called_off = t.cancel_retry(state, request.reason or "a pause was requested")
            course = admit_pause(launching.standing(t))
            if course is PauseCourse.AT_BOUNDARY:
                t.request_pause(RequestedPause(trigger=Trigger.PAUSE, reason=request.reason, force_at=force_at))
            return course, called_off

        crash_point("pause.before")
        course, called_off = await launching.decide(row.id, ask)
        crash_point("pause.requested")
        services.kept_environments.pop(row.id, None)
        if course is PauseCourse.AT_BOUNDARY:
            if (live := services.live.get(row.id)) is not None:
                live.pause.set()
            if wait:
                await self._until_settled(row.id)
        else:
            await launching.put_away(row.id, request.reason or "the workflow is paused")
            try:
                await self._pause_at_once(row.id, request.reason)
            except (Starting, FilesMoving):
                # A run has begun since, or its files are being changed.
                again = await self.pause(name, request, wait)
                return replace(again, retry_called_off=called_off or again.retry_called_off)
        return replace(await self._pause_answer(row.id), retry_called_off=called_off)

    async def _pause_at_once(self, workflow_id: WorkflowId, reason: str) -> None:
        """Pause a workflow on which no agent works, with a snapshot of it as it is; a queued run is not started."""
        state = await self._journal.state(workflow_id)
        if state.status is W.PAUSED:
            return
        workspace = await gather(state.worktree, checkpoint_ref(workflow_id, state), state.base)
        occasion = Occasion(
            type=CheckpointType.PAUSE, trigger=Trigger.PAUSE, reason=reason, snapshot=True, clean_boundary=True
        )

        def pause(t: Transaction) -> RunRow | None:
            if not admit_pause_at_once(self._resuming.launching.standing(t)):
                return None
            run, session_id = t.runs.open(), t.sessions.current().id
            write_checkpoint(t, session_id, run.number if run else 0, occasion, t.catch_up(state), workspace)
            if run is not None:
                t.runs.end(run.session_id, run.number, RunEnded(outcome="not_started", reason=reason))
            t.move_workflow(W.PAUSED, reason=reason, trigger=Trigger.PAUSE)
            return run

        unstarted = await self._journal.transact(workflow_id, pause)
        if unstarted is not None:
            # Its place in the queue becomes free for the next run.
            self._services.environments.pop((unstarted.session_id, unstarted.number), None)
            self._services.queue.forget(unstarted.session_id, unstarted.number)
        await left_standing(self._services, workflow_id, state)

    async def _until_settled(self, workflow_id: WorkflowId) -> None:
        """Wait until the workflow is not in progress any more."""
        while True:
            commit = self._journal.next_commit(workflow_id)
            if (await self._journal.state(workflow_id)).status is not W.IN_PROGRESS:
                return
            await commit.wait()

    async def _pause_answer(self, workflow_id: WorkflowId) -> Action:
        """Build the answer to a pause: requested or paused; raise WrongState if the workflow was moved elsewhere."""
        state = await self._journal.state(workflow_id)
        if state.status is W.IN_PROGRESS:
            return Action(status="pause_requested", workflow_id=workflow_id)
        if state.status is not W.PAUSED:
            raise WrongState(f"The workflow was not paused: it is {state.status} now.")
        return Action(status="paused", workflow_id=workflow_id, snapshot_id=state.last_snapshot)

    # ── going on ────────────────────────────────────────────────────────────────────────────────────

    async def resume(self, name: str, request: ResumeRequest) -> Resumed:
        return await self._resuming.resume(name, request)

    async def limit(self, name: str, limits: Limits, wait_for_quota: bool | None = None) -> WorkflowView:
        """Change the limits of a workflow from now on, and withdraw a pause for time or context that has not happened
        and has lost its reason; raise WrongState if it has ended."""
        row = await self._journal.workflows.get(name)
        refuse_unlimited(limits)
        state, room = await self._journal.state(row.id), await self._has_room(row)

        def change(t: Transaction) -> None:
            if t.workflow.status in WORKFLOW_ENDED:
                hint = "Go on from it in a new workflow: `segue sessions fork`."
                raise WrongState(f"The workflow is {t.workflow.status}; there is nothing left to limit.", hint=hint)
            t.change_limits(changed(limits_of(t.workflow), limits), wait_for_quota)
            if may_go_on(t.workflow.pause_trigger, limits_of(t.workflow), t.catch_up(state), t.now, room=room):
                t.withdraw_pause()

        await self._journal.transact(row.id, change)
        if (live := self._services.live.get(row.id)) is not None:
            live.terms.set()
        return await self.workflow(row.id)

    async def _has_room(self, row: WorkflowRow) -> bool:
        """Return True if the agent's context is not too full to go on; False also if there is no session or the agent
        is not configured."""
        session, agent = (await self._journal.state(row.id)).session, self._services.agents.get(row.agent)
        if session is None or agent is None:
            return False
        return not await full_context(self._services, session, row.id, agent, (Rung.PAUSE, Rung.FORCE))

    async def fork(self, session_id: str, request: ForkRequest) -> Forked:
        return await forks.fork(self._services, session_id, request, self._free_slug)

    async def open_session(self, session_id: str, request: OpenRequest) -> Resumed:
        """Start the session's agent again, without a prompt."""
        return await self._resuming.open(session_id, request.environment)

    async def prompt(self, name: str, request: PromptRequest) -> Prompted:
        return await self._talking.prompt(name, request)

    async def prompt_session(self, session_id: str, request: PromptRequest) -> Prompted:
        """Send a message to the agent of the workflow whose current session this is."""
        return await self._talking.prompt((await self._resuming.workflow_of(session_id)).id, request)

    async def restore_workspace(self, name: str) -> WorkspaceRestored:
        """Make the worktree again if it is gone, and start no agent."""
        return await self._resuming.restore_workspace(name)

    # ── agents ──────────────────────────────────────────────────────────────────────────────────────

    async def agents(self, environment: Mapping[str, str]) -> list[AgentView]:
        """List the configured agents with their programs on the caller's PATH; start none."""
        return agents.agents(self._services, environment)

    async def check_agent(self, name: str, environment: Mapping[str, str]) -> AgentCheck:
        """Start the agent's program, let it introduce itself, and end it; no conversation is opened."""
        return await agents.check(self._services, name, environment)

    # ── answering and ending ────────────────────────────────────────────────────────────────────────

    async def answer(self, name: str, answer: Answer) -> Answered:
        """Answer the oldest open question: a permission request, else the plan, else a task."""
        return await self._answering.answer(name, answer)

    async def cancel(self, name: str, request: CancelRequest) -> Action:
        """Cancel a workflow for good: end its run and containers, and leave the worktree as it is."""
        row = await self._journal.workflows.get(name)
        state = await self._journal.state(row.id)
        stop = Stop(trigger=Trigger.CANCEL, reason=request.reason or "cancelled by the user")

        def cancel(t: Transaction) -> None:
            if not admit_cancel(self._resuming.launching.standing(t)):
                return
            t.cancel_retry(state, stop.reason)
            withdraw_messages(t)
            t.move_workflow(W.CANCELLED, reason=stop.reason, trigger=Trigger.CANCEL)
            session = t.sessions.current()
            if t.runs.open() is None and session.status not in SESSION_ENDED | {SessionStatus.FAILED}:
                t.sessions.move(session.id, SessionStatus.CANCELLED, reason=stop.reason)

        crash_point("cancel.before")
        await self._resuming.launching.decide(row.id, cancel)
        crash_point("cancel.after")
        self._services.kept_environments.pop(row.id, None)
        await self._end_run(row.id, settling_for(stop))
        await containers.end_all(self._services, row.id)
        for session in await self._journal.sessions.of(row.id):
            await projections.refresh(self._services, session.id)
        return Action(status="cancelled", workflow_id=row.id)

    async def _end_run(self, workflow_id: WorkflowId, settling: Settling) -> None:
        """End the live run and wait within a limit until it has settled; settle every run that is open after that."""
        live = self._services.live.get(workflow_id)
        if live is not None:
            live.tear_away(settling.stop)
            with anyio.move_on_after(END_WITHIN):
                await live.done.wait()
        for run in await self._journal.runs.open(workflow_id):
            await settle(self._services, run.session_id, run.number, settling)
            self._services.queue.forget(run.session_id, run.number)


def _statuses(names: Sequence[str]) -> list[WorkflowStatus]:
    """Convert names to statuses of workflows; raise BadInput for an unknown one."""
    try:
        return [WorkflowStatus(name) for name in names]
    except ValueError as error:
        known = ", ".join(WorkflowStatus)
        raise BadInput(f"There is no such status: {error}.", hint=f"Known statuses: {known}.") from error


def _those_at(rows: Sequence[WorkflowRow], directory: anyio.Path) -> list[WorkflowRow]:
    """Return the workflows whose worktree contains `directory`; if there are none, those whose repository does."""

    def inside(place: str) -> bool:
        return directory.is_relative_to(place)

    return [row for row in rows if inside(row.worktree)] or [row for row in rows if inside(row.repository)]
