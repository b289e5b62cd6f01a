"""Events in the life of a session: its runs, its prompts and its token."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from segue.model.findings import ExamResult
from segue.model.ids import AttemptId, BootId, CheckpointId, PromptId, RequestId, TaskId
from segue.model.pictures import Picture
from segue.model.status import Failure, Purpose, SessionStatus, WaitingFor, Way

PermissionOutcome = Literal["allowed", "denied", "interrupted"]
RunOutcome = Literal[
    "completed", "paused", "talked", "handed_over", "asked", "crashed", "failed", "cancelled", "not_started"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMoved:
    """Transition of the session."""

    kind: Literal["session.moved"] = "session.moved"
    before: SessionStatus
    after: SessionStatus
    reason: str = ""
    waiting_for: WaitingFor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCaptured:
    """Agent's own id of this conversation."""

    kind: Literal["token.captured"] = "token.captured"
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRefused:
    """Refusal of the agent to continue this conversation; the token is kept, but not used again."""

    kind: Literal["token.refused"] = "token.refused"
    token: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Price of one way to resume."""

    way: Way
    possible: bool
    tokens: int | None
    """Tokens that it costs; None if unknown."""
    note: str = ""
    """Source of the price, or the reason why this way is not possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQueued:
    """Choice of a way to resume, with its reason and the price of each way."""

    kind: Literal["run.queued"] = "run.queued"
    way: Way
    reason: str
    purpose: Purpose = Purpose.WORK
    prices: tuple[Price, ...] = ()
    context: str = ""
    """Text of a person for the new conversation, used instead of a compiled context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayChanged:
    """Change to another way, because the chosen one turned out to be impossible."""

    kind: Literal["way.changed"] = "way.changed"
    before: Way
    after: Way
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """Start of a queued run."""

    kind: Literal["run.started"] = "run.started"
    attempt: AttemptId
    boot: BootId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """End of a run."""

    kind: Literal["run.ended"] = "run.ended"
    outcome: RunOutcome
    reason: str = ""
    failure: Failure | None = None
    reset_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted:
    """Start of an agent process; its conversation is open."""

    kind: Literal["agent.started"] = "agent.started"
    name: str
    version: str
    pid: int
    guardian_pid: int
    execution: str
    resumed: bool
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptQueued:
    """Prompt that waits for its delivery."""

    kind: Literal["prompt.queued"] = "prompt.queued"
    prompt_id: PromptId
    text: str
    task_id: TaskId | None = None
    report: bool = False
    """True if it asks for a report on decisions and errors, which is no part of the work."""
    pictures: tuple[Picture, ...] = ()
    """Pictures that are sent with it; the text names them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCarried:
    """Earlier context of the work that one prompt carries into a new session."""

    kind: Literal["context.carried"] = "context.carried"
    prompt_id: PromptId
    way: Way
    text: str
    """Text before and after the prompt itself, as the agent gets it."""
    exam: ExamResult | None = None
    """Grade of the compiled context before it was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSent:
    """Delivery of a prompt, recorded before it: without an acknowledgement it is shown, and never sent again."""

    kind: Literal["prompt.sent"] = "prompt.sent"
    prompt_id: PromptId
    part_of: PromptId | None = None
    """Prompt that it was sent together with; both have the same turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnJoined:
    """Connection to an agent that kept running, in the turn that this prompt began."""

    kind: Literal["turn.joined"] = "turn.joined"
    prompt_id: PromptId


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptAcknowledged:
    """First reaction of the agent to a prompt, which proves its delivery."""

    kind: Literal["prompt.acknowledged"] = "prompt.acknowledged"
    prompt_id: PromptId


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptNotSent:
    """End of a prompt that was never delivered; the next run makes a new one."""

    kind: Literal["prompt.not_sent"] = "prompt.not_sent"
    prompt_id: PromptId
    reason: str = ""
    """Reason why it is dropped, if no new prompt replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRefreshed:
    """Periodic checkpoint and memory entry, written because the context has grown."""

    kind: Literal["context.refreshed"] = "context.refreshed"
    new_tokens: int
    checkpoint_id: CheckpointId
    memory_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswered:
    """Answer to a permission request."""

    kind: Literal["permission.answered"] = "permission.answered"
    request_id: RequestId
    outcome: PermissionOutcome
    by: Literal["user", "policy", "timeout", "segue"]
    option: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReached:
    """Rung of the capacity ladder that the context has reached; recorded once each time."""

    kind: Literal["capacity.reached"] = "capacity.reached"
    rung: str
    context_tokens: int
    window: int
    estimated: bool = False
