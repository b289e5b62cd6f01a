"""Limits of a workflow."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.model.status import Trigger
from segue.protocol.budgets import Budget, LimitReached, Spent, exceeded, unmeasured

START = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOW = START + timedelta(hours=2, minutes=5)
SPENT = Spent(since=START, tokens=1_200_000, usd=3.456, tasks=3)


@pytest.mark.parametrize(
    ("budget", "trigger", "reason"),
    [
        (Budget(tasks=3), Trigger.TASK_COMPLETE, "3 of 3 tasks were done, as asked for."),
        (Budget(timeout=timedelta(hours=2)), Trigger.TIMEOUT, "has run for 2 h 05 min, and may run for 2 h 00 min."),
        (Budget(tokens=10**6), Trigger.EXHAUSTION, "1,200,000 tokens were used, and the budget is 1,000,000."),
        (Budget(usd=3), Trigger.EXHAUSTION, "The work has cost $3.46, and the budget is $3.00."),
    ],
)
def test_an_exceeded_budget_stops_the_work_with_a_reason(budget: Budget, trigger: Trigger, reason: str) -> None:
    stopping = exceeded(budget, SPENT, NOW)
    assert stopping is not None
    assert stopping.trigger is trigger
    assert stopping.reason.endswith(reason)


def test_one_task_is_written_in_the_singular() -> None:
    stopping = exceeded(Budget(tasks=1), replace(SPENT, tasks=1), NOW)
    assert stopping == LimitReached(trigger=Trigger.TASK_COMPLETE, reason="1 task was done, as asked for.")


def test_without_a_limit_nothing_stops() -> None:
    assert exceeded(Budget(), SPENT, NOW) is None


def test_an_exceeded_cost_is_reported_before_other_limits() -> None:
    stopping = exceeded(Budget(usd=1, tokens=1, tasks=1, timeout=timedelta(seconds=1)), SPENT, NOW)
    assert stopping is not None
    assert "cost" in stopping.reason


def test_unknown_usage_stops_nothing_and_gives_a_warning() -> None:
    unknown = replace(SPENT, usd=None, tokens=None)
    assert exceeded(Budget(usd=0.01, tokens=1), unknown, NOW) is None
    assert (
        unmeasured(Budget(usd=1), unknown)
        == "The budget cannot be enforced: the agents do not report the cost of this work."
    )
    assert unmeasured(Budget(usd=1, tokens=1), unknown) == (
        "The budget cannot be enforced: the agents do not report the tokens and the cost of this work."
    )


def test_an_estimated_cost_stops_the_work_and_is_called_an_estimate() -> None:
    stopping = exceeded(Budget(usd=3), replace(SPENT, estimated=True), NOW)
    assert stopping is not None
    assert stopping.reason == "The work has cost about $3.46, and the budget is $3.00."


def test_a_partly_unknown_cost_gives_a_warning() -> None:
    partly = replace(SPENT, complete=False)
    assert unmeasured(Budget(usd=100), partly) == (
        "The budget may be exceeded: the cost of a part of this work is unknown."
    )
    assert unmeasured(Budget(tokens=10**7), partly) is None


def test_an_enforceable_budget_gives_no_warning() -> None:
    assert unmeasured(Budget(usd=1, tokens=1), SPENT) is None
    assert unmeasured(Budget(tasks=1), replace(SPENT, usd=None)) is None


def test_a_resume_restarts_the_time_limit() -> None:
    assert exceeded(Budget(timeout=timedelta(hours=2)), replace(SPENT, since=NOW), NOW) is None


@pytest.mark.parametrize(
    ("limit", "just", "less"),
    [
        (Budget(tokens=10), {"tokens": 10}, {"tokens": 9}),
        (Budget(usd=1), {"usd": 1.0}, {"usd": 0.99}),
        (Budget(timeout=timedelta(minutes=1)), {"since": NOW - timedelta(seconds=60)}, {"since": NOW}),
        (Budget(tasks=2), {"tasks": 2}, {"tasks": 1}),
    ],
)
def test_a_limit_is_used_up_when_it_is_reached(limit: Budget, just: dict[str, Any], less: dict[str, Any]) -> None:
    assert exceeded(limit, replace(SPENT, **just), NOW) is not None
    assert exceeded(limit, replace(SPENT, **less), NOW) is None


amounts = st.integers(min_value=1, max_value=1000)
times = amounts.map(lambda seconds: timedelta(seconds=seconds))
budgets = st.builds(
    Budget,
    tokens=st.none() | amounts,
    usd=st.none() | amounts.map(float),
    timeout=st.none() | times,
    tasks=st.none() | amounts,
)


@given(budgets, amounts, amounts.map(float), times, amounts)
def test_a_budget_fires_if_and_only_if_a_limit_is_used_up(
    budget: Budget, tokens: int, usd: float, age: timedelta, tasks: int
) -> None:
    spent = Spent(since=START, tokens=tokens, usd=usd, tasks=tasks)
    limits = (budget.tokens, budget.usd, budget.timeout, budget.tasks)
    used = (tokens, usd, age, tasks)
    over = any(limit is not None and each >= limit for limit, each in zip(limits, used, strict=True))  # type: ignore[operator]
    assert (exceeded(budget, spent, START + age) is not None) == over
