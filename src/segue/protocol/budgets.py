"""Limits of what a workflow may use before it pauses."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from segue.model.status import Trigger
from segue.protocol.durations import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of a workflow; None is no limit."""

    tokens: int | None = None
    """Input and output tokens of all its sessions, without those read from a cache."""
    usd: float | None = None
    timeout: timedelta | None = None
    """Time since the start, or since the last resume by a person."""
    tasks: int | None = None
    """Tasks completed since the start, or since the last resume by a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Usage of a workflow."""

    since: datetime
    """Time of the start, or of the last resume by a person: a resume after a timeout starts a new count. Waiting times
    before retries are left out."""
    tokens: int | None = 0
    """None if the agent reports none."""
    usd: float | None = 0.0
    """None if the agent reports none and the price is unknown."""
    estimated: bool = False
    """True if the cost, or a part of it, was estimated from the price table."""
    complete: bool = True
    """False if a part of the work has no known cost."""
    tasks: int = 0
    """Tasks completed since the last resume by a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """Limit that stops the work, and the reason to show."""

    trigger: Trigger
    reason: str


def exceeded(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    """Return the first exceeded limit, or None. Unknown usage exceeds nothing: see `unmeasured`."""
    for check in CHECKS:
        if stopping := check(budget, spent, now):
            return stopping
    return None


def unmeasured(budget: Budget, spent: Spent) -> str | None:
    """Return a sentence for the user if a limit of tokens or cost cannot be enforced because the usage is unknown;
    None if all can be."""
    missing = [
        name
        for name, limit, used in (("tokens", budget.tokens, spent.tokens), ("cost", budget.usd, spent.usd))
        if limit is not None and used is None
    ]
    if not missing and budget.usd is not None and not spent.complete:
        return "The budget may be exceeded: the cost of a part of this work is unknown."
    if not missing:
        return None
    return f"The budget cannot be enforced: the agents do not report the {' and the '.join(missing)} of this work."


def _tokens(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    """Return the limit of tokens if it is reached; None if not, or if limit or usage is unknown."""
    if budget.tokens is None or spent.tokens is None or spent.tokens < budget.tokens:
        return None
    reason = f"{spent.tokens:,} tokens were used, and the budget is {budget.tokens:,}."
    return LimitReached(trigger=Trigger.EXHAUSTION, reason=reason)


def _usd(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    """Return the limit of cost if it is reached; None if not, or if limit or usage is unknown."""
    if budget.usd is None or spent.usd is None or spent.usd < budget.usd:
        return None
    about = "about " if spent.estimated else ""
    reason = f"The work has cost {about}${spent.usd:,.2f}, and the budget is ${budget.usd:,.2f}."
    return LimitReached(trigger=Trigger.EXHAUSTION, reason=reason)


def _timeout(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    """Return the time limit if it is reached; None if not, or without one."""
    if budget.timeout is None or now - spent.since < budget.timeout:
        return None
    reason = f"The workflow has run for {duration(now - spent.since)}, and may run for {duration(budget.timeout)}."
    return LimitReached(trigger=Trigger.TIMEOUT, reason=reason)


def _tasks(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    """Return the limit of tasks if it is reached; None if not, or without one."""
    if budget.tasks is None or spent.tasks < budget.tasks:
        return None
    done = "1 task was" if spent.tasks == 1 else f"{spent.tasks} of {budget.tasks} tasks were"
    return LimitReached(trigger=Trigger.TASK_COMPLETE, reason=f"{done} done, as asked for.")


CHECKS: tuple[Callable[[Budget, Spent, datetime], LimitReached | None], ...] = (_usd, _tokens, _timeout, _tasks)
"""Checks in the order in which the user wants to know about several exceeded limits."""
