"""Which way back, why, and at which price."""

from dataclasses import replace

import pytest

from segue.model.agents import AgentConfiguration
from segue.model.checkpoint import Usage
from segue.model.errors import WrongState
from segue.model.status import SessionStatus, Way
from segue.resume.planner import Means, Original, plan_resume
from segue.state.fold import SessionState

AGENT = AgentConfiguration(name="rehearsal", command=("rehearsal",))
OTHER = replace(AGENT, name="other")
NEW = SessionState(number=1, agent="rehearsal", parent=None)
TALKED = replace(NEW, status=SessionStatus.SUSPENDED, token="t", usage=Usage(turns=1, context_tokens=40_000))
CHILD = replace(NEW, number=2, parent="session-1")
SAID = "[USER]: hello\n[ASSISTANT]: good day"
MEANS = Means(session=TALKED, agent=AGENT, history=SAID, request=100)


@pytest.mark.parametrize(
    ("means", "way", "reason"),
    [
        (MEANS, Way.NATIVE, "own conversation goes on"),
        (replace(MEANS, session=replace(TALKED, status=SessionStatus.FAILED)), Way.NATIVE, "own conversation"),
        (replace(MEANS, session=replace(TALKED, status=SessionStatus.WAITING_FOR_INPUT)), Way.NATIVE, "own"),
        (replace(MEANS, session=replace(TALKED, capabilities=("load",))), Way.NATIVE, "own conversation goes on"),
        (replace(MEANS, session=replace(TALKED, capabilities=("images",))), Way.HISTORY, "says that it cannot"),
        (replace(MEANS, agent=replace(AGENT, native_resume=False)), Way.HISTORY, "may lose a conversation"),
        (replace(MEANS, session=replace(TALKED, token=None, refused_tokens=("t",))), Way.HISTORY, "did not take"),
        (replace(MEANS, session=replace(TALKED, status=SessionStatus.CANCELLED)), Way.HISTORY, "is cancelled"),
        (replace(MEANS, session=replace(TALKED, token=None)), Way.HISTORY, "no conversation was recorded"),
        (replace(MEANS, session=CHILD), Way.HISTORY, "no conversation was recorded"),
        (replace(MEANS, session=replace(TALKED, token=None), history=""), Way.FRESH, "nothing was said yet"),
        (
            replace(MEANS, session=replace(TALKED, token=None), agent=replace(AGENT, history=False)),
            Way.FRESH,
            "is switched off",
        ),
        (replace(MEANS, session=NEW), Way.FIRST, "never reached"),
        (replace(MEANS, budget=4000), Way.NATIVE, "own conversation goes on"),
        (replace(MEANS, budget=4000, session=replace(TALKED, token=None)), Way.CONTEXT, "no conversation was recorded"),
        (replace(MEANS, budget=4000, agent=OTHER), Way.CONTEXT, "other cannot open a conversation of rehearsal"),
        (replace(MEANS, agent=OTHER), Way.HISTORY, "there is no snapshot yet"),
        (replace(MEANS, session=NEW, agent=OTHER, history=""), Way.FRESH, "nothing was said yet"),
        (replace(MEANS, session=replace(NEW, status=SessionStatus.SUSPENDED)), Way.FIRST, "never reached"),
    ],
)
def test_the_way_back_and_its_reason(means: Means, way: Way, reason: str) -> None:
    plan = plan_resume(means)
    assert plan.way is way
    assert reason in plan.reason


def test_every_way_has_a_price() -> None:
    assert [(price.way, price.tokens) for price in plan_resume(MEANS).prices] == [
        (Way.NATIVE, 40_000),
        (Way.CONTEXT, None),
        (Way.HISTORY, (len(SAID) + 100 + 3) // 4),
        (Way.FRESH, 25),
    ]


def test_a_compiled_context_costs_its_budget_at_most() -> None:
    prices = {price.way: price.tokens for price in plan_resume(replace(MEANS, budget=1000)).prices}
    assert prices[Way.CONTEXT] == 1025


def test_a_price_that_nobody_knows_is_unknown_and_not_nothing() -> None:
    silent = replace(MEANS, session=replace(TALKED, usage=Usage(turns=1)))
    assert plan_resume(silent).prices[0].tokens is None


def test_a_way_that_is_asked_for_is_taken_though_a_better_one_is_open() -> None:
    plan = plan_resume(MEANS, Way.FRESH)
    assert (plan.way, "asked for by the user" in plan.reason) == (Way.FRESH, True)


def test_a_closed_way_that_is_asked_for_says_why_and_which_are_open() -> None:
    with pytest.raises(WrongState, match="no conversation was recorded") as refused:
        plan_resume(replace(MEANS, session=replace(TALKED, token=None)), Way.NATIVE)
    assert refused.value.hint == "Open ways: history, fresh."


COPYING = replace(AGENT, native_fork=True)
BEFORE = Original(
    session=replace(TALKED, capabilities=("fork",)), clean=True, moved=True, bookmark="mark-1", tokens=5_000
)
FORKED = replace(MEANS, session=CHILD, agent=COPYING, original=BEFORE, budget=1000)


@pytest.mark.parametrize(
    ("original", "way", "reason", "tokens"),
    [
        (BEFORE, Way.FORK, "copies its conversation", 5_000),
        (replace(BEFORE, moved=False), Way.FORK, "copies its conversation", 40_000),
        (replace(BEFORE, moved=False, bookmark=None), Way.FORK, "copies its conversation", 40_000),
        (replace(BEFORE, bookmark=None), Way.CONTEXT, "has gone beyond the snapshot", 5_000),
        (replace(BEFORE, clean=False), Way.CONTEXT, "lies in the middle of a turn", 5_000),
    ],
)
def test_a_conversation_that_has_gone_on_is_copied_up_to_where_it_stood_if_the_agent_has_a_name_for_that(
    original: Original, way: Way, reason: str, tokens: int
) -> None:
    plan = plan_resume(replace(FORKED, original=original))
    (price,) = (each for each in plan.prices if each.way is Way.FORK)
    assert (plan.way, price.tokens) == (way, tokens)
    assert reason in plan.reason


def test_the_price_of_a_copy_says_how_much_of_the_conversation_it_is() -> None:
    notes = [
        price.note
        for original in (BEFORE, replace(BEFORE, moved=False), replace(BEFORE, tokens=None))
        for price in plan_resume(replace(FORKED, original=original)).prices
        if price.way is Way.FORK
    ]
    assert notes == [
        "the conversation up to the snapshot, as the agent counted it then",
        "the whole conversation, as the agent last counted it",
        "the agent never counted it",
    ]
