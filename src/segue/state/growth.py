"""Number of new tokens in a context, derived from consecutive reports."""

from dataclasses import dataclass, replace

COMPACTED = 0.5
"""A context counts as compacted if less than this share of it is left; smaller drops come from an agent's way of
counting. Drivers use the same threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Tokens in the context of one conversation, and those added since the last refresh."""

    highest: int | None = 0
    """Maximum size of the context since its last compaction; None for a conversation that was joined in the middle,
    whose first report does not show what is new."""
    new: int = 0


def grown(growth: Growth, tokens: int) -> Growth:
    """Return the growth after a report of this context size: only tokens above the highest are new; after a
    compaction, counting begins there."""
    highest = growth.highest
    if highest is None or tokens < highest * COMPACTED:
        return replace(growth, highest=tokens)
    added = max(0, tokens - highest)
    return Growth(highest=highest + added, new=growth.new + added)
