"""Requests of users, one value for each verb: bodies of the REST routes, and arguments of the service."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Base64Bytes, ConfigDict, Field, PositiveFloat, PositiveInt, StringConstraints
from pydantic_core import PydanticCustomError

from segue.model.agents import Choices, CommitPolicy, McpServer
from segue.model.errors import BadInput
from segue.model.ids import RequestId
from segue.model.pictures import Shown
from segue.model.plan import Issue
from segue.model.status import Permissions, Way
from segue.model.work_settings import WorkSettings

REFUSED = "refused"
"""Error type of Segue's own checks of a body; its message follows the name of the field."""


def _without_nul(given: str) -> str:
    """Return the text; raise a validation error if it contains a NUL character."""
    if "\0" in given:
        raise PydanticCustomError(REFUSED, "contains a NUL character, which no program accepts")
    return given


def _place(given: Path) -> Path:
    """Return the path; raise a validation error if it contains a NUL character."""
    _without_nul(str(given))
    return given


NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
ProgramText = Annotated[str, AfterValidator(_without_nul)]
"""Argument or variable of a program."""
OptionalText = Annotated[str | None, AfterValidator(lambda given: given or None)]
"""Choice; empty text counts as no choice."""
PathInput = Annotated[Path, AfterValidator(_place)]
Variables = Mapping[ProgramText, ProgramText]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanText:
    """Plan as its author wrote it."""

    format: Literal["yaml", "markdown"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Base of all requests: a body with an unknown field is refused, so that a misspelt one is not ignored."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallersRequest(Body):
    """Request that may start an agent, with the variables of its caller."""

    # Kept out of the repr: the caller's variables are held in memory and must not reach a log.
    environment: Variables = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRequest(Body):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(CallersRequest):
    """Request for a new workflow."""

    issue: Issue
    plan: PlanText | None = None
    propose: bool = False
    """Ask the agent for a plan if none is given; otherwise the issue is one task."""
    agent: str | None = None
    permissions: Permissions = Permissions.ASK
    repository: PathInput
    here: bool = False
    choices: WorkRequest = field(default_factory=WorkRequest)

    @property
    def said(self) -> WorkSettings:
        """Settings that the request itself contains."""
        names = [each.name for each in fields(WorkSettings) if each.name != "agent"]
        return WorkSettings(agent=self.agent or None, **{name: getattr(self.choices, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest(CallersRequest):
    """Request to import a session that ran without Segue."""

    file: PathInput | None = None
    """Session file of an agent; without one, the newest of `agent` in `repository` is taken."""
    agent: str | None = None
    repository: PathInput | None = None
    """PathInput of the work if the session's own directory is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequest(Body):
    """Request for a pause."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessorRequest(CallersRequest):
    """Request that may name another agent to take over."""

    agent: str | None = None
    """Agent that takes over; `model` and `mode` are chosen for it."""
    model: OptionalText = None
    mode: OptionalText = None

    def __post_init__(self) -> None:
        if self.agent is None and (self.model or self.mode):
            raise BadInput("A model and a mode are chosen for an agent that takes over.", hint="NonEmpty it: --agent.")


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest(SuccessorRequest):
    """Request for a fork of a session."""

    snapshot: str | None = None
    """Snapshot to start from; without one, the session's last."""
    title: str = ""
    to_start: bool = False
    """The fork will be resumed next: refuse it, and create nothing, if its agent cannot be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest(CallersRequest):
    """Request to start a session's agent without a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureGiven(Shown):
    """PNG, JPEG, GIF or WebP of 5 MB at most, in base64."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    data: Base64Bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest(CallersRequest):
    """Request to send a message to an agent."""

    text: str
    images: tuple[PictureGiven, ...] = ()
    """Pictures sent with the text, five at most; refused if the agent is known to accept none."""
    wait: bool = True
    """Wait until the agent has received the message, even if it is in the middle of a task."""
    now: bool = False
    """Interrupt the agent; it continues its task afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest(CallersRequest):
    """Answer to an open question."""

    allow: ClassVar[bool]
    request_id: Annotated[RequestId | None, AfterValidator(lambda given: given or None)] = None
    """Permission request to answer; without one, the oldest open question."""
    reason: str = ""
    """Reason that the agent receives; a plan or a task is rejected only with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveRequest(AnswerRequest):
    """Approval of a permission, a plan or a task."""

    allow: ClassVar[bool] = True
    plan: PlanText | None = None
    """Plan that replaces the proposed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectRequest(AnswerRequest):
    """Rejection of a permission, a plan or a task."""

    allow: ClassVar[bool] = False
    plan: ClassVar[None] = None


Answer = ApproveRequest | RejectRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequest(Body):
    """Request to end a workflow for good."""

    reason: str = ""
