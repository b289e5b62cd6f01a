"""Usage and cost of a workflow, and their sources."""

from typing import Any

import pytest

from segue.model import events as e
from segue.model.accounts import Account, ModelAccount
from segue.model.ids import PromptId, SessionId, WorkflowId
from segue.protocol.accounts import account_of
from segue.state.fold import WorkflowState, fold
from tests.state.test_fold import BEGUN, ONE, TWO, records

W = WorkflowId("w")
ENDED = e.TurnEnded(prompt_id=PromptId("p"), reason="end_turn")
CHILD = (TWO, e.SessionCreated(number=2, agent="rehearsal", parent=ONE))


def used(model: str | None, **more: Any) -> e.UsageReported:
    return e.UsageReported(model=model, **{"input_tokens": 100_000, "output_tokens": 10_000, **more})


def after(*happened: tuple[SessionId, e.Event]) -> WorkflowState:
    return fold(records(*BEGUN, *happened))


def cost(*reports: e.UsageReported) -> tuple[float | None, str, bool]:
    account = account_of(W, after(*((ONE, report) for report in reports))).account
    usd = None if account.cost_usd is None else round(account.cost_usd, 6)
    return usd, account.cost_source, account.complete


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([used("claude-opus-5-5", cached_tokens=10**6, cost_usd=0.5)], (0.5, "reported", True)),
        ([used("claude-opus-5-5", cached_tokens=10**6)], (0.8, "estimated", True)),
        ([used("claude-opus-5-5")], (None, "unknown", False)),
        ([used("a-model-of-my-own", cached_tokens=0)], (None, "unknown", False)),
        ([used(None, cached_tokens=0)], (None, "unknown", False)),
        # The table has a price for requests of up to 272,000 tokens, and not for larger ones.
        ([used("gpt-5.6-luna", cached_tokens=0, context_tokens=200_000)], (0.032, "estimated", True)),
        ([used("gpt-5.6-luna", cached_tokens=0, context_tokens=300_000)], (None, "unknown", False)),
        ([used("claude-opus-5-5", cached_tokens=0), used("mine", cached_tokens=0)], (0.6, "estimated", False)),
        # The agent's own cost is that of all its models.
        ([used("claude-opus-5-5", cached_tokens=0), used("mine", cost_usd=0.25)], (0.25, "reported", True)),
    ],
)
def test_a_cost_is_reported_else_estimated_else_unknown(
    reports: list[e.UsageReported], expected: tuple[float | None, str, bool]
) -> None:
    assert cost(*reports) == expected


def test_an_agent_that_reports_nothing_leaves_everything_unknown() -> None:
    account = account_of(W, after((ONE, ENDED)))
    assert account.account == Account(complete=False)
    assert [session.turns for session in account.sessions] == [1]


def test_the_account_before_any_work_is_empty_and_complete() -> None:
    account = account_of(W, after())
    assert (account.account, account.sessions, account.models) == (Account(), (), ())


def test_a_cost_without_a_model_name_belongs_to_the_only_model() -> None:
    told = (ONE, e.UsageReported(context_tokens=1, cost_usd=0.5))
    (only,) = account_of(W, after(told, (ONE, used("mine")))).models
    assert (only.model, only.account.cost_usd, only.account.input_tokens) == ("mine", 0.5, 100_000)
    several = account_of(W, after(told, (ONE, used("mine")), (ONE, used("yours")))).models
    assert [(each.model, each.account.cost_usd) for each in several] == [(None, 0.5), ("mine", None), ("yours", None)]


def test_sessions_and_models_have_accounts_of_their_own_that_add_up() -> None:
    account = account_of(
        W,
        after(
            (ONE, used("claude-opus-5-5", cached_tokens=1, cost_usd=0.5)),
            (ONE, ENDED),
            CHILD,
            (TWO, used("claude-opus-5-5", cached_tokens=0)),
            (TWO, used("claude-haiku-4-5", cached_tokens=0)),
            (TWO, ENDED),
        ),
    )
    first, second = account.sessions
    assert (first.number, first.turns, first.account.cost_usd, first.account.cost_source) == (1, 1, 0.5, "reported")
    assert (second.number, second.account.cost_source) == (2, "estimated")
    assert account.account.cost_usd == pytest.approx(0.5 + 0.6 + 0.15)
    assert (account.account.input_tokens, account.account.cached_tokens) == (300_000, 1)
    assert account.account.cost_source == "estimated"
    opus, haiku = account.models
    assert opus.model == "claude-opus-5-5" and opus.account.cost_usd == pytest.approx(1.1)
    assert haiku == ModelAccount(model="claude-haiku-4-5", account=second.models[1].account)
