"""The JSON bodies that are not views of the model: what callers send, and what wraps an answer."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from segue.model.agents import Choices, CommitPolicy, Limits, McpServer
from segue.model.errors import BadInput
from segue.model.ids import BootId, CheckpointId, RequestId, SessionId, WorkflowId
from segue.model.pictures import Shown
from segue.model.plan import Issue
from segue.model.snapshots import Snapshot
from segue.model.status import Permissions, Trigger, Way
from segue.model.views import AgentView, Answer, NewFork, PlanText, SessionDetail, Successor, WorkflowView
from segue.model.work import WorkSettings

OWN: Mapping[str, str] = os.environ
"""What the server was started with."""
REFUSED = "refused"
"""The kind of what these documents refuse by themselves; its message is said of the field."""


def _without_nul(given: str) -> str:
    if "\0" in given:
        raise PydanticCustomError(REFUSED, "holds a NUL, which can be handed to no program")
    return given


def _place(given: Path) -> Path:
    _without_nul(str(given))
    return given


Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Handed = Annotated[str, AfterValidator(_without_nul)]
"""What a program is started with."""
Chosen = Annotated[str | None, AfterValidator(lambda given: given or None)]
"""An empty one is none."""
Place = Annotated[Path, AfterValidator(_place)]
Variables = dict[Handed, Handed]


def own_variables() -> dict[str, str]:
    """The environment of a caller that names none: it may have no shell, like a page in a browser."""
    return dict(OWN)


class Request(BaseModel):
    """A body whose unknown fields are refused, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        """JSON can name characters that are none, and nothing could write them down."""
        for place in _places_without_text(given):
            raise PydanticCustomError(REFUSED, "holds what is not UTF-8 text, in {place}", {"place": place})
        return given


def _places_without_text(document: Any) -> Iterator[str]:
    """Where in a document of JSON a text, or a name, cannot be encoded."""
    left: list[tuple[str, Any]] = [("", document)]
    while left:
        place, value = left.pop()
        if isinstance(value, str) and not _is_text(value):
            yield place
        elif isinstance(value, list):
            left += [(f"{place}.{number}".lstrip("."), each) for number, each in enumerate(cast(list[Any], value))]
        elif isinstance(value, dict):
            for name, each in cast(dict[str, Any], value).items():
                shown = f"{place}.{name.encode(errors='replace').decode()}".lstrip(".")
                left += [(shown, name), (shown, each)]


def _is_text(given: str) -> bool:
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


class ChosenRequest(Request):
    """What is chosen for a workflow; what is left out is as the environment, the repository or the settings say."""

    model: Chosen = None
    mode: Chosen = None
    mcp_servers: tuple[McpServer, ...] = ()
    approve_plan: bool = False
    setup: Handed | None = None
    test_command: Handed | None = None
    test_timeout: PositiveFloat | None = None
    commit: CommitPolicy | None = None
    review: Name | None = None
    review_personas: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    review_passes: PositiveInt | None = None
    fixer: Name | None = None
    wait_for_quota: bool | None = None
    pause_after: int | None = None
    max_time: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    @property
    def of_the_conversation(self) -> Choices:
        """What no settings say."""
        return Choices(model=self.model, mode=self.mode, mcp_servers=self.mcp_servers, approve_plan=self.approve_plan)


class StartRequest(Request):
    issue: Issue
    plan: PlanText | None = None
    propose: bool = False
    """Whether the agent proposes a plan first, if none is given; else the issue is one task."""
    agent: str | None = None
    permissions: Permissions = Permissions.ASK
    repository: Place
    here: bool = False
    choices: ChosenRequest = Field(default_factory=ChosenRequest)
    environment: Variables = Field(default_factory=own_variables, repr=False)

    @property
    def said(self) -> WorkSettings:
        names = [each.name for each in fields(WorkSettings) if each.name != "agent"]
        return WorkSettings(agent=self.agent or None, **{name: getattr(self.choices, name) for name in names})


class LimitsRequest(Request):
    """What is left out stays as it is; 0 lifts a limit."""

    tasks: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    usd: float | None = None
    wait_for_quota: bool | None = None

    @property
    def limits(self) -> Limits:
        return Limits(tasks=self.tasks, seconds=self.seconds, tokens=self.tokens, usd=self.usd)


class PauseRequest(Request):
    reason: str = ""


class SuccessorRequest(Request):
    environment: Variables = Field(default_factory=own_variables, repr=False)
    agent: str | None = None
    """Another agent that takes over; `model` and `mode` are chosen for it."""
    model: Chosen = None
    mode: Chosen = None

    @property
    def successor(self) -> Successor | None:
        if self.agent is None:
            if self.model or self.mode:
                raise BadInput("A model and a mode are chosen for an agent that takes over.", hint="Name it: --agent.")
            return None
        return Successor(agent=self.agent, model=self.model, mode=self.mode)


class ResumeRequest(SuccessorRequest):
    way: Literal[Way.REATTACH, Way.NATIVE, Way.FORK, Way.CONTEXT, Way.HISTORY, Way.FRESH] | None = None
    """Without one, the best that is open is taken."""
    snapshot: str | None = None
    """The files and tasks are taken back to it first: its id, its number, or `previous`."""
    context: str | None = None
    """What a new conversation begins with, in place of a compiled context; `GET …/context` has one to begin with."""
    wait_for_quota: bool = False
    """Where a quota is known to be used up still, it is waited for, and no agent is started now."""


class ForkRequest(SuccessorRequest):
    snapshot: str | None = None
    """Without one, the session's last."""
    title: str = ""
    to_start: bool = False
    """It is to be resumed next: where its agent cannot be started, it is refused, and nothing is made."""

    def fork(self, session_id: str) -> NewFork:
        return NewFork(
            session_id=session_id,
            snapshot=self.snapshot,
            successor=self.successor,
            title=self.title,
            to_start=self.to_start,
            environment=self.environment,
        )


class OpenRequest(Request):
    environment: Variables = Field(default_factory=own_variables, repr=False)


class PictureGiven(Request):
    """A PNG, JPEG, GIF or WebP, of 5 MB at most."""

    name: str = "picture"
    data: Base64Bytes = Field(repr=False)


class PromptRequest(Request):
    text: str
    images: list[PictureGiven] = Field(default_factory=list[PictureGiven])
    """Pictures that go with the words, five at most; refused where the agent is known to take none."""
    wait: bool = True
    """Whether to wait until the agent has it, also while it is in the middle of a task."""
    now: bool = False
    """Whether the agent is interrupted for it; it goes on with its task after."""
    environment: Variables = Field(default_factory=own_variables, repr=False)

    @property
    def shown(self) -> tuple[Shown, ...]:
        return tuple(Shown(name=each.name, data=each.data) for each in self.images)


class AgentsRequest(Request):
    """The caller's variables: programs are looked for on the caller's PATH."""

    environment: Variables = Field(default_factory=own_variables, repr=False)


class AnswerRequest(Request):
    request_id: str | None = None
    """The permission that is meant; without one, the oldest open question."""
    environment: Variables = Field(default_factory=own_variables, repr=False)
    """For the agent that goes on with it, if the work had stopped for the answer."""

    def answer(self, allow: bool, *, reason: str = "", plan: PlanText | None = None) -> Answer:
        wanted = RequestId(self.request_id) if self.request_id else None
        return Answer(allow=allow, reason=reason, request_id=wanted, plan=plan, environment=self.environment)


class ApproveRequest(AnswerRequest):
    plan: PlanText | None = None
    """Another plan than the one that was proposed."""
    reason: str = ""
    """Why a task is taken as done that was not let pass; the agent is told."""


class RejectRequest(AnswerRequest):
    reason: str = ""


class CancelRequest(Request):
    reason: str = ""


class ShutdownRequest(Request):
    if_idle: bool = False
    """Only if no workflow is going on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Every error: a name for programs, a sentence for people, and what to do."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    version: str
    pid: int
    boot: BootId
    home: str
    started_at: datetime
    workflows: list[WorkflowView]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowList:
    workflows: list[WorkflowView]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionList:
    sessions: list[SessionDetail]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentList:
    agents: list[AgentView]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSummary:
    id: CheckpointId
    session_number: int
    trigger: Trigger
    created_at: datetime
    tasks_completed: int
    tasks_remaining: int
    clean_boundary: bool
    session_id: SessionId
    reason: str
    exam: float | None
    """How much of what matters the context made from it holds; None while nobody has looked."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        checkpoint, findings = snapshot.checkpoint, snapshot.findings
        return cls(
            id=checkpoint.id,
            session_number=checkpoint.session_number,
            trigger=checkpoint.trigger,
            created_at=checkpoint.created_at,
            tasks_completed=checkpoint.tasks_completed,
            tasks_remaining=checkpoint.tasks_remaining,
            clean_boundary=checkpoint.clean_boundary,
            session_id=checkpoint.session_id,
            reason=checkpoint.reason,
            exam=findings.exam.score if findings and findings.exam else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotList:
    workflow_id: WorkflowId
    snapshots: list[SnapshotSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownAnswer:
    status: Literal["stopping"] = "stopping"
