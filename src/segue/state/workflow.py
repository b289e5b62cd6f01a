"""State of a workflow, folded from its events."""

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
class FailedAttempt:
    """Failed attempt at a step."""

    step: str
    what: str
    reason: str
    at: datetime
    reset_at: datetime | None = None
    """Time at which an exhausted quota is full again, if the agent reports it."""
    after_fixer: bool = False
    """True if the fixer's advice was used in this attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Judgement on the work by a review, a test run or a person, or an event that makes earlier ones void."""

    at: Seq
    said: e.ReviewGiven | e.FeedbackAddressed | e.PlanAdopted | e.TestsRan


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowState:
    """State of a workflow."""

    seq: Seq = NOTHING_SEEN
    slug: str = ""
    issue: Issue | None = None
    plan: Plan | None = None
    """Adopted plan; None before."""
    planning: Planning | None = None
    """Planning that is under way, or waits for approval."""
    status: WorkflowStatus = WorkflowStatus.PENDING
    reason: str = ""
    pause_requested: bool = False
    working_since: datetime | None = None
    """Time of the start, or of the last resume by a person; waiting times before retries are left out."""
    stood_since: datetime | None = None
    """Time of the last stop."""
    done_since: int = 0
    """Number of tasks completed since the last resume by a person."""
    replans: int = 0
    """Number of plan reopenings since then."""
    rounds: frozenset[tuple[TaskId, int]] = frozenset()
    """Reviews since then: the task, and the number of the review."""
    worktree: str | None = None
    branch: str | None = None
    base: str | None = None
    tasks: Mapping[TaskId, TaskStatus] = field(default_factory=dict[TaskId, TaskStatus])
    sessions: Mapping[SessionId, SessionState] = field(default_factory=dict[SessionId, SessionState])
    current_session: SessionId | None = None
    last_snapshot: CheckpointId | None = None
    snapshots: int = 0
    messages: tuple[PromptId, ...] = ()
    """Messages of people that no agent has got yet, oldest first."""
    forked_from: e.Origin | None = None
    rewinds: tuple[Rewind, ...] = ()
    rewound_by: e.WorkflowRewound | None = None
    """Last rewind, until a task is completed after it."""
    asked: e.PersonAsked | None = None
    """Question that a person has to answer before the work continues."""
    failures: tuple[FailedAttempt, ...] = ()
    """Failed attempts since the last success, oldest first."""
    retry: e.RetryScheduled | None = None
    """Scheduled automatic retry."""
    advice: e.FixerAdvised | None = None
    """Advice of the fixer for the current step."""
    reviews: tuple[e.ReviewGiven, ...] = ()
    """All reviews, marked as addressed where they are."""
    tests: e.TestsRan | None = None
    """Last test run of Segue."""
    judgements: tuple[Judgement, ...] = ()
    """Sources of the last two fields, undone ones included, since a rewind can restore them."""

    @property
    def session(self) -> SessionState | None:
        """Return the current session, the latest that does the work; None before the first."""
        return self.sessions[self.current_session] if self.current_session else None

    @property
    def writers(self) -> int:
        """Return the number of sessions that did the work."""
        return sum(session.role is Role.WRITER for session in self.sessions.values())

    @property
    def helpers(self) -> frozenset[SessionId]:
        """Return the sessions of reviewers and fixers; their events are no part of the work's history."""
        return frozenset(name for name, session in self.sessions.items() if session.role is not Role.WRITER)

    @property
    def finished(self) -> tuple[TaskId, ...]:
        """Return the ids of the completed tasks."""
        return tuple(task for task, status in self.tasks.items() if status is TaskStatus.COMPLETED)

    @property
    def current_task(self) -> TaskId | None:
        """Return the id of the task in progress; None if there is none."""
        return next((task for task, status in self.tasks.items() if status is TaskStatus.IN_PROGRESS), None)

    @property
    def next_task(self) -> Task | None:
        """Return the first task that can be started; None if there is none, or no plan."""
        return self.plan.next_ready(self.finished) if self.plan else None

    @property
    def marks(self) -> tuple[TaskMark, ...]:
        """Return the plan's tasks with their statuses; empty without a plan."""
        tasks = self.plan.tasks if self.plan else ()
        return tuple(TaskMark(id=t.id, title=t.title, status=self.tasks[t.id], depends_on=t.depends_on) for t in tasks)

    @property
    def usage(self) -> Usage:
        """Return the current context of the current session, and the sums over all sessions."""
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
    """Return the workflow after one of its events; the given one stays unchanged."""
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
            if after is WorkflowStatus.IN_PROGRESS:
                return _resumed(moved, record.at)
            return replace(moved, stood_since=record.at)
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
            # Without a scheduled retry this is a person's request, which resets the attempts.
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
    """Return the workflow after an event of its plan or tasks."""
    match event:
        case e.PlanProposed(plan=plan):
            return replace(state, planning=replace(state.planning or Planning(), proposed=plan))
        case e.PlanRejected(reason=reason):
            before = state.planning or Planning()
            return replace(state, planning=replace(before, proposed=None, refusals=(*before.refusals, reason)))
        case e.PlanReopened(reason=reason):
            return replace(state, planning=Planning(reason=reason), replans=state.replans + 1)
        case e.PlanAdopted(plan=plan):
            done = set(state.finished)
            tasks = {t.id: TaskStatus.COMPLETED if t.id in done else TaskStatus.PENDING for t in plan.tasks}
            adopted = replace(_judged(state, event, at), plan=plan, tasks=tasks, planning=None)
            return replace(adopted, failures=(), advice=None, rounds=frozenset())
        case e.TaskStarted(task_id=task_id):
            return _task(state, task_id, TaskStatus.IN_PROGRESS)
        case e.TaskCompleted(task_id=task_id):
            done = _task(state, task_id, TaskStatus.COMPLETED)
            return replace(done, rewound_by=None, failures=(), advice=None, done_since=done.done_since + 1)
        case e.TaskFailed(task_id=task_id):
            return _task(state, task_id, TaskStatus.FAILED)
        case e.TaskInterrupted(task_id=task_id):
            return _task(state, task_id, TaskStatus.PENDING)
        case _:
            assert_never(event)


def _apply_verification(state: WorkflowState, record: e.Record, event: e.VerificationEvent) -> WorkflowState:
    """Return the workflow after an event of tests, reviews, questions, failures or retries."""
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
            failed = FailedAttempt(
                step=step, what=what, reason=reason, at=record.at, reset_at=reset_at, after_fixer=advised
            )
            return replace(state, failures=(*state.failures, failed))
        case e.RetryScheduled():
            return replace(state, retry=event)
        case e.RetryCancelled():
            return replace(state, retry=None)
        case e.FixerAdvised():
            return replace(state, advice=event)
        case _:
            assert_never(event)


def _resumed(state: WorkflowState, at: datetime) -> WorkflowState:
    """Return the workflow after a resume: a retry continues the counts and times, a person's request resets them."""
    since, stood = state.working_since, state.stood_since
    if state.retry is None or since is None or stood is None:
        return replace(state, working_since=at, done_since=0, replans=0, rounds=frozenset())
    return replace(state, working_since=since + (at - stood))


def rewound(state: WorkflowState, event: e.WorkflowRewound, at: Seq) -> WorkflowState:
    """Return the state after a rewind: tasks, plan and judgements as they were then; usage and undelivered messages
    stay."""
    if event.plan is not None or event.planning is not None:
        state = replace(state, plan=event.plan, planning=event.planning, tasks={})
    taken_back = replace(
        state,
        tasks={**state.tasks, **event.tasks},
        last_snapshot=event.checkpoint_id,
        rewinds=(*state.rewinds, Rewind(at, event.after)),
        rewound_by=event,
    )
    known = story(taken_back.rewinds, at)
    then = (each for each in state.judgements if any(part.after < each.at <= part.until for part in known))
    return reduce(_judge, then, replace(taken_back, reviews=(), tests=None))


def _judged(
    state: WorkflowState, said: e.ReviewGiven | e.FeedbackAddressed | e.PlanAdopted | e.TestsRan, at: Seq
) -> WorkflowState:
    """Return the state with one more judgement, kept for rewinds and applied."""
    judgement = Judgement(at=at, said=said)
    return _judge(replace(state, judgements=(*state.judgements, judgement)), judgement)


def _judge(state: WorkflowState, judgement: Judgement) -> WorkflowState:
    """Return the state with the reviews or tests as the judgement changes them."""
    match judgement.said:
        case e.ReviewGiven() as given:
            reviews = (_addressed(each) if _superseded(each, given) else each for each in state.reviews)
            return replace(state, reviews=(*reviews, given))
        case e.FeedbackAddressed(task_id=task_id):
            reviews = (_addressed(each) if each.task_id == task_id else each for each in state.reviews)
            return replace(state, reviews=tuple(reviews))
        case e.PlanAdopted():
            # The reviews are of completed tasks, or of tasks that differ now even if the id is the same.
            return replace(state, reviews=tuple(map(_addressed, state.reviews)))
        case e.TestsRan(tests=tests) as ran:
            return replace(state, tests=replace(ran, tests=replace(tests, seq=judgement.at)))


def _superseded(before: e.ReviewGiven, given: e.ReviewGiven) -> bool:
    """Return True if a review replaces an earlier one: a reviewer repeats what is left, a person does not."""
    persona = given.feedback.reviewer_persona
    return persona != PERSON and (before.task_id, before.feedback.reviewer_persona) == (given.task_id, persona)


def _addressed(review: e.ReviewGiven) -> e.ReviewGiven:
    """Return the review marked as addressed."""
    if review.feedback.addressed:
        return review
    return replace(review, feedback=replace(review.feedback, addressed=True))


def _task(state: WorkflowState, task_id: TaskId, status: TaskStatus) -> WorkflowState:
    """Return the state with this status of a task."""
    return replace(state, tasks={**state.tasks, task_id: status})
