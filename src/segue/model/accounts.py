"""What was used and what it cost, and how that is known."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal, TypeVar

from segue.model.ids import SessionId, WorkflowId
from segue.model.status import Role

N = TypeVar("N", int, float)

CostSource = Literal["reported", "estimated", "unknown"]
"""By the agent itself, from the bundled table of prices, or by nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """What one model was given and gave in one session; None where the agent reports nothing."""

    input_tokens: int | None = None
    """Without what was read from the vendor's cache."""
    cached_tokens: int | None = None
    """What was read from the vendor's cache."""
    output_tokens: int | None = None
    cost_usd: float | None = None
    cache_known: bool = True
    """Whether each report of tokens told what was read from the cache."""
    fullest: int | None = None
    """The fullest that the context was meanwhile."""
    last_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Tokens and their cost; None where nobody knows."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    """Of what is known; the whole of it is known if `complete`."""
    cost_source: CostSource = "unknown"
    complete: bool = True
    """False where a part of the work has no known cost: then it has cost more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccount:
    model: str | None
    """None where the agent does not say which one it is."""
    account: Account


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAccount:
    session_id: SessionId
    number: int | None
    """0 for one that only helps."""
    role: Role = Role.WRITER
    agent: str
    turns: int
    account: Account
    models: tuple[ModelAccount, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAccount:
    """All sessions of a workflow, each by itself, by model, and together."""

    workflow_id: WorkflowId
    slug: str
    account: Account
    sessions: tuple[SessionAccount, ...] = ()
    models: tuple[ModelAccount, ...] = ()


def known_sum(parts: Iterable[N | None]) -> N | None:
    """Of what is known; None where nothing is."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known else None
