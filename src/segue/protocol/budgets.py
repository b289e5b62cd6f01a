"""How much a workflow may use before it pauses, and the sentence that says so."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from segue.model.status import Trigger
from segue.protocol.durations import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a workflow may use; None is without limit."""

    tokens: int | None = None
    """Input and output of all its sessions, without what was read from a cache."""
    usd: float | None = None
    timeout: timedelta | None = None
    """The time since it was started, or last let go on by a person, whatever happened in it."""
    tasks: int | None = None
    """Tasks after which it pauses, from its start or the last time that a person let it go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a workflow has used."""

    since: datetime
    """When it was started, or last let go on by a person: a resume after a timeout begins to count anew. What it stood
    still before it was tried again by itself is not counted."""
    tokens: int | None = 0
    """None where the agent reports none."""
    usd: float | None = 0.0
    """None where the agent reports none and the price is unknown."""
    estimated: bool = False
    """Whether the cost, or a part of it, was reckoned from a table of prices."""
    complete: bool = True
    """False where a part of the work has no known cost."""
    tasks: int = 0
    """Tasks that were completed since a person last let it go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """Why the work pauses now."""

    trigger: Trigger
    reason: str


def exceeded(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    """The first limit that is used up, or None. What nobody measured exceeds nothing: see `unmeasured`."""
    for check in CHECKS:
        if stopping := check(budget, spent, now):
            return stopping
    return None


def unmeasured(budget: Budget, spent: Spent) -> str | None:
    """A sentence for the user if a limit cannot be kept, because nobody reports what is used."""
    missing = [
        name
        for name, limit, used in (("tokens", budget.tokens, spent.tokens), ("cost", budget.usd, spent.usd))
        if limit is not None and used is None
    ]
    if not missing and budget.usd is not None and not spent.complete:
        return "The budget may not be kept: what a part of this work costs is known to nobody."
    if not missing:
        return None
    return f"The budget cannot be kept: nobody reports the {' and the '.join(missing)} of this work."


def _tokens(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    if budget.tokens is None or spent.tokens is None or spent.tokens < budget.tokens:
        return None
    reason = f"{spent.tokens:,} tokens were used, and the budget is {budget.tokens:,}."
    return LimitReached(trigger=Trigger.EXHAUSTION, reason=reason)


def _usd(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    if budget.usd is None or spent.usd is None or spent.usd < budget.usd:
        return None
    about = "about " if spent.estimated else ""
    reason = f"The work has cost {about}${spent.usd:,.2f}, and the budget is ${budget.usd:,.2f}."
    return LimitReached(trigger=Trigger.EXHAUSTION, reason=reason)


def _timeout(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    if budget.timeout is None or now - spent.since < budget.timeout:
        return None
    reason = f"The workflow has run for {duration(now - spent.since)}, and may run for {duration(budget.timeout)}."
    return LimitReached(trigger=Trigger.TIMEOUT, reason=reason)


def _tasks(budget: Budget, spent: Spent, now: datetime) -> LimitReached | None:
    if budget.tasks is None or spent.tasks < budget.tasks:
        return None
    done = "1 task was" if spent.tasks == 1 else f"{spent.tasks} of {budget.tasks} tasks were"
    return LimitReached(trigger=Trigger.TASK_COMPLETE, reason=f"{done} done, as asked for.")


CHECKS: tuple[Callable[[Budget, Spent, datetime], LimitReached | None], ...] = (_usd, _tokens, _timeout, _tasks)
"""What the user would rather know comes first, when several limits are used up at once."""
