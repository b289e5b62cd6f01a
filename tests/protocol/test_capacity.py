"""Capacity ladder: rungs, refreshes and compactions."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.model.agents import AgentConfiguration
from segue.model.errors import BadSettings
from segue.model.events import UsageReported
from segue.protocol.capacity import (
    BEFORE_COMPACTION,
    Compaction,
    Gauge,
    Ladder,
    Notice,
    Reached,
    Refresh,
    Rung,
    WindowUnknown,
    climb,
    ladder_for,
)

WINDOW = 200_000
NEW = Gauge(highest=0)
ALL = Ladder(snapshot_before_compaction=0.7, refresh_every=None)


def used(tokens: int | None, window: int | None = WINDOW) -> UsageReported:
    return UsageReported(context_tokens=tokens, window=window)


def play(ladder: Ladder, reports: Iterable[UsageReported], gauge: Gauge = NEW) -> list[tuple[Notice, ...]]:
    """What each report led to."""
    told: list[tuple[Notice, ...]] = []
    for report in reports:
        gauge, notices = climb(ladder, gauge, report)
        told.append(notices)
    return told


def rungs(notices: Sequence[Notice]) -> list[Rung]:
    return [notice.rung for notice in notices if isinstance(notice, Reached)]


def test_each_rung_is_reached_at_its_share_of_the_window() -> None:
    told = play(ALL, [used(tokens) for tokens in (139_999, 140_000, 150_000, 160_000, 170_000, 190_000)])
    assert [rungs(each) for each in told] == [[], *([rung] for rung in Rung)]


def test_a_rung_is_reported_once_while_the_context_stays_above_it() -> None:
    told = play(ALL, [used(150_000), used(155_000), used(151_000), used(159_999)])
    assert [rungs(each) for each in told] == [[Rung.SNAPSHOT_BEFORE_COMPACTION, Rung.WARN], [], [], []]


def test_a_jump_over_several_rungs_reports_all_and_the_highest_last() -> None:
    (told,) = play(ALL, [used(199_000)])
    assert rungs(told) == list(Rung)


def test_a_rung_is_reported_again_after_the_context_fell_below_it() -> None:
    told = play(Ladder(refresh_every=None), [used(150_000), used(149_999), used(150_000)])
    assert [rungs(each) for each in told] == [[Rung.WARN], [], [Rung.WARN]]


@pytest.mark.parametrize(("window", "cap"), [(100_000, 80_000), (200_000, 160_000)])
def test_the_soft_cap_is_four_fifths_of_the_window(window: int, cap: int) -> None:
    told = play(Ladder(warn=None), [used(cap - 1, window), used(cap, window)])
    assert [rungs(each) for each in told] == [[], [Rung.FORK]]


def test_a_reached_rung_is_described_in_a_sentence() -> None:
    ((reached,),) = play(Ladder(fork=None, pause=None, refresh_every=None), [used(170_000)])
    assert isinstance(reached, Reached)
    assert reached.sentence == "The context holds 170,000 of 200,000 tokens (85%)."


@pytest.mark.parametrize("off", list(Rung))
def test_every_rung_can_be_switched_off(off: Rung) -> None:
    switched: dict[str, Any] = {off.value: None}
    (told,) = play(replace(ALL, **switched), [used(WINDOW)])
    assert rungs(told) == [rung for rung in Rung if rung is not off]


def test_less_than_half_of_the_context_left_is_a_compaction_and_makes_the_rungs_ready_again() -> None:
    told = play(ALL, [used(180_000), used(20_000), used(145_000)])
    assert told[1] == (Compaction(tokens_before=180_000, tokens_after=20_000),)
    assert rungs(told[2]) == [Rung.SNAPSHOT_BEFORE_COMPACTION]


def test_a_small_drop_is_no_compaction_and_counts_nothing_twice() -> None:
    told = play(Ladder(), [used(40_000), *[used(tokens) for tokens in (35_000, 40_000) * 5], used(49_999)])
    assert not any(told)


def test_a_refresh_is_due_after_its_number_of_new_tokens_and_restarts_the_count() -> None:
    told = play(Ladder(), [used(tokens) for tokens in (30_000, 49_999, 51_000, 100_000, 101_000)])
    assert [each for each in told if each] == [(Refresh(new_tokens=51_000),), (Refresh(new_tokens=50_000),)]


def test_new_tokens_are_counted_across_a_compaction_without_the_summary() -> None:
    told = play(Ladder(), [used(40_000), used(10_000), used(19_999), used(20_000)])
    assert told[-1] == (Refresh(new_tokens=50_000),)


def test_the_first_report_of_a_joined_conversation_has_no_new_tokens() -> None:
    told = play(Ladder(), [used(90_000), used(139_999), used(140_000)], Gauge())
    assert told == [(), (), (Refresh(new_tokens=50_000),)]


def test_total_usage_does_not_count_as_context() -> None:
    totals = UsageReported(input_tokens=9_000_000, output_tokens=1_000_000, window=WINDOW)
    assert play(ALL, [used(1000), totals, totals]) == [(), (), ()]


def test_an_agent_without_a_context_size_reaches_no_rung() -> None:
    assert play(ALL, [used(150_000), used(0), used(None), used(150_000)])[1:] == [(), (), ()]


def test_an_unknown_window_is_reported_once_and_no_rung_is_reached() -> None:
    told = play(ALL, [used(150_000, None), used(199_000, None)])
    assert told == [(WindowUnknown(context_tokens=150_000),), ()]


def test_the_window_is_the_agents_own_and_stays_known() -> None:
    told = play(replace(ALL, known_window=1_000_000), [used(10_000, 100_000), used(75_000, None)])
    assert rungs(told[1]) == [Rung.SNAPSHOT_BEFORE_COMPACTION, Rung.WARN]


@pytest.mark.parametrize(
    ("stable", "known", "reported", "warns_at"),
    [
        (None, 100_000, None, 75_000),
        (100_000, None, None, 75_000),
        (100_000, None, 200_000, 75_000),
        (400_000, None, 200_000, 150_000),
        (None, 100_000, 200_000, 150_000),
    ],
)
def test_the_window_is_reported_else_known_and_limited_by_the_user(
    stable: int | None, known: int | None, reported: int | None, warns_at: int
) -> None:
    ladder = Ladder(refresh_every=None, stable_window=stable, known_window=known)
    told = play(ladder, [used(warns_at - 1, reported), used(warns_at, reported)])
    assert [rungs(each) for each in told] == [[], [Rung.WARN]]


def test_an_agent_that_compacts_by_itself_is_neither_forked_nor_paused() -> None:
    agent = AgentConfiguration(name="claude", command=("claude",), compacts=True)
    told = play(replace(ladder_for(agent), refresh_every=None), [used(WINDOW)])
    assert rungs(told[0]) == [Rung.SNAPSHOT_BEFORE_COMPACTION, Rung.WARN]


def test_the_snapshot_is_taken_before_the_earliest_observed_compaction() -> None:
    assert BEFORE_COMPACTION < 28 / 34


def test_the_ladder_of_an_agent_knows_the_window_of_its_model() -> None:
    agent = AgentConfiguration(name="mine", command=("mine",))
    assert ladder_for(agent, "claude-haiku-4-5") == Ladder(known_window=200_000)
    assert ladder_for(agent, "made-up") == ladder_for(agent) == Ladder()


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("warn", 0, "The rung warn must be a share of the window, above 0 and up to 1, not 0."),
        ("force", 95, "The rung force must be a share of the window, above 0 and up to 1, not 95."),
        ("refresh_every", 0, "refresh_every must be more than 0 tokens, not 0."),
    ],
)
def test_an_invalid_ladder_is_refused(field: str, value: float, sentence: str) -> None:
    wrong: dict[str, Any] = {field: value}
    with pytest.raises(BadSettings, match=sentence):
        Ladder(**wrong)


marks = st.none() | st.floats(min_value=0.01, max_value=1)
ladders = st.builds(
    Ladder,
    snapshot_before_compaction=marks,
    warn=marks,
    fork=marks,
    pause=marks,
    force=marks,
    refresh_every=st.none() | st.integers(min_value=1, max_value=2000),
    known_window=st.none() | st.just(1000),
)
reports = st.lists(
    st.builds(
        UsageReported,
        context_tokens=st.none() | st.integers(min_value=0, max_value=1200),
        input_tokens=st.none() | st.integers(min_value=0, max_value=10**9),
        window=st.none() | st.just(1000),
    ),
    max_size=40,
)


@given(ladders, reports)
def test_every_rung_is_reported_exactly_once_per_crossing(ladder: Ladder, history: list[UsageReported]) -> None:
    told, above, window = play(ladder, history), dict.fromkeys(Rung, False), ladder.known_window
    for report, notices in zip(history, told, strict=True):
        window = report.window or window
        expected: list[Rung] = []
        for rung, mark in ladder.marks:
            if report.context_tokens and window:
                was, above[rung] = above[rung], report.context_tokens >= mark * window
                expected += [rung] if above[rung] and not was else []
        assert rungs(notices) == expected


@given(ladders, reports)
def test_refreshes_never_count_more_tokens_than_were_added(ladder: Ladder, history: list[UsageReported]) -> None:
    flushed = sum(each.new_tokens for told in play(ladder, history) for each in told if isinstance(each, Refresh))
    known = [0, *(report.context_tokens for report in history if report.context_tokens)]
    grown = sum(max(0, after - before) for before, after in pairwise(known))
    assert flushed <= grown
