"""Events in the conversation with an agent."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from segue.model.ids import PromptId, RequestId
from segue.model.status import Failure

JsonObject = dict[str, Any]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
ToolStatus = Literal["completed", "failed", "unknown"]
FileAction = Literal["created", "modified", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """Piece of streamed text. Transient: the recorder coalesces it into `AgentMessage` or `AgentThought`."""

    role: Literal["message", "thought"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage:
    """Message of the agent."""

    kind: Literal["agent.message"] = "agent.message"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentThought:
    """Reasoning that the agent showed."""

    kind: Literal["agent.thought"] = "agent.thought"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """Start of a tool call; its effect is unknown until `ToolFinished`."""

    kind: Literal["tool.called"] = "tool.called"
    call_id: str
    title: str
    tool: str
    """Kind of tool in the agent protocol: read, edit, delete, execute, fetch, think, other, …"""
    input: JsonObject = field(default_factory=dict[str, Any])
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgressed:
    """Partial output of a tool call that is still running."""

    kind: Literal["tool.progressed"] = "tool.progressed"
    call_id: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """End of a tool call."""

    kind: Literal["tool.finished"] = "tool.finished"
    call_id: str
    status: ToolStatus
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged:
    """File changes seen by the agent's own program."""

    kind: Literal["files.changed"] = "files.changed"
    changes: tuple[tuple[str, FileAction], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoEntry:
    """Line of an agent's to-do list."""

    content: str
    status: str
    priority: str = "medium"


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoUpdated:
    """New content of the agent's to-do list."""

    kind: Literal["todo.updated"] = "todo.updated"
    entries: tuple[TodoEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReported:
    """Report of the context size, the tokens and the cost."""

    kind: Literal["usage.reported"] = "usage.reported"
    context_tokens: int | None = None
    window: int | None = None
    input_tokens: int | None = None
    """Input tokens since the last report, without those read from the vendor's cache."""
    output_tokens: int | None = None
    cost_usd: float | None = None
    """Cost of the conversation so far."""
    cached_tokens: int | None = None
    """Tokens since the last report that were read from the vendor's cache; None if not counted."""
    model: str | None = None
    """Model that was used, by the agent's name for it."""
    estimated: bool = False
    """True if Segue estimated `context_tokens` because the agent does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionOption:
    """Answer that the agent offers for a permission request."""

    id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequested:
    """Request of the agent for a permission."""

    kind: Literal["permission.requested"] = "permission.requested"
    request_id: RequestId
    call_id: str
    title: str
    tool: str
    options: tuple[PermissionOption, ...]
    free_text: bool = False
    """True if a text is accepted as the answer, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """End of a turn: the agent waits for the next prompt."""

    kind: Literal["turn.ended"] = "turn.ended"
    prompt_id: PromptId
    reason: StopReason
    bookmark: str | None = None
    """Agent's own name for this point of its conversation, if it has one; a copy can be made up to here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    """End of a turn by an error that the agent reported."""

    kind: Literal["turn.failed"] = "turn.failed"
    prompt_id: PromptId
    failure: Failure
    message: str
    reset_at: datetime | None = None
    """Time at which an exhausted quota is full again, if the agent reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """Compaction of the conversation by the agent: a summary replaced it."""

    kind: Literal["agent.compacted"] = "agent.compacted"
    tokens_before: int | None = None
    tokens_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentExited:
    """End of the agent's process."""

    kind: Literal["agent.exited"] = "agent.exited"
    code: int | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRecorded:
    """Position in the output of an agent that can run unattended: the journal holds everything before it."""

    kind: Literal["agent.heard"] = "agent.heard"
    updates: int
    """Number of updates since the agent started."""
    characters: int = 0
    """Number of characters after that update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReported:
    """Agent's report on its decisions and errors, requested before a pause. It is no part of the work."""

    kind: Literal["agent.reported"] = "agent.reported"
    prompt_id: PromptId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSpoke:
    """Message of the user, in a conversation that was not held under Segue."""

    kind: Literal["user.spoke"] = "user.spoke"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLocation:
    """Directory, branch and commit of the work, as far as the agent's program knew them."""

    kind: Literal["standing"] = "standing"
    directory: str | None = None
    branch: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSummarised:
    """Summary by which the agent replaced its conversation so far."""

    kind: Literal["agent.summarised"] = "agent.summarised"
    text: str
