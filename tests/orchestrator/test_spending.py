"""The purse of a run holds what the account of its workflow says, and asking it does not take longer with the story."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.model import events as e
from segue.model.agents import Limits
from segue.model.ids import SessionId
from segue.model.status import Role
from segue.orchestrator.run.spending import SpendingMeter
from segue.orchestrator.settling.run_ends import RunStopped
from segue.protocol.accounts import sessions_of, total
from segue.state.fold import WorkflowState, fold
from tests.state.test_fold import records

NOW = datetime(2026, 11, 18, tzinfo=UTC)
WRITER = SessionId("writer")
HELPERS = tuple(map(SessionId, ("reviewer", "fixer")))
counts = st.none() | st.integers(0, 1000)
reports = st.builds(
    e.UsageReported,
    context_tokens=counts,
    input_tokens=counts,
    output_tokens=counts,
    cached_tokens=counts,
    cost_usd=st.none() | st.integers(0, 64).map(lambda eighths: eighths / 8),
    model=st.sampled_from([None, "claude-opus-5-5", "nobody-knows"]),
)
heard = st.lists(reports, max_size=5)


def folded(*told: tuple[SessionId, Any]) -> WorkflowState:
    # Prices are of a day.
    return fold(replace(record, at=NOW) for record in records(*told))


@given(heard, heard, heard, heard)
def test_a_purse_holds_what_the_account_says(
    before: list[Any], first: list[Any], second: list[Any], after: list[Any]
) -> None:
    begun = [(WRITER, e.SessionCreated(number=1, agent="any", parent=None)), *((WRITER, each) for each in before)]
    helped: list[tuple[SessionId, Any]] = []
    for helper, said in zip(HELPERS, (first, second), strict=True):
        helped.append((helper, e.SessionCreated(number=0, agent="any", parent=WRITER, role=Role.REVIEWER)))
        helped += [(helper, each) for each in said]
    now = [*helped, *((WRITER, each) for each in after)]

    purse = SpendingMeter(WRITER)
    purse.fill(Limits(), folded(*begun))
    for session_id, event in now:
        if isinstance(event, e.UsageReported):
            purse.hear(session_id, event, NOW)

    account = total(each.account for each in sessions_of(folded(*begun, *now)))
    assert purse.used == account


@pytest.mark.parametrize("limits", [Limits(tokens=100), Limits(usd=2.0)])
def test_a_purse_that_is_empty_pays_for_no_further_turn(limits: Limits) -> None:
    purse = SpendingMeter(WRITER)
    purse.fill(limits, folded((WRITER, e.SessionCreated(number=1, agent="any", parent=None))))
    purse.pay_for_a_turn(NOW)
    purse.hear(WRITER, e.UsageReported(input_tokens=90, output_tokens=10, cost_usd=2.0), NOW + timedelta(hours=1))
    with pytest.raises(RunStopped, match="the budget is"):
        purse.pay_for_a_turn(NOW)
    purse.allow(Limits(tokens=101, usd=2.5))
    purse.pay_for_a_turn(NOW)
