"""The state of a workflow, as its events made it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import assert_never

from segue.model import events as e
from segue.model.accounts import known_sum
from segue.model.checkpoint import TaskMark, Usage
from segue.model.findings import PERSON
from segue.model.ids import NOTHING_SEEN, CheckpointId, PromptId, Seq, SessionId, TaskId
from segue.model.plan import Issue, Plan, Planning, Task, TaskStatus
from segue.model.status import Purpose, Role, WorkflowStatus
from segue.state.session import SessionState
from segue.state.story import Rewind, story


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """One try at a step that failed."""

    step: str
    what: str
    reason: str
    at: datetime
    reset_at: datetime | None = None
    """When a used-up quota is full again, where the agent says so."""
    after_fixer: bool = False
    """Whether the step was tried with the fixer's advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What was said of the work by those who did not do it, or what makes that void."""

    at: Seq
    said: e.ReviewGiven | e.FeedbackAddressed | e.PlanAdopted | e.TestsRan


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowState:
    """A workflow, as far as the journal knows it."""

    seq: Seq = NOTHING_SEEN
    slug: str = ""
    issue: Issue | None = None
    plan: Plan | None = None
    """None until one is adopted."""
    planning: Planning | None = None
    """Set while a plan is to be made, or waits for somebody's word."""
    status: WorkflowStatus = WorkflowStatus.PENDING
    reason: str = ""
    pause_requested: bool = False
    working_since: datetime | None = None
    """When it was started, or last let go on by a person; what it stood still before a retry is not counted."""
    stood_since: datetime | None = None
    """When it last came to stand still."""
    done_since: int = 0
    """Tasks that were done since a person last let it go on."""
    replans: int = 0
    """How often what is left was planned again since then."""
    rounds: frozenset[tuple[TaskId, int]] = frozenset()
    """The reviews since then: of which task, and which of its reviews."""
    worktree: str | None = None
    branch: str | None = None
    base: str | None = None
    tasks: Mapping[TaskId, TaskStatus] = field(default_factory=dict[TaskId, TaskStatus])
    sessions: Mapping[SessionId, SessionState] = field(default_factory=dict[SessionId, SessionState])
    current_session: SessionId | None = None
    last_snapshot: CheckpointId | None = None
    snapshots: int = 0
    messages: tuple[PromptId, ...] = ()
    """What people said and no agent has got yet, oldest first."""
    forked_from: e.Origin | None = None
    rewinds: tuple[Rewind, ...] = ()
    taken_back: e.WorkflowRewound | None = None
    """The last going back, until a task was finished from there."""
    asked: e.PersonAsked | None = None
    """What a person has to say before the work goes on."""
    failures: tuple[Failed, ...] = ()
    """What failed in a row since something last succeeded, the oldest first."""
    retry: e.RetryScheduled | None = None
    """What is tried again by itself, and when."""
    advice: e.FixerAdvised | None = None
    """What the fixer said of the step that is tried now."""
    reviews: tuple[e.ReviewGiven, ...] = ()
    """Everything that reviewers said, marked where it is seen to."""
    tests: e.TestsRan | None = None
    """The last time that Segue ran the tests."""
    judgements: tuple[Judgement, ...] = ()
    """What the last two come from; with what was undone, since going back may bring that back."""

    @property
    def session(self) -> SessionState | None:
        return self.sessions[self.current_session] if self.current_session else None

    @property
    def writers(self) -> int:
        """How many sessions have done the work, one after the other."""
        return sum(session.role is Role.WRITER for session in self.sessions.values())

    @property
    def helpers(self) -> frozenset[SessionId]:
        """Those who were only asked something; what they said is no part of the story."""
        return frozenset(name for name, session in self.sessions.items() if session.role is not Role.WRITER)

    @property
    def finished(self) -> tuple[TaskId, ...]:
        return tuple(task for task, status in self.tasks.items() if status is TaskStatus.COMPLETED)

    @property
    def current_task(self) -> TaskId | None:
        return next((task for task, status in self.tasks.items() if status is TaskStatus.IN_PROGRESS), None)

    @property
    def next_task(self) -> Task | None:
        return self.plan.next_ready(self.finished) if self.plan else None

    @property
    def marks(self) -> tuple[TaskMark, ...]:
        """The plan with what became of each task."""
        tasks = self.plan.tasks if self.plan else ()
        return tuple(TaskMark(id=t.id, title=t.title, status=self.tasks[t.id], depends_on=t.depends_on) for t in tasks)

    @property
    def usage(self) -> Usage:
        """The current context of the current session, and what all sessions used together."""
        sessions = list(self.sessions.values())
        now = self.session.usage if self.session else Usage()
        return replace(
            now,
            input_tokens=sum(s.usage.input_tokens for s in sessions),
            output_tokens=sum(s.usage.output_tokens for s in sessions),
            tool_calls=sum(s.usage.tool_calls for s in sessions),
            turns=sum(s.usage.turns for s in sessions),
            cost_usd=known_sum(s.usage.cost_usd for s in sessions),
            cached_tokens=known_sum(s.usage.cached_tokens for s in sessions),
        )


def apply_to_workflow(state: WorkflowState, record: e.Record, event: e.WorkflowEvent) -> WorkflowState:
    """Return the workflow after one of its events."""
    if isinstance(event, e.PlanEvent):
        return _apply_to_plan(state, event, record.seq)
    if isinstance(event, e.VerificationEvent):
        return _apply_verification(state, record, event)
    match event:
        case e.WorkflowCreated(slug=slug, issue=issue, plan=plan, forked_from=origin):
            stood = origin.tasks if origin else {}
            tasks = {task.id: stood.get(task.id, TaskStatus.PENDING) for task in plan.tasks} if plan else {}
            planning = (origin.planning if origin else None) or (None if plan else Planning())
            return replace(state, slug=slug, issue=issue, plan=plan, planning=planning, tasks=tasks, forked_from=origin)
        case e.WorkflowRewound():
            return rewound(state, event, record.seq)
        case e.WorkflowMoved(after=after, reason=reason):
            moved = replace(state, status=after, reason=reason, pause_requested=False)
            return _goes_on(moved, record.at) if after is WorkflowStatus.IN_PROGRESS else _stands(moved, record.at)
        case e.WorktreeReady(path=path, branch=branch, commit=commit):
            return replace(state, worktree=path, branch=branch, base=state.base or commit)
        case e.WorktreeDiscarded():
            return replace(state, worktree=None, branch=None, base=None)
        case e.SessionCreated(number=number, agent=agent, parent=parent, role=role):
            if record.session_id is None:
                return state
            session = SessionState(number=number, agent=agent, parent=parent, role=role)
            sessions = {**state.sessions, record.session_id: session}
            current = record.session_id if role is Role.WRITER else state.current_session
            return replace(state, sessions=sessions, current_session=current)
        case e.RunQueued(purpose=purpose):
            if purpose is not Purpose.WORK:
                return state
            # Nobody had promised this try: a person wants it, and all attempts are open again.
            return replace(state, retry=None) if state.retry else replace(state, failures=(), advice=None)
        case e.PromptQueued(prompt_id=prompt_id, task_id=task_id):
            return replace(state, messages=(*state.messages, prompt_id)) if task_id is None else state
        case e.PromptSent(prompt_id=prompt_id) | e.PromptNotSent(prompt_id=prompt_id):
            if prompt_id not in state.messages:
                return state
            return replace(state, messages=tuple(each for each in state.messages if each != prompt_id))
        case e.PauseRequested():
            return replace(state, pause_requested=True)
        case e.PauseWithdrawn():
            return replace(state, pause_requested=False)
        case e.CheckpointCreated(checkpoint_id=checkpoint_id, snapshot=snapshot):
            return replace(state, last_snapshot=checkpoint_id, snapshots=state.snapshots + 1) if snapshot else state
        case (
            e.WorkCommitted()
            | e.ApprovalAwaited()
            | e.LimitsChanged()
            | e.SnapshotStudied()
            | e.SessionImported()
            | e.Warned()
            | e.IncidentLogged()
        ):
            return state
        case _:
            assert_never(event)


def _apply_to_plan(state: WorkflowState, event: e.PlanEvent, at: Seq) -> WorkflowState:
    match event:
        case e.PlanProposed(plan=plan):
            return replace(state, planning=replace(state.planning or Planning(), proposed=plan))
        case e.PlanRejected(reason=reason):
            before = state.planning or Planning()
            return replace(state, planning=replace(before, proposed=None, refusals=(*before.refusals, reason)))
        case e.PlanReopened(reason=reason):
            return replace(state, planning=Planning(reason=reason), replans=state.replans + 1)
        case e.PlanAdopted(plan=plan):
            tasks = {task.id: _kept(state.tasks.get(task.id)) for task in plan.tasks}
            adopted = replace(_judged(state, event, at), plan=plan, tasks=tasks, planning=None)
            return replace(adopted, failures=(), advice=None, rounds=frozenset())
        case e.TaskStarted(task_id=task_id):
            return _task(state, task_id, TaskStatus.IN_PROGRESS)
        case e.TaskCompleted(task_id=task_id):
            done = _task(state, task_id, TaskStatus.COMPLETED)
            return replace(done, taken_back=None, failures=(), advice=None, done_since=done.done_since + 1)
        case e.TaskFailed(task_id=task_id):
            return _task(state, task_id, TaskStatus.FAILED)
        case e.TaskInterrupted(task_id=task_id):
            return _task(state, task_id, TaskStatus.PENDING)
        case _:
            assert_never(event)


def _apply_verification(state: WorkflowState, record: e.Record, event: e.VerificationEvent) -> WorkflowState:
    match event:
        case e.TestsRan(task_id=task_id, passed=passed):
            failures = tuple(each for each in state.failures if not passed or each.step != task_id)
            return replace(_judged(state, event, record.seq), failures=failures)
        case e.ReviewGiven(task_id=task_id, round=number):
            return replace(_judged(state, event, record.seq), rounds=state.rounds | {(task_id, number)})
        case e.FeedbackAddressed():
            return _judged(state, event, record.seq)
        case e.PersonAsked():
            return replace(state, asked=event)
        case e.PersonAnswered():
            return replace(state, asked=None, failures=(), advice=None)
        case e.StepFailed(step=step, what=what, reason=reason, reset_at=reset_at):
            advised = state.advice is not None and state.advice.step == step
            failed = Failed(step=step, what=what, reason=reason, at=record.at, reset_at=reset_at, after_fixer=advised)
            return replace(state, failures=(*state.failures, failed))
        case e.RetryScheduled():
            return replace(state, retry=event)
        case e.RetryCancelled():
            return replace(state, retry=None)
        case e.FixerAdvised():
            return replace(state, advice=event)
        case _:
            assert_never(event)


def _goes_on(state: WorkflowState, at: datetime) -> WorkflowState:
    """What is tried again by itself goes on counting; a person's word begins anew."""
    since, stood = state.working_since, state.stood_since
    if state.retry is None or since is None or stood is None:
        return replace(state, working_since=at, done_since=0, replans=0, rounds=frozenset())
    return replace(state, working_since=since + (at - stood))


def _stands(state: WorkflowState, at: datetime) -> WorkflowState:
    return replace(state, stood_since=at)


def rewound(state: WorkflowState, event: e.WorkflowRewound, at: Seq) -> WorkflowState:
    """The state after the work was taken back; what was used stays used, and what was said to nobody yet stays so."""
    if event.plan is not None or event.planning is not None:
        state = replace(state, plan=event.plan, planning=event.planning, tasks={})
    taken_back = replace(
        state,
        tasks={**state.tasks, **event.tasks},
        last_snapshot=event.checkpoint_id,
        rewinds=(*state.rewinds, Rewind(at, event.after)),
        taken_back=event,
    )
    known = story(taken_back.rewinds, at)
    then = (each for each in state.judgements if any(part.after < each.at <= part.until for part in known))
    return reduce(_judge, then, replace(taken_back, reviews=(), tests=None))


def _kept(status: TaskStatus | None) -> TaskStatus:
    """What becomes of a task under a new plan."""
    return TaskStatus.COMPLETED if status is TaskStatus.COMPLETED else TaskStatus.PENDING


def _judged(
    state: WorkflowState, said: e.ReviewGiven | e.FeedbackAddressed | e.PlanAdopted | e.TestsRan, at: Seq
) -> WorkflowState:
    judgement = Judgement(at=at, said=said)
    return _judge(replace(state, judgements=(*state.judgements, judgement)), judgement)


def _judge(state: WorkflowState, judgement: Judgement) -> WorkflowState:
    match judgement.said:
        case e.ReviewGiven() as given:
            reviews = (_addressed(each) if _superseded(each, given) else each for each in state.reviews)
            return replace(state, reviews=(*reviews, given))
        case e.FeedbackAddressed(task_id=task_id):
            reviews = (_addressed(each) if each.task_id == task_id else each for each in state.reviews)
            return replace(state, reviews=tuple(reviews))
        case e.PlanAdopted():
            # It was said of tasks that are done, or that are not what they were, even where they have the same name.
            return replace(state, reviews=tuple(map(_addressed, state.reviews)))
        case e.TestsRan(tests=tests) as ran:
            return replace(state, tests=replace(ran, tests=replace(tests, seq=judgement.at)))


def _superseded(before: e.ReviewGiven, given: e.ReviewGiven) -> bool:
    """A reviewer looks at the whole again, and says what is left; a person does not say everything twice."""
    persona = given.feedback.reviewer_persona
    return persona != PERSON and (before.task_id, before.feedback.reviewer_persona) == (given.task_id, persona)


def _addressed(review: e.ReviewGiven) -> e.ReviewGiven:
    if review.feedback.addressed:
        return review
    return replace(review, feedback=replace(review.feedback, addressed=True))


def _task(state: WorkflowState, task_id: TaskId, status: TaskStatus) -> WorkflowState:
    return replace(state, tasks={**state.tasks, task_id: status})
