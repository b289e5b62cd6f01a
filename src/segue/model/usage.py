"""Fill level of a context window, for a single request or for a conversation."""

from dataclasses import dataclass
from typing import Protocol


def remaining(used: int | None, window: int | None) -> int | None:
    """Return the tokens left in the window, at least 0; None if a figure is unknown (a window of 0 counts as
    unknown)."""
    return None if used is None or not window else max(0, window - used)


def utilization(used: int | None, window: int | None) -> float | None:
    """Return the used share of the window, at most 1; None if a figure is unknown (a window of 0 counts as unknown)."""
    return None if used is None or not window else min(1.0, used / window)


class Counted(Protocol):
    """Token counts of a request or a run, as pydantic-ai reports them."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMetadata:
    """Tokens of one request to a model, and the room they leave in its window."""

    prompt_tokens: int
    completion_tokens: int
    context_window_size: int | None
    """Size of the window; if it is None, the remaining tokens and the utilization are unknown."""

    @classmethod
    def from_pydantic_ai_usage(cls, usage: Counted, context_window: int | None = 200_000) -> "UsageMetadata":
        """Build the metadata from usage that pydantic-ai counted."""
        return cls(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            context_window_size=context_window,
        )

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def tokens_remaining(self) -> int | None:
        return remaining(self.total_tokens, self.context_window_size)

    @property
    def utilization(self) -> float | None:
        return utilization(self.total_tokens, self.context_window_size)
