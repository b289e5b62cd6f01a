"""JSON bodies that are not views of the model: requests, and lists that wrap answers."""

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
from segue.model.work_settings import WorkSettings

OWN: Mapping[str, str] = os.environ
"""Environment variables of the server's process."""
REFUSED = "refused"
"""Error type of the checks in this module; its message follows the name of the field."""


def _without_nul(given: str) -> str:
    if "\0" in given:
        raise PydanticCustomError(REFUSED, "contains a NUL character, which no program accepts")
    return given


def _place(given: Path) -> Path:
    _without_nul(str(given))
    return given


NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
ProgramText = Annotated[str, AfterValidator(_without_nul)]
"""Argument or variable of a program."""
OptionalText = Annotated[str | None, AfterValidator(lambda given: given or None)]
"""Choice; empty text counts as no choice."""
PathInput = Annotated[Path, AfterValidator(_place)]
Variables = dict[ProgramText, ProgramText]


def own_variables() -> dict[str, str]:
    """Return the server's environment, for a caller that sends none, such as a page in a browser."""
    return dict(OWN)


class Request(BaseModel):
    """Body whose unknown fields are refused, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        """Refuse lone surrogates, which JSON allows and no file or database can store."""
        for place in _places_without_text(given):
            raise PydanticCustomError(REFUSED, "contains invalid UTF-8 text, in {place}", {"place": place})
        return given


def _places_without_text(document: Any) -> Iterator[str]:
    """Yield the places of a JSON document whose text, or whose name, cannot be encoded."""
    left: list[tuple[str, Any]] = [("", document)]
    while left:
        place, value = left.pop()
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                yield place
        elif isinstance(value, list):
            left += [(f"{place}.{number}".lstrip("."), each) for number, each in enumerate(cast(list[Any], value))]
        elif isinstance(value, dict):
            for name, each in cast(dict[str, Any], value).items():
                shown = f"{place}.{name.encode(errors='replace').decode()}".lstrip(".")
                left += [(shown, name), (shown, each)]


class ChosenRequest(Request):
    """Choices of a workflow; the environment, the repository and the settings supply those left out."""

    model: OptionalText = None
    mode: OptionalText = None
    mcp_servers: tuple[McpServer, ...] = ()
    approve_plan: bool = False
    setup: ProgramText | None = None
    test_command: ProgramText | None = None
    test_timeout: PositiveFloat | None = None
    commit: CommitPolicy | None = None
    review: NonEmpty | None = None
    review_personas: Annotated[tuple[NonEmpty, ...], Field(min_length=1)] | None = None
    review_passes: PositiveInt | None = None
    fixer: NonEmpty | None = None
    wait_for_quota: bool | None = None
    pause_after: int | None = None
    max_time: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    @property
    def of_the_conversation(self) -> Choices:
        """Choices that no settings file contains."""
        return Choices(model=self.model, mode=self.mode, mcp_servers=self.mcp_servers, approve_plan=self.approve_plan)


class StartRequest(Request):
    """Request for a new workflow."""

    issue: Issue
    plan: PlanText | None = None
    propose: bool = False
    """Ask the agent for a plan if none is given; otherwise the issue is one task."""
    agent: str | None = None
    permissions: Permissions = Permissions.ASK
    repository: PathInput
    here: bool = False
    choices: ChosenRequest = Field(default_factory=ChosenRequest)
    environment: Variables = Field(default_factory=own_variables, repr=False)

    @property
    def said(self) -> WorkSettings:
        names = [each.name for each in fields(WorkSettings) if each.name != "agent"]
        return WorkSettings(agent=self.agent or None, **{name: getattr(self.choices, name) for name in names})


class LimitsRequest(Request):
    """Change of limits; a field left out stays as it is, and 0 removes a limit."""

    tasks: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    usd: float | None = None
    wait_for_quota: bool | None = None

    @property
    def limits(self) -> Limits:
        return Limits(tasks=self.tasks, seconds=self.seconds, tokens=self.tokens, usd=self.usd)


class PauseRequest(Request):
    """Request for a pause."""

    reason: str = ""


class SuccessorRequest(Request):
    """Request that may name another agent to take over."""

    environment: Variables = Field(default_factory=own_variables, repr=False)
    agent: str | None = None
    """Agent that takes over; `model` and `mode` are chosen for it."""
    model: OptionalText = None
    mode: OptionalText = None

    @property
    def successor(self) -> Successor | None:
        if self.agent is None:
            if self.model or self.mode:
                raise BadInput("A model and a mode are chosen for an agent that takes over.", hint="Name it: --agent.")
            return None
        return Successor(agent=self.agent, model=self.model, mode=self.mode)


class ResumeRequest(SuccessorRequest):
    """Request to resume a workflow."""

    way: Literal[Way.REATTACH, Way.NATIVE, Way.FORK, Way.CONTEXT, Way.HISTORY, Way.FRESH] | None = None
    """Way of resuming; without one, the best available way is taken."""
    snapshot: str | None = None
    """Snapshot to which files and tasks are rewound first: its id, its number, or `previous`."""
    context: str | None = None
    """Text that replaces the compiled context of a new conversation; `GET …/context` returns one to edit."""
    wait_for_quota: bool = False
    """Wait for a quota that is known to be used up, instead of starting an agent now."""


class ForkRequest(SuccessorRequest):
    """Request for a fork of a session."""

    snapshot: str | None = None
    """Snapshot to start from; without one, the session's last."""
    title: str = ""
    to_start: bool = False
    """The fork will be resumed next: refuse it, and create nothing, if its agent cannot be started."""

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
    """Request to start a session's agent without a prompt."""

    environment: Variables = Field(default_factory=own_variables, repr=False)


class PictureGiven(Request):
    """PNG, JPEG, GIF or WebP of 5 MB at most."""

    name: str = "picture"
    data: Base64Bytes = Field(repr=False)


class PromptRequest(Request):
    """Request to send a message to an agent."""

    text: str
    images: list[PictureGiven] = Field(default_factory=list[PictureGiven])
    """Pictures sent with the text, five at most; refused if the agent is known to accept none."""
    wait: bool = True
    """Wait until the agent has received the message, even if it is in the middle of a task."""
    now: bool = False
    """Interrupt the agent; it continues its task afterwards."""
    environment: Variables = Field(default_factory=own_variables, repr=False)

    @property
    def shown(self) -> tuple[Shown, ...]:
        return tuple(Shown(name=each.name, data=each.data) for each in self.images)


class AgentsRequest(Request):
    """Request with the caller's variables: programs are searched on the caller's PATH."""

    environment: Variables = Field(default_factory=own_variables, repr=False)


class AnswerRequest(Request):
    """Answer to an open question."""

    request_id: str | None = None
    """Permission request to answer; without one, the oldest open question."""
    environment: Variables = Field(default_factory=own_variables, repr=False)
    """Variables for the agent that continues, if the work had stopped for the answer."""

    def answer(self, allow: bool, *, reason: str = "", plan: PlanText | None = None) -> Answer:
        wanted = RequestId(self.request_id) if self.request_id else None
        return Answer(allow=allow, reason=reason, request_id=wanted, plan=plan, environment=self.environment)


class ApproveRequest(AnswerRequest):
    """Approval of a permission, a plan or a task."""

    plan: PlanText | None = None
    """Plan that replaces the proposed one."""
    reason: str = ""
    """Reason for accepting a task that was rejected before; the agent receives it."""


class RejectRequest(AnswerRequest):
    """Rejection of a permission or a plan."""

    reason: str = ""


class CancelRequest(Request):
    """Request to end a workflow for good."""

    reason: str = ""


class ShutdownRequest(Request):
    """Request to stop the server."""

    if_idle: bool = False
    """Stop only if no workflow is running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Error answer: a code for programs, a message for people, and a hint on what to do."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """Answer with the server's identity and its recent workflows."""

    version: str
    pid: int
    boot: BootId
    home: str
    started_at: datetime
    workflows: list[WorkflowView]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowList:
    """Answer with workflows."""

    workflows: list[WorkflowView]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionList:
    """Answer with sessions."""

    sessions: list[SessionDetail]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentList:
    """Answer with configured agents."""

    agents: list[AgentView]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSummary:
    """Row of a list of snapshots."""

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
    """Score of its resume context in the exam; None until the snapshot is studied."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Summarize a snapshot."""
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
    """Answer with a workflow's snapshots."""

    workflow_id: WorkflowId
    snapshots: list[SnapshotSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownAnswer:
    """Answer to a request to stop the server."""

    status: Literal["stopping"] = "stopping"
