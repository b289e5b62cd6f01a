"""A recorded conversation, whoever recorded it: the journal, or an agent in a session file of its own.

What an agent says is told in the journal's own words (`events`); what only a transcript knows stands here.
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
    """The user's own words, without what the agent's program put around them."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    """The agent replaced the conversation so far by this summary of it."""

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
    """One thing that was said or done, with its number in the recording."""

    number: int
    said: Said
    at: str = ""
