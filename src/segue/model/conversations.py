"""Copies of agents' own conversations, stored entry by entry as the agent writes them."""

from dataclasses import dataclass
from datetime import datetime

from segue.model.events import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationKey:
    """Key of a conversation, in the agent's own terms."""

    project: str
    """Agent's name for its working directory."""
    conversation: str
    part: str = ""
    """Name of a side conversation, such as that of a subagent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    """Description of a stored conversation, without its entries."""

    key: ConversationKey
    at: datetime
    """Time of the last addition."""
    last: str | None
    """Name of the last entry that has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """Page of entries, and the number of the next entry; None after the last page."""

    entries: tuple[JsonObject, ...]
    next: int | None
