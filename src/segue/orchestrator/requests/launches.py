"""The one way in for every agent that is brought back, whoever asks.

It holds the workflow's lock from the look at what there is to the run that follows from it. So two that ask at once
make one launch, and the second gets the first one's answer.
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
"""Seconds that whoever decides about a workflow waits until its files are in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is wanted, and with whose variables."""

    purpose: Purpose
    environment: Mapping[str, str]
    way: Way | None = None
    agent: AgentConfiguration
    choices: Choices | None = None
    """What is chosen for an agent that takes over from another; None keeps what was chosen before."""
    back: TakenBack | None = None
    """The files were taken back for this; what is left is to write it down."""
    due: datetime | None = None
    """The retry that this is; it is made only while it stands scheduled for then."""
    word: Callable[[Transaction], None] | None = None
    """Writes down what somebody said and the work waited for; it is not said without the run that follows from it."""
    reason: str = "resumed"
    alone: bool = False
    """Whoever asks holds the workflow's files."""
    changed: tuple[str, ...] | None = None
    """What had changed in the worktree before whoever asks changed something too; None where nobody has."""
    reopens: str = ""
    """Why what is left is planned again, if it is."""
    warning: Warned | None = None
    """What is said with the run that follows, if anything is."""
    context: str = ""
    """What the new conversation begins with, if a person wrote it."""
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
    """What there is to go back with."""
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
    """Whether the context is beyond the first of these rungs: those at which the work does not go on in it."""
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
    """Characters of the prompt that a new conversation would begin with."""
    occasion = Occasion(way=Way.FRESH, checkpoint=checkpoint, git=checkpoint.git if checkpoint else None)
    if state.issue is not None and state.planning is not None:
        return len(planning_prompt(state.issue, state.planning, state.marks, occasion, most))
    if state.issue is None or state.plan is None or state.next_task is None:
        return 0
    return len(task_prompt(state.issue, state.plan, state.next_task, occasion))


class Launching:
    """Begins runs, or joins the one that is there."""

    def __init__(self, services: RuntimeServices) -> None:
        """Begin with no workflow whose files are being changed."""
        self.services = services
        self._journal = services.journal
        self._files_moving: dict[WorkflowId, anyio.Event] = {}
        """Workflows whose files are being put in place, and when they are there; no agent is started meanwhile."""

    async def launch(self, row: WorkflowRow, ask: Ask) -> Resumed:
        """A look at what there is, the run that follows from it, and what else belongs to it, in one transaction."""
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
                # Before a run is queued: a refusal later would leave variables behind.
                admit_prompt(standing, len(t.prompts.waiting()), self.services.rules.messages_waiting)
            if ask.word is not None:
                ask.word(t)
                if spent is not None:
                    return self._rest(t, spent)
            elif ask.purpose is Purpose.WORK:
                _give_back(t, state)
            # Whoever only talks is answered where the talk was held, however full it is.
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
            # An agent that ends is not asked to stay: its run comes to its end first.
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
        """For those who do something before the launch that is better not done in vain."""
        if (spent := self._spent(row, await self._journal.state(row.id))) is not None:
            refuse_used_up(spent)

    def _rest(self, t: Transaction, spent: LimitReached) -> Resumed:
        """The word counts, and the work stands where its budget ends."""
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
        """Join the open run, if there is one that serves; None where a new one has to begin."""
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
        """An agent that waits for a word makes room; one that leaves anyway may finish."""
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
        """Those of the caller's that the agent and its helpers need."""
        choices = decode(Choices, row.choices)
        wanted = (*ask.agent.environment, *choices.variables, *helpers_variables(self.services, choices))
        return allowed(ask.environment, wanted)

    def _session_for(
        self, t: Transaction, plan: ResumePlan, child: SessionId, ask: Ask, session: SessionState
    ) -> SessionId:
        """The session itself, or a child that takes over from it."""
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
        """What a successor would find in the worktree now."""
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
        """What changed in the worktree since the work came to stand still."""
        standing = await self._journal.checkpoints.base(workflow_id, state)
        if standing is None or standing.git is None or state.worktree is None:
            return ()
        try:
            changes = await divergence(Path(state.worktree), standing.git, standing.commit)
            return (*rewinds.unfinished(state, standing), *changes) if changes else ()
        except SegueError as error:
            # The worktree may be gone; the run makes it again or says why not.
            return (error.message,)

    # ── whose files are moving ──────────────────────────────────────────────────────────────────────

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
        """Until the files are in place, but not for ever."""
        if (there := self._files_moving.get(workflow_id)) is not None:
            with anyio.move_on_after(FILES_WITHIN):
                await there.wait()


def _give_back(t: Transaction, state: WorkflowState) -> None:
    """Whoever goes on without answering what becomes of a task wants it tried again."""
    if (asked := t.catch_up(state).asked) is not None:
        t.append(PersonAnswered(task_id=asked.task_id, approved=False))


def _take_over(t: Transaction, parent: SessionRow) -> None:
    """It ends; one that no agent ever took up has nothing to complete."""
    if parent.status is SessionStatus.CREATED:
        t.sessions.move(parent.id, SessionStatus.CANCELLED, reason="taken over before its agent came up")
    else:
        t.sessions.move(parent.id, SessionStatus.COMPLETED, reason="handed over")


def _say_again(t: Transaction) -> None:
    """What somebody said and nobody got yet belongs to what comes now, and not to what was undone."""
    for message in t.prompts.waiting():
        said = t.prompts.queued(message.id)
        t.prompts.move(message.id, PromptStatus.NOT_SENT, message.session_id, None)
        t.prompts.queue(replace(said, prompt_id=new_prompt_id()), t.sessions.current().id, None)


def _untold(session: SessionState) -> str:
    """What a person wrote for a conversation that did not come about belongs to the next."""
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
    """What there is instead of a run."""
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
