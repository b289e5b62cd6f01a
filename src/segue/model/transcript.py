"""Recorded conversations, from the journal or from an agent's own session file.

Most entries are the journal's own events; entries that only a transcript has are defined here.
"""

from dataclasses import dataclass

from segue.model.events import (
    AgentMessage,
    AgentThought,
    FilesChanged,
    TodoUpdated,
    ToolCalled,
    ToolFinished,
    ToolProgressed,
    UsageReported,
    WorkLocation,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSaid:
    """Message of the user, without the additions of the agent's program."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    """Summary by which the agent replaced its conversation so far."""

    text: str


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
    | WorkLocation
    | FilesChanged
)


@dataclass(frozen=True, slots=True)
class Line:
    """Entry of a recording, with its number."""

    number: int
    said: Said
    at: str = ""
