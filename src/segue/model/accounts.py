"""Tokens used, their cost, and the source of these figures."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal, TypeVar

from segue.model.ids import SessionId, WorkflowId
from segue.model.status import Role

N = TypeVar("N", int, float)

CostSource = Literal["reported", "estimated", "unknown"]
"""Reported by the agent, estimated with the bundled price table, or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """Usage of one model in one session; None where the agent reports nothing."""

    input_tokens: int | None = None
    """Input tokens, without those read from the vendor's cache."""
    cached_tokens: int | None = None
    """Input tokens that were read from the vendor's cache."""
    output_tokens: int | None = None
    cost_usd: float | None = None
    cache_known: bool = True
    """True if every report of tokens included the cached ones."""
    fullest: int | None = None
    """Largest size of the context in that time."""
    last_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Tokens and their cost; None if unknown."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    """Sum of the known costs; it is the whole cost only if `complete`."""
    cost_source: CostSource = "unknown"
    complete: bool = True
    """False if a part of the work has no known cost, so that the real cost is higher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccount:
    """Account of one model."""

    model: str | None
    """Name of the model; None if the agent does not report it."""
    account: Account


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAccount:
    """Account of one session."""

    session_id: SessionId
    number: int | None
    """Number of the session; 0 for a helper."""
    role: Role = Role.WRITER
    agent: str
    turns: int
    account: Account
    models: tuple[ModelAccount, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAccount:
    """Account of a workflow: by session, by model, and in total."""

    workflow_id: WorkflowId
    slug: str
    account: Account
    sessions: tuple[SessionAccount, ...] = ()
    models: tuple[ModelAccount, ...] = ()


def known_sum(parts: Iterable[N | None]) -> N | None:
    """Sum the known parts; return None if none is known."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known else None
