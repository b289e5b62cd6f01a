"""The JSON bodies that are not views of the model: what callers send, and what wraps an answer."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from segue.model.agents import Choices
from segue.model.errors import BadInput
from segue.model.ids import BootId, CheckpointId, SessionId, WorkflowId
from segue.model.plan import Issue
from segue.model.snapshots import Snapshot
from segue.model.status import Permissions, Trigger, Way
from segue.model.views import AgentView, NewFork, NewWorkflow, PlanText, SessionDetail, Successor, WorkflowView


class Request(BaseModel):
    """A body whose unknown fields are refused, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")


class StartRequest(Request):
    issue: Issue
    plan: PlanText | None = None
    agent: str | None = None
    permissions: Permissions = Permissions.ASK
    repository: Path
    here: bool = False
    choices: Choices = Field(default_factory=Choices)
    environment: dict[str, str] = Field(default_factory=dict, repr=False)

    def workflow(self, default_agent: str) -> NewWorkflow:
        return NewWorkflow(
            issue=self.issue,
            plan=self.plan,
            agent=self.agent or default_agent,
            permissions=self.permissions,
            repository=self.repository,
            here=self.here,
            choices=self.choices,
            environment=self.environment,
        )


class PauseRequest(Request):
    reason: str = ""


class SuccessorRequest(Request):
    environment: dict[str, str] = Field(default_factory=dict, repr=False)
    agent: str | None = None
    """Another agent that takes over; `model` and `mode` are chosen for it."""
    model: str | None = None
    mode: str | None = None

    @property
    def successor(self) -> Successor | None:
        if self.agent is None:
            if self.model or self.mode:
                raise BadInput("A model and a mode are chosen for an agent that takes over.", hint="Name it: --agent.")
            return None
        return Successor(agent=self.agent, model=self.model, mode=self.mode)


class ResumeRequest(SuccessorRequest):
    way: Literal[Way.NATIVE, Way.CONTEXT, Way.HISTORY, Way.FRESH] | None = None
    """Without one, the best that is open is taken."""
    snapshot: str | None = None
    """The files and tasks are taken back to it first: its id, its number, or `previous`."""


class ForkRequest(SuccessorRequest):
    snapshot: str | None = None
    """Without one, the session's last."""
    title: str = ""

    def fork(self, session_id: str) -> NewFork:
        return NewFork(
            session_id=session_id,
            snapshot=self.snapshot,
            successor=self.successor,
            title=self.title,
            environment=self.environment,
        )


class OpenRequest(Request):
    environment: dict[str, str] = Field(default_factory=dict, repr=False)


class PromptRequest(Request):
    text: str
    wait: bool = True
    """Whether to wait until the agent has it, also while it is in the middle of a task."""
    now: bool = False
    """Whether the agent is interrupted for it; it goes on with its task after."""
    environment: dict[str, str] = Field(default_factory=dict, repr=False)


class AgentsRequest(Request):
    """The caller's variables: programs are looked for on the caller's PATH."""

    environment: dict[str, str] = Field(default_factory=dict, repr=False)


class ApproveRequest(Request):
    request_id: str | None = None


class RejectRequest(Request):
    reason: str = ""
    request_id: str | None = None


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
