"""The fold: state is what the records say, one after the other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import reduce
from typing import TypeVar, assert_never

from segue.model import events as e
from segue.model.accounts import ModelUsage, known_sum
from segue.model.checkpoint import OpenCall, TaskMark, Usage
from segue.model.findings import PERSON
from segue.model.ids import NOTHING_SEEN, CheckpointId, PromptId, RequestId, Seq, SessionId, TaskId
from segue.model.plan import Issue, Plan, Planning, Task, TaskStatus
from segue.model.status import (
    SAME_CONVERSATION,
    Failure,
    PromptStatus,
    Purpose,
    Role,
    SessionStatus,
    WaitingFor,
    Way,
    WorkflowStatus,
)
from segue.state.growth import Growth, grown
from segue.state.story import Rewind, story

TELLING = frozenset({Way.CONTEXT, Way.HISTORY})
"""Ways in which a new conversation is told what came before it."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPrompt:
    """A prompt that is not known to have arrived."""

    status: PromptStatus
    task_id: TaskId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A permission that nobody answered yet."""

    title: str
    tool: str
    call_id: str
    requested_at: datetime
    words: bool = False


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
class SessionState:
    """One conversation, as far as the journal knows it."""

    number: int
    agent: str
    parent: SessionId | None
    role: Role = Role.WRITER
    status: SessionStatus = SessionStatus.CREATED
    reason: str = ""
    waiting_for: WaitingFor | None = None
    token: str | None = None
    refused_tokens: tuple[str, ...] = ()
    runs: int = 0
    way: Way | None = None
    told_by: Way | None = None
    """How it is told what came before it, where it began by being told."""
    own_context: str = ""
    """What a person wrote for it, in place of a compiled context."""
    usage: Usage = field(default_factory=Usage)
    models: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """What each model was given and gave; one that the agent does not name has an empty name."""
    model: str | None = None
    """Whose context it is, as the agent last called it."""
    overflowed: bool = False
    """The last turn ended because the context was full, and the agent has made no room since."""
    told_cost: float | None = None
    """As the agent last told it, which may count from nothing again."""
    capabilities: tuple[str, ...] | None = None
    """What the agent said it can do, the last time it was up."""
    was_given_a_task: bool = False
    spoken_to: Seq = NOTHING_SEEN
    """The last time that something was said to the agent."""
    bookmark: str | None = None
    """Where the conversation stands between two turns, as the agent itself calls it, if it does."""
    failure: Failure | None = None
    """What ended the last run, if it was the agent."""
    reset_at: datetime | None = None
    growth: Growth = field(default_factory=Growth)
    compactions: int = 0
    """How often the agent replaced its conversation by a summary."""
    prompts: Mapping[PromptId, OpenPrompt] = field(default_factory=dict[PromptId, OpenPrompt])
    """Prompts on their way: queued, or sent and not acknowledged."""
    turn: PromptId | None = None
    """The prompt whose turn is under way."""
    calls: Mapping[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    """Tool calls that were begun and not seen to end."""
    questions: Mapping[RequestId, Question] = field(default_factory=dict[RequestId, Question])

    @property
    def context_tokens_new(self) -> int:
        """Tokens that came into the context since it was last refreshed."""
        return max(0, self.growth.new)

    @property
    def unborn(self) -> bool:
        """Whether it follows another, and no agent ever took it up."""
        told = self.token is not None or self.refused_tokens or self.capabilities is not None
        return self.parent is not None and not told and not self.usage.turns


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


def fold(records: Iterable[e.Record], start: WorkflowState | None = None) -> WorkflowState:
    return reduce(apply, records, start or WorkflowState())


def apply(state: WorkflowState, record: e.Record) -> WorkflowState:
    """The state after one more record."""
    state, session_id = _apply_to_workflow(state, record), record.session_id
    if session_id is None or session_id not in state.sessions:
        return replace(state, seq=record.seq)
    before = state.sessions[session_id]
    after = _apply_to_session(before, record)
    if after is before:
        return replace(state, seq=record.seq)
    return replace(state, seq=record.seq, sessions={**state.sessions, session_id: after})


def _apply_to_workflow(state: WorkflowState, record: e.Record) -> WorkflowState:
    match record.event:
        case e.WorkflowCreated(slug=slug, issue=issue, plan=plan, forked_from=origin):
            stood = origin.tasks if origin else {}
            tasks = {task.id: stood.get(task.id, TaskStatus.PENDING) for task in plan.tasks} if plan else {}
            planning = (origin.planning if origin else None) or (None if plan else Planning())
            return replace(state, slug=slug, issue=issue, plan=plan, planning=planning, tasks=tasks, forked_from=origin)
        case e.PlanProposed(plan=plan):
            return replace(state, planning=replace(state.planning or Planning(), proposed=plan))
        case e.PlanRejected(reason=reason):
            before = state.planning or Planning()
            return replace(state, planning=replace(before, proposed=None, refusals=(*before.refusals, reason)))
        case e.PlanReopened(reason=reason):
            return replace(state, planning=Planning(reason=reason), replans=state.replans + 1)
        case e.PlanAdopted(plan=plan):
            tasks = {task.id: _kept(state.tasks.get(task.id)) for task in plan.tasks}
            adopted = replace(_judged(state, record.event, record.seq), plan=plan, tasks=tasks, planning=None)
            return replace(adopted, failures=(), advice=None, rounds=frozenset())
        case e.PersonAsked():
            return replace(state, asked=record.event)
        case e.PersonAnswered():
            return replace(state, asked=None, failures=(), advice=None)
        case e.StepFailed(step=step, what=what, reason=reason, reset_at=reset_at):
            advised = state.advice is not None and state.advice.step == step
            failed = Failed(step=step, what=what, reason=reason, at=record.at, reset_at=reset_at, after_fixer=advised)
            return replace(state, failures=(*state.failures, failed))
        case e.RetryScheduled():
            return replace(state, retry=record.event)
        case e.RetryCancelled():
            return replace(state, retry=None)
        case e.RunQueued(purpose=Purpose.WORK) if state.retry is None:
            # Nobody had promised this try: a person wants it, and all attempts are open again.
            return replace(state, failures=(), advice=None)
        case e.RunQueued(purpose=Purpose.WORK):
            return replace(state, retry=None)
        case e.FixerAdvised():
            return replace(state, advice=record.event)
        case e.ReviewGiven(task_id=task_id, round=number):
            rounds = state.rounds | {(task_id, number)}
            return replace(_judged(state, record.event, record.seq), rounds=rounds)
        case e.FeedbackAddressed():
            return _judged(state, record.event, record.seq)
        case e.TestsRan(task_id=task_id, passed=passed):
            failures = tuple(each for each in state.failures if not passed or each.step != task_id)
            return replace(_judged(state, record.event, record.seq), failures=failures)
        case e.WorkflowRewound():
            return rewound(state, record.event, record.seq)
        case e.WorkflowMoved(after=after, reason=reason):
            moved = replace(state, status=after, reason=reason, pause_requested=False)
            return _goes_on(moved, record.at) if after is WorkflowStatus.IN_PROGRESS else _stands(moved, record.at)
        case e.WorktreeReady(path=path, branch=branch, commit=commit):
            return replace(state, worktree=path, branch=branch, base=state.base or commit)
        case e.WorktreeDiscarded():
            return replace(state, worktree=None, branch=None, base=None)
        case e.SessionCreated(number=number, agent=agent, parent=parent, role=role) if record.session_id:
            session = SessionState(number=number, agent=agent, parent=parent, role=role)
            sessions = {**state.sessions, record.session_id: session}
            current = record.session_id if role is Role.WRITER else state.current_session
            return replace(state, sessions=sessions, current_session=current)
        case e.PromptQueued(prompt_id=prompt_id, task_id=None):
            return replace(state, messages=(*state.messages, prompt_id))
        case e.PromptSent(prompt_id=prompt_id) | e.PromptNotSent(prompt_id=prompt_id) if prompt_id in state.messages:
            return replace(state, messages=tuple(each for each in state.messages if each != prompt_id))
        case e.TaskStarted(task_id=task_id):
            return _task(state, task_id, TaskStatus.IN_PROGRESS)
        case e.TaskCompleted(task_id=task_id):
            done = _task(state, task_id, TaskStatus.COMPLETED)
            return replace(done, taken_back=None, failures=(), advice=None, done_since=done.done_since + 1)
        case e.TaskFailed(task_id=task_id):
            return _task(state, task_id, TaskStatus.FAILED)
        case e.TaskInterrupted(task_id=task_id):
            return _task(state, task_id, TaskStatus.PENDING)
        case e.PauseRequested():
            return replace(state, pause_requested=True)
        case e.PauseWithdrawn():
            return replace(state, pause_requested=False)
        case e.CheckpointCreated(checkpoint_id=checkpoint_id, snapshot=True):
            return replace(state, last_snapshot=checkpoint_id, snapshots=state.snapshots + 1)
        case _:
            return state


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


def _apply_to_session(state: SessionState, record: e.Record) -> SessionState:
    match record.event:
        case e.SessionMoved(after=after, reason=reason, waiting_for=waiting_for):
            return replace(state, status=after, reason=reason, waiting_for=waiting_for)
        case e.TokenCaptured(token=token):
            return replace(state, token=token, bookmark=state.bookmark if token == state.token else None)
        case e.TokenRefused(token=token):
            return replace(state, token=None, bookmark=None, refused_tokens=(*state.refused_tokens, token))
        case e.RunQueued(way=way, context=context):
            told_by = way if way in TELLING else state.told_by
            own = context or state.own_context
            joins = way is Way.FORK or (way in SAME_CONVERSATION and state.usage.context_tokens is None)
            growth = Growth(highest=None) if joins else state.growth
            return replace(state, runs=state.runs + 1, way=way, told_by=told_by, own_context=own, growth=growth)
        case e.WayChanged(after=way):
            return replace(state, way=way, growth=Growth(), told_by=way if way in TELLING else state.told_by)
        case e.RunStarted():
            # What the process before left open stays so for ever: its checkpoint has named it.
            return replace(state, calls={}, questions={}, turn=None, failure=None, reset_at=None)
        case e.UsageReported():
            return reported(state, record.event, record.at.date())
        case e.UserSpoke():
            # A turn of a conversation that was held elsewhere; what the turn before left open stays so for ever.
            usage = replace(state.usage, turns=state.usage.turns + 1)
            return replace(state, usage=usage, calls={}, was_given_a_task=True, spoken_to=record.seq, bookmark=None)
        case e.PromptQueued(prompt_id=prompt_id, task_id=task_id):
            if task_id is None:
                return state
            return _prompt(state, prompt_id, OpenPrompt(status=PromptStatus.QUEUED, task_id=task_id))
        case e.PromptSent(prompt_id=prompt_id):
            queued = state.prompts.get(prompt_id)
            sent = OpenPrompt(status=PromptStatus.SENT, task_id=queued.task_id if queued else None)
            given = state.was_given_a_task or sent.task_id is not None
            state = _prompt(state, prompt_id, sent)
            return replace(state, turn=prompt_id, calls={}, was_given_a_task=given, spoken_to=record.seq, bookmark=None)
        case e.PromptAcknowledged(prompt_id=prompt_id) | e.PromptNotSent(prompt_id=prompt_id):
            return replace(state, prompts=_without(state.prompts, prompt_id))
        case e.TurnJoined(prompt_id=prompt_id):
            return replace(state, turn=prompt_id)
        case e.TurnEnded(reason=reason, bookmark=bookmark):
            return replace(_turn_over(state), overflowed=reason == "max_tokens", bookmark=bookmark)
        case e.TurnFailed():
            return replace(_turn_over(state), overflowed=False)
        case e.AgentStarted(capabilities=capabilities):
            return replace(state, capabilities=capabilities)
        case e.RunEnded(failure=failure, reset_at=reset_at):
            # A turn that was under way is over, whether or not anybody knows how far it came.
            return replace(state, failure=failure, reset_at=reset_at, turn=None)
        case e.ContextRefreshed(new_tokens=new_tokens):
            # The report that led to it may be written after it.
            return replace(state, growth=replace(state.growth, new=state.growth.new - new_tokens))
        case e.Compacted():
            return replace(state, compactions=state.compactions + 1, overflowed=False)
        case e.ToolCalled(call_id=call_id, title=title, tool=tool):
            calls = {**state.calls, call_id: OpenCall(call_id=call_id, title=title, tool=tool)}
            return replace(state, calls=calls, usage=replace(state.usage, tool_calls=state.usage.tool_calls + 1))
        case e.ToolFinished(call_id=call_id):
            return replace(state, calls=_without(state.calls, call_id))
        case e.PermissionRequested(request_id=request_id, title=title, tool=tool, call_id=call_id, words=words):
            question = Question(title=title, tool=tool, call_id=call_id, requested_at=record.at, words=words)
            return replace(state, questions={**state.questions, request_id: question})
        case e.PermissionAnswered(request_id=request_id):
            return replace(state, questions=_without(state.questions, request_id))
        case (
            e.AgentMessage()
            | e.AgentThought()
            | e.ToolProgressed()
            | e.FilesChanged()
            | e.TodoUpdated()
            | e.AgentHeard()
            | e.AgentExited()
            | e.ContextCarried()
            | e.WorkflowCreated()
            | e.WorkflowRewound()
            | e.WorkflowMoved()
            | e.WorktreeReady()
            | e.WorktreeDiscarded()
            | e.SessionCreated()
            | e.TaskStarted()
            | e.TaskCompleted()
            | e.TaskFailed()
            | e.TaskInterrupted()
            | e.PauseRequested()
            | e.PauseWithdrawn()
            | e.CheckpointCreated()
            | e.LimitsChanged()
            | e.PlanProposed()
            | e.PlanAdopted()
            | e.PlanRejected()
            | e.PlanReopened()
            | e.TestsRan()
            | e.ReviewGiven()
            | e.FeedbackAddressed()
            | e.WorkCommitted()
            | e.PersonAsked()
            | e.PersonAnswered()
            | e.StepFailed()
            | e.RetryScheduled()
            | e.RetryCancelled()
            | e.FixerAdvised()
            | e.ApprovalAwaited()
            | e.CapacityReached()
            | e.SnapshotStudied()
            | e.AgentReported()
            | e.SessionImported()
            | e.Standing()
            | e.AgentSummarised()
            | e.Warned()
            | e.IncidentLogged()
        ):
            return state
        case _:
            assert_never(record.event)


def _prompt(state: SessionState, prompt_id: PromptId, prompt: OpenPrompt) -> SessionState:
    return replace(state, prompts={**state.prompts, prompt_id: prompt})


def _turn_over(state: SessionState) -> SessionState:
    return replace(state, turn=None, usage=replace(state.usage, turns=state.usage.turns + 1))


def _without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    return {k: v for k, v in mapping.items() if k != key}


def reported(state: SessionState, report: e.UsageReported, on: date) -> SessionState:
    """The latest figures; what a report leaves out stays as it was. Tokens are of one stretch and add up."""
    cost, used = _new_cost(state.told_cost, report.cost_usd), state.usage
    usage = replace(
        used,
        # An agent that does not know says 0.
        context_tokens=report.context_tokens or used.context_tokens,
        window=used.window if report.window is None else report.window,
        input_tokens=used.input_tokens + (report.input_tokens or 0),
        output_tokens=used.output_tokens + (report.output_tokens or 0),
        cached_tokens=known_sum((used.cached_tokens, report.cached_tokens)),
        cost_usd=known_sum((used.cost_usd, cost)),
        context_estimated=report.estimated if report.context_tokens else used.context_estimated,
    )
    # What is measured says nothing of what is new since something was reckoned.
    anew = used.context_estimated and not usage.context_estimated
    growth = replace(state.growth, highest=None) if anew else state.growth
    growth = grown(growth, report.context_tokens) if report.context_tokens else growth
    told = state.told_cost if report.cost_usd is None else report.cost_usd
    # Others are asked behind the scenes, too; whoever reports the context is the one that it is of.
    model = report.model if report.context_tokens is not None and report.model is not None else state.model
    models = _by_model(state, report, cost, on)
    return replace(state, usage=usage, told_cost=told, model=model, models=models, growth=growth)


def _new_cost(before: float | None, told: float | None) -> float | None:
    """What was spent since the last report; one that is lower than the last counts from nothing again."""
    if told is None or before is None or told < before:
        return told
    return told - before


def _by_model(state: SessionState, report: e.UsageReported, cost: float | None, on: date) -> Mapping[str, ModelUsage]:
    counts = report.input_tokens is not None or report.output_tokens is not None
    if not counts and cost is None:
        return state.models
    fullest = max(filter(None, (state.usage.context_tokens, report.context_tokens)), default=None)
    name = report.model or ""
    before = state.models.get(name, ModelUsage())
    after = ModelUsage(
        input_tokens=known_sum((before.input_tokens, report.input_tokens)),
        cached_tokens=known_sum((before.cached_tokens, report.cached_tokens)),
        output_tokens=known_sum((before.output_tokens, report.output_tokens)),
        cost_usd=known_sum((before.cost_usd, cost)),
        cache_known=before.cache_known and not (counts and report.cached_tokens is None),
        fullest=max(filter(None, (before.fullest, fullest)), default=None),
        last_on=on,
    )
    return {**state.models, name: after}
