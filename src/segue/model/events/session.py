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
    kind: Literal["session.moved"] = "session.moved"
    before: SessionStatus
    after: SessionStatus
    reason: str = ""
    waiting_for: WaitingFor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCaptured:
    """The agent's own id for this conversation is known."""

    kind: Literal["token.captured"] = "token.captured"
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRefused:
    """The agent would not go on with this conversation; the token is kept, but not used again."""

    kind: Literal["token.refused"] = "token.refused"
    token: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one way back would cost."""

    way: Way
    possible: bool
    tokens: int | None
    """None where nobody knows."""
    note: str = ""
    """How the price is known, or why the way is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQueued:
    """A way was chosen, and this is why; what each of the others would have cost stands beside it."""

    kind: Literal["run.queued"] = "run.queued"
    way: Way
    reason: str
    purpose: Purpose = Purpose.WORK
    prices: tuple[Price, ...] = ()
    context: str = ""
    """What a person wrote for the new conversation, in place of what would be compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayChanged:
    """The way that was chosen turned out to be closed, so the run goes another one."""

    kind: Literal["way.changed"] = "way.changed"
    before: Way
    after: Way
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    kind: Literal["run.started"] = "run.started"
    attempt: AttemptId
    boot: BootId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    kind: Literal["run.ended"] = "run.ended"
    outcome: RunOutcome
    reason: str = ""
    failure: Failure | None = None
    reset_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted:
    """An agent process is up and its conversation is open."""

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
    kind: Literal["prompt.queued"] = "prompt.queued"
    prompt_id: PromptId
    text: str
    task_id: TaskId | None = None
    report: bool = False
    """It asks what was decided and what went wrong, and is no part of the work."""
    pictures: tuple[Picture, ...] = ()
    """What is shown with it; the words name them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCarried:
    """A prompt takes along what was said before this session; it is told once."""

    kind: Literal["context.carried"] = "context.carried"
    prompt_id: PromptId
    way: Way
    text: str
    """What stands before and after the prompt's own words, as the agent gets it."""
    exam: ExamResult | None = None
    """How well a compiled context did before it was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSent:
    """Written before the prompt leaves: found without an acknowledgement, it is shown and never sent again."""

    kind: Literal["prompt.sent"] = "prompt.sent"
    prompt_id: PromptId
    part_of: PromptId | None = None
    """The prompt that the agent got it with, if not by itself; its turn is this one's too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnJoined:
    """An agent that went on by itself is listened to again, in the turn that this prompt began."""

    kind: Literal["turn.joined"] = "turn.joined"
    prompt_id: PromptId


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptAcknowledged:
    """The agent reacted to the prompt, so it has it."""

    kind: Literal["prompt.acknowledged"] = "prompt.acknowledged"
    prompt_id: PromptId


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptNotSent:
    """The prompt never left; the next run makes a new one."""

    kind: Literal["prompt.not_sent"] = "prompt.not_sent"
    prompt_id: PromptId
    reason: str = ""
    """Why it never will be, if it is not said again in another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRefreshed:
    """So much was new in the conversation that it was kept: as a checkpoint, and as something to remember."""

    kind: Literal["context.refreshed"] = "context.refreshed"
    new_tokens: int
    checkpoint_id: CheckpointId
    memory_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswered:
    kind: Literal["permission.answered"] = "permission.answered"
    request_id: RequestId
    outcome: PermissionOutcome
    by: Literal["user", "policy", "timeout", "segue"]
    option: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReached:
    """The context has come up to a rung of the capacity ladder; said once for each time it does."""

    kind: Literal["capacity.reached"] = "capacity.reached"
    rung: str
    context_tokens: int
    window: int
    estimated: bool = False
