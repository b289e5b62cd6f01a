"""Events in the conversation with an agent."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from segue.model.ids import PromptId, RequestId
from segue.model.status import Failure

JsonObject = dict[str, Any]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
ToolStatus = Literal["completed", "failed"]
FileAction = Literal["created", "modified", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of streamed text. Transient: the recorder coalesces it into `AgentMessage` or `AgentThought`."""

    role: Literal["message", "thought"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage:
    """The agent said something."""

    kind: Literal["agent.message"] = "agent.message"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentThought:
    """The agent thought aloud."""

    kind: Literal["agent.thought"] = "agent.thought"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The agent began a tool call; until it is finished, its effect is unknown."""

    kind: Literal["tool.called"] = "tool.called"
    call_id: str
    title: str
    tool: str
    """The protocol's kind of tool: read, edit, delete, execute, fetch, think, other, …"""
    input: JsonObject = field(default_factory=dict[str, Any])
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgressed:
    """A tool call has told something and is still at work."""

    kind: Literal["tool.progressed"] = "tool.progressed"
    call_id: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A tool call came to its end."""

    kind: Literal["tool.finished"] = "tool.finished"
    call_id: str
    status: ToolStatus
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged:
    """Files that the agent's program itself saw change."""

    kind: Literal["files.changed"] = "files.changed"
    changes: tuple[tuple[str, FileAction], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoEntry:
    content: str
    status: str
    priority: str = "medium"


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoUpdated:
    """The agent rewrote its own to-do list."""

    kind: Literal["todo.updated"] = "todo.updated"
    entries: tuple[TodoEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReported:
    """The agent told how much of its window it uses, and what the work cost so far."""

    kind: Literal["usage.reported"] = "usage.reported"
    context_tokens: int | None = None
    window: int | None = None
    input_tokens: int | None = None
    """Of this stretch, without what was read from the vendor's cache."""
    output_tokens: int | None = None
    cost_usd: float | None = None
    """Of the conversation so far."""
    cached_tokens: int | None = None
    """Of this stretch, read from the vendor's cache; None where nobody counted."""
    model: str | None = None
    """Who was asked, as the agent calls it."""
    estimated: bool = False
    """Segue reckoned the tokens of the context itself, since the agent does not tell them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionOption:
    id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequested:
    """The agent asks whether it may do something."""

    kind: Literal["permission.requested"] = "permission.requested"
    request_id: RequestId
    call_id: str
    title: str
    tool: str
    options: tuple[PermissionOption, ...]
    free_text: bool = False
    """Whether it may be answered in words, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """The agent stopped talking and waits."""

    kind: Literal["turn.ended"] = "turn.ended"
    prompt_id: PromptId
    reason: StopReason
    bookmark: str | None = None
    """The agent's own name for where its conversation stands now, if it has one: a copy may be made up to there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    """The agent could not do its turn, and said why."""

    kind: Literal["turn.failed"] = "turn.failed"
    prompt_id: PromptId
    failure: Failure
    message: str
    reset_at: datetime | None = None
    """When a used-up quota is full again, where the agent says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The agent replaced its conversation by a summary of it."""

    kind: Literal["agent.compacted"] = "agent.compacted"
    tokens_before: int | None = None
    tokens_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentExited:
    """The agent's process is gone."""

    kind: Literal["agent.exited"] = "agent.exited"
    code: int | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHeard:
    """How far an agent was heard that may go on while nobody listens: what is in the journal of it when this is."""

    kind: Literal["agent.heard"] = "agent.heard"
    updates: int
    """What it has told so far, counted from its first word."""
    characters: int = 0
    """And so much of the text that followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReported:
    """What the agent told of its decisions and errors when it was asked before a pause. It is no part of the work."""

    kind: Literal["agent.reported"] = "agent.reported"
    prompt_id: PromptId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSpoke:
    """The user's own words, in a conversation that was not held under Segue."""

    kind: Literal["user.spoke"] = "user.spoke"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the work stands: directory, branch and commit, as far as the agent's program knew them."""

    kind: Literal["standing"] = "standing"
    directory: str | None = None
    branch: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSummarised:
    """The agent replaced its conversation so far by this summary of it."""

    kind: Literal["agent.summarised"] = "agent.summarised"
    text: str
