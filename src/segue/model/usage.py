"""How full a window is: counted here for one request to a model as for a whole conversation."""

from dataclasses import dataclass
from typing import Protocol


def remaining(used: int | None, window: int | None) -> int | None:
    """The tokens that are left, and never fewer than none; None where somebody did not say."""
    return None if used is None or not window else max(0, window - used)


def utilization(used: int | None, window: int | None) -> float | None:
    """The part of the window that is taken, and never more than all of it."""
    return None if used is None or not window else min(1.0, used / window)


class Counted(Protocol):
    """Usage as pydantic-ai counts it, for a request or for a run."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMetadata:
    """What a request to a model took, and how much of its window that leaves."""

    prompt_tokens: int
    completion_tokens: int
    context_window_size: int | None
    """None where nobody knows it; so are then what remains and the utilization."""

    @classmethod
    def from_pydantic_ai_usage(cls, usage: Counted, context_window: int | None = 200_000) -> "UsageMetadata":
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
