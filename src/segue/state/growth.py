"""How much of a context is new, by one report after the other."""

from dataclasses import dataclass, replace

COMPACTED = 0.5
"""The context was compacted if less than this share of it is left; smaller drops are an agent's own counting. Drivers
draw the same line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Tokens in the context of one conversation, and those that came into it since the last refresh."""

    highest: int | None = 0
    """The most tokens the context held since it was last compacted; None for a conversation that was joined in the
    middle, whose first report says nothing of what is new."""
    new: int = 0


def grown(growth: Growth, tokens: int) -> Growth:
    """After a report of so many tokens in the context. What is read from a cache was there before."""
    highest = growth.highest
    if highest is None or tokens < highest * COMPACTED:
        return replace(growth, highest=tokens)
    added = max(0, tokens - highest)
    return Growth(highest=highest + added, new=growth.new + added)
