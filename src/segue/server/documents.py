"""The JSON bodies that are not views of the model: what callers send, and what wraps an answer."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from segue.model.agents import Limits
from segue.model.ids import BootId, CheckpointId, SessionId, WorkflowId
from segue.model.requests import REFUSED, Variables
from segue.model.snapshots import Snapshot
from segue.model.status import Trigger
from segue.model.views import AgentView, SessionDetail, WorkflowView

T = TypeVar("T")
OWN: Mapping[str, str] = os.environ
"""What the server was started with."""


def own_variables() -> dict[str, str]:
    """The environment of a caller that names none: it may have no shell, like a page in a browser."""
    return dict(OWN)


def _refuse_broken_text(given: Any) -> Any:
    """Refuse lone surrogates, which JSON allows and no file or database can store."""
    for place in _places_without_text(given):
        raise PydanticCustomError(REFUSED, "holds what is not UTF-8 text, in {place}", {"place": place})
    return given


def _with_variables(given: Any) -> Any:
    """Add the server's own variables to a body whose caller sends none."""
    _refuse_broken_text(given)
    return {"environment": own_variables(), **cast(dict[str, Any], given)} if isinstance(given, dict) else given


Sent = Annotated[T, BeforeValidator(_refuse_broken_text)]
"""Body of a request of the model."""
SentByCaller = Annotated[T, BeforeValidator(_with_variables)]
"""Body of a request that may start an agent."""


class Request(BaseModel):
    """A body whose unknown fields are refused, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        return _refuse_broken_text(given)


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


class AgentsRequest(Request):
    """The caller's variables: programs are looked for on the caller's PATH."""

    environment: Variables = Field(default_factory=own_variables, repr=False)


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
