"""An agent's own conversation, kept for it entry by entry as the agent itself writes it down."""

from dataclasses import dataclass
from datetime import datetime

from segue.model.events import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationKey:
    """Which conversation, in the agent's own words."""

    project: str
    """The agent's name for the directory that it works in."""
    conversation: str
    part: str = ""
    """A conversation beside the main one, such as that of an agent which it started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConversation:
    """What is known of a conversation without reading it."""

    key: ConversationKey
    at: datetime
    """When it was last added to."""
    last: str | None
    """The last of its entries that has a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """A stretch of a conversation, and where the next one begins; None after the last."""

    entries: tuple[JsonObject, ...]
    next: int | None
