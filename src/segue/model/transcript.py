"""A recorded conversation, whoever recorded it: the journal, or an agent in a session file of its own.

What an agent says is told in the journal's own words (`events`); what only a transcript knows stands here.
"""

from dataclasses import dataclass
from typing import Literal

from segue.model.events import AgentMessage, AgentThought, TodoUpdated, ToolCalled, ToolFinished, UsageReported

FileAction = Literal["created", "modified", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSaid:
    """The user's own words, without what the agent's program put around them."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    """The agent replaced the conversation so far by this summary of it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the work stands: directory, branch and commit, as far as the recorder knew them."""

    directory: str | None = None
    branch: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesChanged:
    """Files that the agent's program itself saw change."""

    changes: tuple[tuple[str, FileAction], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgressed:
    """A tool call has told something and is still at work."""

    call_id: str
    output: str


Said = (
    UserSaid
    | AgentMessage
    | AgentThought
    | ToolCalled
    | ToolProgressed
    | ToolFinished
    | TodoUpdated
    | UsageReported
    | Summarised
    | Standing
    | FilesChanged
)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was said or done, with its number in the recording."""

    number: int
    said: Said
    at: str = ""
