"""JSON bodies that are not views of the model: requests, and lists that wrap answers."""

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
"""Environment variables of the server's process."""


def own_variables() -> dict[str, str]:
    """Return the server's environment, for a caller that sends none, such as a page in a browser."""
    return dict(OWN)


def _refuse_broken_text(given: Any) -> Any:
    """Return the body unchanged; raise a validation error for lone surrogates, which JSON allows and no file or
    database can store."""
    for place in _places_without_text(given):
        raise PydanticCustomError(REFUSED, "contains invalid UTF-8 text, in {place}", {"place": place})
    return given


def _with_variables(given: Any) -> Any:
    """Add the server's own variables to a body whose caller sends none; refuse lone surrogates."""
    _refuse_broken_text(given)
    return {"environment": own_variables(), **cast(dict[str, Any], given)} if isinstance(given, dict) else given


Sent = Annotated[T, BeforeValidator(_refuse_broken_text)]
"""Body of a request of the model."""
SentByCaller = Annotated[T, BeforeValidator(_with_variables)]
"""Body of a request that may start an agent."""


class Request(BaseModel):
    """Body whose unknown fields are refused, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        """Refuse lone surrogates anywhere in the body."""
        return _refuse_broken_text(given)


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


class LimitsRequest(Request):
    """Change of limits; a field left out stays as it is, and 0 removes a limit."""

    tasks: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    usd: float | None = None
    wait_for_quota: bool | None = None

    @property
    def limits(self) -> Limits:
        """Return the limits on tasks, seconds, tokens and usd."""
        return Limits(tasks=self.tasks, seconds=self.seconds, tokens=self.tokens, usd=self.usd)


class AgentsRequest(Request):
    """Request with the caller's variables: programs are searched on the caller's PATH."""

    environment: Variables = Field(default_factory=own_variables, repr=False)


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
        """Build the row of a snapshot; the exam's score is None if it was not studied."""
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
