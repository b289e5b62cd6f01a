"""Launch of a workflow's agent, for every request: begin the next run, or join the open one.

The workflow's lock is held from reading the present state to writing the run that follows from it. So two requests at
the same moment make one launch, and the second gets the first one's answer.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

import anyio

from segue.drivers.environment import allowed
from segue.journal import Transaction
from segue.journal.rows import RunRow, SessionRow, WorkflowRow
from segue.model.agents import AgentConfiguration, Choices
from segue.model.checkpoint import Checkpoint
from segue.model.codec import decode
from segue.model.crash import crash_point
from segue.model.errors import SegueError, WrongState
from segue.model.events import PersonAnswered, PlanReopened, Price, PromptQueued, Warned
from segue.model.ids import SessionId, WorkflowId, new_prompt_id, new_session_id
from segue.model.pictures import Shown
from segue.model.plan import TaskStatus
from segue.model.status import (
    SAME_CONVERSATION,
    Carrying,
    PromptStatus,
    Purpose,
    SessionStatus,
    Trigger,
    Way,
    WorkflowStatus,
)
from segue.model.views import Resumed
from segue.orchestrator.requests import rewinds
from segue.orchestrator.requests.rewinds import TakenBack
from segue.orchestrator.run.allowance import refuse_used_up, used_up
from segue.orchestrator.run.capacity_meter import ladder_of
from segue.orchestrator.run.reviews import helpers_variables
from segue.orchestrator.run.spending import limits_of
from segue.orchestrator.runtime import containers, fork_origins, projections
from segue.orchestrator.runtime.concurrency import both, within
from segue.orchestrator.runtime.contexts import Present
from segue.orchestrator.runtime.queued_runs import queue
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.runtime.services import DIVERGED, RuntimeServices
from segue.protocol.admission import (
    FilesMoving,
    LaunchCourse,
    LaunchRequest,
    Leaving,
    OpenRun,
    Standing,
    admit_launch,
    admit_prompt,
    refuse_untimely,
)
from segue.protocol.budgets import LimitReached
from segue.protocol.capacity import Rung, usable_window
from segue.resume.budget import budget_for
from segue.resume.history import KINDS as HISTORY_KINDS
from segue.resume.history import history
from segue.resume.planner import Means, ResumePlan, plan_resume
from segue.resume.planning import planning_prompt
from segue.resume.prompts import Occasion, task_prompt
from segue.state.fold import SessionState, WorkflowState
from segue.state.moves import SESSION_ENDED
from segue.state.session import TELLING
from segue.workspace.comparison import divergence
from segue.workspace.git import read_state

T = TypeVar("T")
W = WorkflowStatus

FILES_WITHIN = 30.0
"""Seconds that a request waits until the workflow's files are in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Request to launch a workflow's agent, with the caller's environment variables."""

    purpose: Purpose
    environment: Mapping[str, str]
    way: Way | None = None
    agent: AgentConfiguration
    choices: Choices | None = None
    """Choices for an agent that takes over from another; None keeps the present ones."""
    back: TakenBack | None = None
    """Rewind whose files are restored already; the launch writes its event."""
    due: datetime | None = None
    """Time of the retry that this launch is; it is refused unless the retry is still scheduled for then."""
    word: Callable[[Transaction], None] | None = None
    """Function that writes a person's answer, in the transaction of the launch."""
    reason: str = "resumed"
    alone: bool = False
    """Flag that the caller holds the workflow's files (`alone_with`)."""
    changed: tuple[str, ...] | None = None
    """Changes in the worktree from before the caller's own change; None: the launch compares the worktree itself."""
    reopens: str = ""
    """Reason to plan the remaining tasks again; empty if they are not planned again."""
    warning: Warned | None = None
    """Warning to append to the run that begins, if any."""
    context: str = ""
    """Context that a person wrote for a new conversation; empty for a compiled one."""
    message: PromptQueued | None = None
    """Message for the agent, queued together with the run."""
    pictures: Sequence[Shown] = ()
    """Pictures of the message."""

    @property
    def launch(self) -> LaunchRequest:
        """Build the values of the request that its admission depends on."""
        return LaunchRequest(
            purpose=self.purpose,
            agent=self.agent.name,
            way=self.way,
            goes_back=self.back is not None,
            answers=self.word is not None,
            holds_files=self.back is not None or self.alone,
            due=self.due,
        )


async def means_of(
    services: RuntimeServices, state: WorkflowState, workflow_id: WorkflowId, agent: AgentConfiguration
) -> Means:
    """Collect what the choice of a way to resume depends on, for the state's session and this agent."""
    session = state.session
    assert session is not None, "a workflow is created with its first session"
    records = await services.facts.last_records(workflow_id, HISTORY_KINDS, state)
    standing = await services.journal.checkpoints.base(workflow_id, state)
    return Means(
        session=session,
        agent=agent,
        budget=(services.rules.context_budget or budget_for(state.usage.window)) if standing else None,
        history=history(records, services.rules.history),
        request=_request(state, standing, services.rules.plan_tasks),
        original=await fork_origins.original(services, state),
        full=await full_context(services, session, workflow_id, agent),
        container=await containers.closed(services, state, workflow_id),
    )


async def full_context(
    services: RuntimeServices,
    session: SessionState,
    workflow_id: WorkflowId,
    agent: AgentConfiguration,
    rungs: Sequence[Rung] = (Rung.FORK, Rung.PAUSE, Rung.FORCE),
) -> str:
    """Return why the work cannot go on in the session's context; empty if it is below the lowest mark of these rungs,
    or the tokens or the window are unknown."""
    if session.overflowed and not agent.compacts:
        return "the agent's context is full"
    model = decode(Choices, (await services.journal.workflows.get(workflow_id)).choices).model
    ladder = ladder_of(services.rules.capacity, agent, model, session.model)
    tokens, window = session.usage.context_tokens, usable_window(ladder, session.usage.window)
    marks = [mark for rung, mark in ladder.marks if rung in rungs]
    if not marks or not tokens or not window or tokens < min(marks) * window:
        return ""
    return f"the agent's context is full ({tokens / window:.0%})"


def _request(state: WorkflowState, checkpoint: Checkpoint | None, most: int) -> int:
    """Return the length in characters of the prompt that a new conversation would begin with; 0 if no task or plan is
    asked for."""
    occasion = Occasion(way=Way.FRESH, checkpoint=checkpoint, git=checkpoint.git if checkpoint else None)
    if state.issue is not None and state.planning is not None:
        return len(planning_prompt(state.issue, state.planning, state.marks, occasion, most))
    if state.issue is None or state.plan is None or state.next_task is None:
        return 0
    return len(task_prompt(state.issue, state.plan, state.next_task, occasion))


class Launching:
    """Service that begins runs, or joins the open one."""

    def __init__(self, services: RuntimeServices) -> None:
        """Begin with no workflow whose files are being changed."""
        self.services = services
        self._journal = services.journal
        self._files_moving: dict[WorkflowId, anyio.Event] = {}
        """Workflows whose files are being changed, each with the event of the change's end; no agent is started
        meanwhile."""

    async def launch(self, row: WorkflowRow, ask: Ask) -> Resumed:
        """Begin the next run or join the open one, and write the request's answer, rewind and message, in one
        transaction. At a used-up limit, write an answer and pause; refuse work without one."""
        state = await self._journal.state(row.id)
        spent = self._spent(row, state) if ask.purpose is Purpose.WORK else None
        if spent is not None and ask.word is None:
            refuse_used_up(spent)
        after = rewinds.after(state, ask.back.event) if ask.back else state
        means, changes = await both(
            lambda: means_of(self.services, after, row.id, ask.agent), lambda: self.divergence(after, row.id)
        )
        changes = changes if ask.changed is None else ask.changed
        child = new_session_id(self.services.clock.now())

        def go_on(t: Transaction) -> Resumed:
            standing = self.standing(t)
            refuse_untimely(standing, ask.launch)
            if ask.message is not None:
                # Checked before a run is queued: a later refusal would leave its variables in memory.
                admit_prompt(standing, len(t.prompts.waiting()), self.services.rules.messages_waiting)
            if ask.word is not None:
                ask.word(t)
                if spent is not None:
                    return self._rest(t, spent)
            elif ask.purpose is Purpose.WORK:
                _give_back(t, state)
            # A chat goes on in its conversation, however full the context is.
            full = means.full if ask.purpose is Purpose.WORK else ""
            now = replace(means, session=_now(t, state), full=full)
            launched = self._join(t, ask, state) or self._begin(t, ask, now, child)
            if ask.message is not None:
                t.prompts.queue(ask.message, t.sessions.current().id, None, ask.pictures)
            if launched.status == "resumed":
                for sentence in changes:
                    warning = Warned(code=DIVERGED, message=sentence)
                    t.append(warning, session_id=launched.session, run=launched.run)
            return replace(
                launched,
                paused_at=row.paused_at,
                tasks_done=sum(task.status is TaskStatus.COMPLETED for task in t.tasks.all()),
                tasks_remaining=sum(task.status is not TaskStatus.COMPLETED for task in t.tasks.all()),
                divergence=changes,
            )

        crash_point("resume.before")
        try:
            launched = await self._journal.transact(row.id, go_on)
        except Leaving:
            # A run that is ending is not joined: the next one begins after its end.
            await self._until_gone(row.id)
            launched = await self._journal.transact(row.id, go_on)
        crash_point("resume.after")
        if (live := self.services.live.get(row.id)) is not None:
            live.spoken.set()
            live.terms.set()
        if launched.session != state.current_session and state.current_session is not None:
            await projections.refresh(self.services, state.current_session)
        return launched

    def _spent(self, row: WorkflowRow, state: WorkflowState) -> LimitReached | None:
        """Return the limit of tokens or money that is used up, so that work would stop at once; None if none is."""
        return used_up(limits_of(row), state, self.services.clock.now())

    async def refuse_spent(self, row: WorkflowRow) -> None:
        """Raise if a limit of tokens or money is used up, for callers that do work before their launch; else do
        nothing."""
        if (spent := self._spent(row, await self._journal.state(row.id))) is not None:
            refuse_used_up(spent)

    def _rest(self, t: Transaction, spent: LimitReached) -> Resumed:
        """Pause the workflow at its used-up limit, after an answer is written, and return the result; raise if a run is
        open."""
        if t.runs.open() is not None:
            refuse_used_up(spent)
        if t.workflow.status is not W.PAUSED:
            t.move_workflow(W.PAUSED, reason=spent.reason, trigger=spent.trigger)
        return at_rest(t, "paused", spent.reason)

    async def _until_gone(self, workflow_id: WorkflowId) -> None:
        """Wait within a limit until the workflow's live run is done; return at once if there is none."""
        if (live := self.services.live.get(workflow_id)) is not None:
            async with within(self.services.clock, self.services.rules.delivery_wait):
                await live.done.wait()

    def _join(self, t: Transaction, ask: Ask, state: WorkflowState) -> Resumed | None:
        """Join the open run, or turn its chat to work; None if a new run has to begin."""
        course, run = admit_launch(self.standing(t), ask.launch), t.runs.open()
        if run is None or course is LaunchCourse.BEGIN:
            return None
        if course is LaunchCourse.JOIN:
            return _answer(t, run, "joined", "it was on its way already")
        t.runs.set_purpose(run.session_id, run.number, Purpose.WORK)
        t.cancel_retry(state, "it goes on now, with the agent that is awake")
        self.services.kept_environments.pop(t.workflow_id, None)
        if t.workflow.pause_trigger is not None:
            t.withdraw_pause()
        if t.workflow.status is not W.IN_PROGRESS:
            t.move_workflow(W.IN_PROGRESS, reason=ask.reason)
        return _answer(t, run, "resumed", "the agent is awake already")

    async def put_away(self, workflow_id: WorkflowId, reason: str) -> None:
        """End a live chat and wait within a limit until its run, or one that is ending, is gone; leave a run of work
        alone."""
        live = self.services.live.get(workflow_id)
        runs = await self._journal.runs.open(workflow_id)
        if live is None or not runs or runs[0].purpose is Purpose.WORK:
            return
        if runs[0].purpose is Purpose.TALK:
            live.tear_away(Stop(trigger=Trigger.PAUSE, reason=reason))
        await self._until_gone(workflow_id)

    def _begin(self, t: Transaction, ask: Ask, means: Means, child: SessionId) -> Resumed:
        """Write a rewind if wanted, the session and the next run, queue it, and return the answer; raise WrongState
        if another agent took over."""
        session = means.session
        if ask.choices is None and ask.agent.name != t.workflow.agent:
            raise WrongState(f"{t.workflow.agent} has taken it over just now.", hint="Try again.")
        if ask.back is not None:
            means = replace(means, goes_back=True)
            t.tasks.rewind(ask.back.event)
            _say_again(t)
        if ask.reopens:
            t.append(PlanReopened(reason=ask.reopens))
        if ask.way is Way.NATIVE and session.token is None and session.refused_tokens:
            t.runtimes.retry_token(t.sessions.current().id, session.refused_tokens[-1])
            means = replace(means, session=replace(session, token=session.refused_tokens[-1]))
        plan = plan_resume(means, ask.way)
        session_id = self._session_for(t, plan, child, ask, means.session)
        if ask.purpose is Purpose.WORK and t.workflow.status is not W.PENDING:
            t.move_workflow(W.IN_PROGRESS, reason=ask.reason)
        context = (ask.context or _untold(session)) if plan.way is Way.CONTEXT else ""
        queue(self.services, t, session_id, plan, ask.purpose, self.variables(t.workflow, ask), context)
        run = t.runs.open()
        assert run is not None, "it was queued just now"
        if ask.warning is not None:
            t.append(ask.warning, session_id=session_id, run=run.number)
        return _answer(t, run, "resumed", plan.reason, plan.prices)

    def variables(self, row: WorkflowRow, ask: Ask) -> dict[str, str]:
        """Return those of the caller's variables that the agent, the choices and the helpers need."""
        choices = decode(Choices, row.choices)
        wanted = (*ask.agent.environment, *choices.variables, *helpers_variables(self.services, choices))
        return allowed(ask.environment, wanted)

    def _session_for(
        self, t: Transaction, plan: ResumePlan, child: SessionId, ask: Ask, session: SessionState
    ) -> SessionId:
        """Return the id of the session for the run: the current one, or a new child that takes over and ends it; store
        what the new conversation must carry over."""
        parent = t.sessions.current()
        over = parent.status in SESSION_ENDED | {SessionStatus.FAILED}
        if plan.way in SAME_CONVERSATION or (plan.way is Way.FIRST and not over):
            return parent.id
        carrying = Carrying.NEEDED if plan.way in TELLING else Carrying.NOTHING
        if plan.way is Way.FORK:
            t.sessions.set_carrying(parent.id, carrying)
            return parent.id
        if session.never_started and not over and ask.choices is None and ask.back is None:
            t.sessions.set_carrying(parent.id, carrying)
            return parent.id
        if not over:
            _take_over(t, parent)
        if ask.choices is not None:
            t.change_agent(ask.agent.name, ask.choices)
        t.sessions.create(child, ask.agent.name, parent.id, carrying, ask.choices)
        return child

    async def present(self, row: WorkflowRow) -> Present:
        """Read the worktree as a successor would find it now; its git state is None if there is no worktree or it
        cannot be read."""
        state = await self._journal.state(row.id)
        now = self.services.clock.now()
        if state.worktree is None:
            return Present(git=None, at=now)
        try:
            git = await read_state(Path(state.worktree), state.base)
        except SegueError as error:
            return Present(git=None, at=now, divergence=(error.message,))
        return Present(git=git, at=now, divergence=await self.divergence(state, row.id))

    async def divergence(self, state: WorkflowState, workflow_id: WorkflowId) -> tuple[str, ...]:
        """Return a sentence for each change in the worktree since the last checkpoint; empty if there is none or
        nothing to compare. An error is returned as the only sentence."""
        standing = await self._journal.checkpoints.base(workflow_id, state)
        if standing is None or standing.git is None or state.worktree is None:
            return ()
        try:
            changes = await divergence(Path(state.worktree), standing.git, standing.commit)
            return (*rewinds.unfinished(state, standing), *changes) if changes else ()
        except SegueError as error:
            # The worktree may be gone; the run makes it again or fails with the reason.
            return (error.message,)

    # ── changes of the files ────────────────────────────────────────────────────────────────────────

    @contextmanager
    def alone_with(self, workflow_id: WorkflowId) -> Generator[None]:
        """Keep others from changing the workflow's files or starting its agent while the body lasts; raise
        FilesMoving if they are being changed."""
        if workflow_id in self._files_moving:
            raise FilesMoving
        self._files_moving[workflow_id] = anyio.Event()
        try:
            yield
        finally:
            self._files_moving.pop(workflow_id).set()

    def standing(self, t: Transaction) -> Standing:
        """Read what an admission depends on."""
        session, run = t.sessions.current(), t.runs.open()
        return Standing(
            status=t.workflow.status,
            agent=session.agent,
            session=session.status,
            run=OpenRun(status=run.status, purpose=run.purpose, way=run.way) if run else None,
            files_moving=t.workflow_id in self._files_moving,
            retry_at=t.workflow.retry_at,
        )

    async def decide(self, workflow_id: WorkflowId, decision: Callable[[Transaction], T]) -> T:
        """Commit a decision, after a change of the files if one is under way."""
        try:
            return await self._journal.transact(workflow_id, decision)
        except FilesMoving:
            await self.until_still(workflow_id)
            return await self._journal.transact(workflow_id, decision)

    async def until_still(self, workflow_id: WorkflowId) -> None:
        """Wait within a limit until the change of the workflow's files is over; return at once if there is none."""
        if (there := self._files_moving.get(workflow_id)) is not None:
            with anyio.move_on_after(FILES_WITHIN):
                await there.wait()


def _give_back(t: Transaction, state: WorkflowState) -> None:
    """Answer an open question about a task with no, so that the task is tried again; do nothing if none is open."""
    if (asked := t.catch_up(state).asked) is not None:
        t.append(PersonAnswered(task_id=asked.task_id, approved=False))


def _take_over(t: Transaction, parent: SessionRow) -> None:
    """End the parent session: cancelled if no agent ever came up for it, else completed."""
    if parent.status is SessionStatus.CREATED:
        t.sessions.move(parent.id, SessionStatus.CANCELLED, reason="taken over before its agent came up")
    else:
        t.sessions.move(parent.id, SessionStatus.COMPLETED, reason="handed over")


def _say_again(t: Transaction) -> None:
    """Queue each waiting message again under a new id, so that the rewind does not undo it."""
    for message in t.prompts.waiting():
        said = t.prompts.queued(message.id)
        t.prompts.move(message.id, PromptStatus.NOT_SENT, message.session_id, None)
        t.prompts.queue(replace(said, prompt_id=new_prompt_id()), t.sessions.current().id, None)


def _untold(session: SessionState) -> str:
    """Return the context that a person wrote for the session if its agent never had a turn; else an empty text."""
    return "" if session.usage.turns or session.turn else session.own_context


def _now(t: Transaction, state: WorkflowState) -> SessionState:
    """Return the present state of the workflow's current session, inside the transaction."""
    return t.catch_up(state).sessions[t.sessions.current().id]


def _answer(
    t: Transaction, run: RunRow, status: Literal["resumed", "joined"], reason: str, prices: tuple[Price, ...] = ()
) -> Resumed:
    """Build the answer about a run that was begun or joined."""
    return Resumed(
        status=status,
        workflow_id=t.workflow_id,
        session=run.session_id,
        session_number=t.sessions.current().number,
        agent=t.sessions.current().agent,
        run=run.number,
        way=run.way,
        reason=reason,
        prices=prices,
        paused_at=None,
        tasks_done=0,
        tasks_remaining=0,
    )


def at_rest(t: Transaction, status: Literal["blocked", "paused", "waiting"], reason: str) -> Resumed:
    """Build the answer to a request that starts no run."""
    session, tasks = t.sessions.current(), t.tasks.all()
    way = t.runs.get(session.id, session.run_count).way if session.run_count else Way.FIRST
    return Resumed(
        status=status,
        workflow_id=t.workflow_id,
        session=session.id,
        session_number=session.number,
        agent=session.agent,
        run=session.run_count,
        way=way,
        reason=reason,
        paused_at=t.workflow.paused_at,
        tasks_done=sum(task.status is TaskStatus.COMPLETED for task in tasks),
        tasks_remaining=sum(task.status is not TaskStatus.COMPLETED for task in tasks),
    )
