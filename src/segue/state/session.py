"""State of a session, folded from its events."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TypeVar, assert_never

from segue.model import events as e
from segue.model.accounts import ModelUsage, known_sum
from segue.model.checkpoint import OpenCall, Usage
from segue.model.ids import NOTHING_SEEN, PromptId, RequestId, Seq, SessionId, TaskId
from segue.model.status import SAME_CONVERSATION, Failure, PromptStatus, Role, SessionStatus, WaitingFor, Way
from segue.state.growth import Growth, grown

TELLING = frozenset({Way.CONTEXT, Way.HISTORY})
"""Ways in which a new conversation gets the earlier context in its first prompt."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPrompt:
    """Prompt without an acknowledgement."""

    status: PromptStatus
    task_id: TaskId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """Permission request without an answer."""

    title: str
    tool: str
    call_id: str
    requested_at: datetime
    free_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """State of a session."""

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
    context_way: Way | None = None
    """Way in which it got the earlier context, if it started with one."""
    own_context: str = ""
    """Text that a person wrote for it, used instead of a compiled context."""
    usage: Usage = field(default_factory=Usage)
    models: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """Usage by model; a model without a name has an empty key."""
    model: str | None = None
    """Model of the current context, by the agent's last name for it."""
    overflowed: bool = False
    """True if the last turn ended because the context was full, and the agent has not compacted it since."""
    reported_cost: float | None = None
    """Last cost that the agent reported; a lower one starts a new count."""
    capabilities: tuple[str, ...] | None = None
    """Capabilities that the agent reported at its last start."""
    was_given_a_task: bool = False
    last_prompted: Seq = NOTHING_SEEN
    """Event of the last message to the agent."""
    bookmark: str | None = None
    """Agent's own name for the current point between two turns, if it has one."""
    failure: Failure | None = None
    """Failure of the agent that ended the last run, if any."""
    reset_at: datetime | None = None
    growth: Growth = field(default_factory=Growth)
    compactions: int = 0
    """Number of compactions by the agent."""
    prompts: Mapping[PromptId, OpenPrompt] = field(default_factory=dict[PromptId, OpenPrompt])
    """Prompts that are queued, or sent and not acknowledged."""
    turn: PromptId | None = None
    """Prompt whose turn is under way."""
    calls: Mapping[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    """Tool calls without a recorded end."""
    questions: Mapping[RequestId, OpenQuestion] = field(default_factory=dict[RequestId, OpenQuestion])

    @property
    def context_tokens_new(self) -> int:
        """Return the tokens added to the context since the last refresh, at least 0."""
        return max(0, self.growth.new)

    @property
    def never_started(self) -> bool:
        """Return True if the session follows another one and no agent ever started in it."""
        started = self.token is not None or self.refused_tokens or self.capabilities is not None
        return self.parent is not None and not started and not self.usage.turns


def apply_to_session(state: SessionState, record: e.Record, event: e.SessionEvent) -> SessionState:
    """Return the session after one of its events; the given one stays unchanged."""
    if isinstance(event, e.ConversationEvent):
        return _apply_conversation(state, record, event)
    match event:
        case e.SessionMoved(after=after, reason=reason, waiting_for=waiting_for):
            return replace(state, status=after, reason=reason, waiting_for=waiting_for)
        case e.TokenCaptured(token=token):
            return replace(state, token=token, bookmark=state.bookmark if token == state.token else None)
        case e.TokenRefused(token=token):
            return replace(state, token=None, bookmark=None, refused_tokens=(*state.refused_tokens, token))
        case e.RunQueued(way=way, context=context):
            context_way = way if way in TELLING else state.context_way
            own = context or state.own_context
            joins = way is Way.FORK or (way in SAME_CONVERSATION and state.usage.context_tokens is None)
            growth = Growth(highest=None) if joins else state.growth
            return replace(state, runs=state.runs + 1, way=way, context_way=context_way, own_context=own, growth=growth)
        case e.WayChanged(after=way):
            return replace(state, way=way, growth=Growth(), context_way=way if way in TELLING else state.context_way)
        case e.RunStarted():
            # Calls and questions of the last process stay open for ever; its checkpoint names them.
            return replace(state, calls={}, questions={}, turn=None, failure=None, reset_at=None)
        case e.AgentStarted(capabilities=capabilities):
            return replace(state, capabilities=capabilities)
        case e.RunEnded(failure=failure, reset_at=reset_at):
            # The turn is over, even if its progress is unknown.
            return replace(state, failure=failure, reset_at=reset_at, turn=None)
        case e.PromptQueued(task_id=None) | e.ContextCarried() | e.CapacityReached():
            return state
        case e.PromptQueued(prompt_id=prompt_id, task_id=task_id):
            return _prompt(state, prompt_id, OpenPrompt(status=PromptStatus.QUEUED, task_id=task_id))
        case e.PromptSent(prompt_id=prompt_id):
            queued = state.prompts.get(prompt_id)
            sent = OpenPrompt(status=PromptStatus.SENT, task_id=queued.task_id if queued else None)
            given = state.was_given_a_task or sent.task_id is not None
            state = _prompt(state, prompt_id, sent)
            return replace(
                state, turn=prompt_id, calls={}, was_given_a_task=given, last_prompted=record.seq, bookmark=None
            )
        case e.PromptAcknowledged(prompt_id=prompt_id) | e.PromptNotSent(prompt_id=prompt_id):
            return replace(state, prompts=_without(state.prompts, prompt_id))
        case e.TurnJoined(prompt_id=prompt_id):
            return replace(state, turn=prompt_id)
        case e.PermissionAnswered(request_id=request_id):
            return replace(state, questions=_without(state.questions, request_id))
        case e.ContextRefreshed(new_tokens=new_tokens):
            # The report that caused it may be recorded after it.
            return replace(state, growth=replace(state.growth, new=state.growth.new - new_tokens))
        case _:
            assert_never(event)


def _apply_conversation(state: SessionState, record: e.Record, event: e.ConversationEvent) -> SessionState:
    """Return the session after an event of its conversation; messages and other events without a count change
    nothing."""
    match event:
        case e.UsageReported():
            return reported(state, event, record.at.date())
        case e.UserSpoke():
            # A turn of an imported conversation; open calls of the turn before stay open for ever.
            usage = replace(state.usage, turns=state.usage.turns + 1)
            return replace(state, usage=usage, calls={}, was_given_a_task=True, last_prompted=record.seq, bookmark=None)
        case e.TurnEnded(reason=reason, bookmark=bookmark):
            return replace(_turn_over(state), overflowed=reason == "max_tokens", bookmark=bookmark)
        case e.TurnFailed():
            return replace(_turn_over(state), overflowed=False)
        case e.Compacted():
            return replace(state, compactions=state.compactions + 1, overflowed=False)
        case e.ToolCalled(call_id=call_id, title=title, tool=tool):
            calls = {**state.calls, call_id: OpenCall(call_id=call_id, title=title, tool=tool)}
            return replace(state, calls=calls, usage=replace(state.usage, tool_calls=state.usage.tool_calls + 1))
        case e.ToolFinished(call_id=call_id):
            return replace(state, calls=_without(state.calls, call_id))
        case e.PermissionRequested(request_id=request_id, title=title, tool=tool, call_id=call_id, free_text=free_text):
            question = OpenQuestion(
                title=title, tool=tool, call_id=call_id, requested_at=record.at, free_text=free_text
            )
            return replace(state, questions={**state.questions, request_id: question})
        case (
            e.AgentMessage()
            | e.AgentThought()
            | e.ToolProgressed()
            | e.FilesChanged()
            | e.TodoUpdated()
            | e.OutputRecorded()
            | e.AgentExited()
            | e.AgentReported()
            | e.WorkLocation()
            | e.AgentSummarised()
        ):
            return state
        case _:
            assert_never(event)


def _prompt(state: SessionState, prompt_id: PromptId, prompt: OpenPrompt) -> SessionState:
    """Return the session with this state of a prompt."""
    return replace(state, prompts={**state.prompts, prompt_id: prompt})


def _turn_over(state: SessionState) -> SessionState:
    """Return the session with no turn under way and one turn more in its usage."""
    return replace(state, turn=None, usage=replace(state.usage, turns=state.usage.turns + 1))


def _without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    """Return a copy of the mapping without this key."""
    return {k: v for k, v in mapping.items() if k != key}


def reported(state: SessionState, report: e.UsageReported, on: date) -> SessionState:
    """Return the session after a usage report of this day; missing figures keep their values, and tokens of reports
    add up."""
    cost, used = _new_cost(state.reported_cost, report.cost_usd), state.usage
    usage = replace(
        used,
        # An agent that does not know it reports 0.
        context_tokens=report.context_tokens or used.context_tokens,
        window=used.window if report.window is None else report.window,
        input_tokens=used.input_tokens + (report.input_tokens or 0),
        output_tokens=used.output_tokens + (report.output_tokens or 0),
        cached_tokens=known_sum((used.cached_tokens, report.cached_tokens)),
        cost_usd=known_sum((used.cost_usd, cost)),
        context_estimated=report.estimated if report.context_tokens else used.context_estimated,
    )
    # A measured size cannot be compared with an estimated one.
    first_measured = used.context_estimated and not usage.context_estimated
    growth = replace(state.growth, highest=None) if first_measured else state.growth
    growth = grown(growth, report.context_tokens) if report.context_tokens else growth
    cost_so_far = state.reported_cost if report.cost_usd is None else report.cost_usd
    # Agents use other models for side tasks; the context belongs to the model that reports its size.
    model = report.model if report.context_tokens is not None and report.model is not None else state.model
    models = _by_model(state, report, cost, on)
    return replace(state, usage=usage, reported_cost=cost_so_far, model=model, models=models, growth=growth)


def _new_cost(before: float | None, reported: float | None) -> float | None:
    """Return the cost since the last report, None if none was reported; a lower total than before starts a new
    count."""
    if reported is None or before is None or reported < before:
        return reported
    return reported - before


def _by_model(state: SessionState, report: e.UsageReported, cost: float | None, on: date) -> Mapping[str, ModelUsage]:
    """Return the usage by model with the report added under its model, or under "" without one; unchanged if it has
    neither tokens nor cost."""
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
