"""Decisions after failures."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.model.bounds import LONGEST
from segue.model.status import Failure
from segue.protocol.retries import (
    CLASSES,
    RULES,
    AskPerson,
    FailureClass,
    Fixer,
    Retry,
    RetryPolicy,
    Undo,
    Wait,
    WorkFailure,
    backoff,
    next_step,
)
from segue.state.fold import FailedAttempt

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
POLICY = RetryPolicy()
MINUTE = timedelta(minutes=1)


def failed(
    what: Failure | WorkFailure = Failure.TRANSPORT_LOST, step: str = "task-1", ago: timedelta = timedelta()
) -> FailedAttempt:
    return FailedAttempt(step=step, what=what, reason="It broke.", at=NOW - ago)


def times(count: int, what: Failure | WorkFailure) -> list[FailedAttempt]:
    """The same step, failing every two minutes until now."""
    return [failed(what, ago=2 * MINUTE * left) for left in reversed(range(count))]


def test_every_failure_and_outcome_has_a_class_and_every_class_a_rule() -> None:
    assert set(CLASSES) == set(chain(Failure, WorkFailure))
    assert set(RULES) == set(FailureClass) == set(CLASSES.values())


def test_a_transient_failure_is_retried_until_the_third_attempt_and_then_the_fixer_is_asked() -> None:
    steps = [next_step(POLICY, times(count, Failure.TRANSPORT_LOST), NOW, 0) for count in (1, 2, 3)]
    assert steps[:2] == [
        Retry(at=NOW + timedelta(seconds=1), attempt=2, of=3),
        Retry(at=NOW + timedelta(seconds=2), attempt=3, of=3),
    ]
    assert steps[2] == Fixer(reason="task-1 failed (transport lost), 3 times in a row.", beside="3 times in a row")


def test_failing_with_the_fixers_advice_asks_a_person() -> None:
    history = [*times(3, WorkFailure.TESTS_FAILED), replace(failed(WorkFailure.TESTS_FAILED), after_fixer=True)]
    step = next_step(POLICY, history, NOW, 0)
    assert step == AskPerson(
        reason="task-1 failed (tests failed), with the fixer's advice too.", beside="with the fixer's advice too"
    )


def test_with_one_attempt_no_fixer_is_asked() -> None:
    once = RetryPolicy(attempts=1)
    assert isinstance(next_step(once, [failed(Failure.TRANSPORT_LOST)], NOW, 0), AskPerson)
    assert isinstance(next_step(once, [failed(WorkFailure.TESTS_FAILED)], NOW, 0), AskPerson)


def test_a_wrong_approach_is_undone_before_the_retry() -> None:
    step = next_step(POLICY, [failed(WorkFailure.WRONG_APPROACH)], NOW, 0)
    assert isinstance(step, Retry)
    assert step.undo is Undo.REWIND


def test_a_wrong_approach_is_planned_again_twice_and_then_a_person_is_asked() -> None:
    wrong = [failed(WorkFailure.WRONG_APPROACH)]
    steps = [next_step(POLICY, wrong, NOW, 0, replans=replans) for replans in range(3)]
    assert [type(step) for step in steps] == [Retry, Retry, AskPerson]
    assert steps[2] == AskPerson(
        reason="task-1 failed (wrong approach), and the work was planned again 2 times already.",
        beside="the work was planned again 2 times already",
    )


@pytest.mark.parametrize("what", [what for what, kind in CLASSES.items() if kind is FailureClass.PERSISTENT])
def test_a_persistent_failure_asks_a_person_at_once(what: Failure | WorkFailure) -> None:
    step = next_step(POLICY, [failed(what)], NOW, 0)
    assert isinstance(step, AskPerson)
    assert step.reason.endswith(", and would again.")
    assert not step.beside


def test_only_failures_of_the_same_step_in_a_row_count_as_its_attempts() -> None:
    history = [
        failed(ago=9 * MINUTE),
        failed(ago=6 * MINUTE),
        failed(step="task-2", ago=3 * MINUTE),
        failed(WorkFailure.TESTS_FAILED),
    ]
    step = next_step(POLICY, history, NOW, 0)
    assert isinstance(step, Retry)
    assert step.attempt == 2


def test_failures_of_several_kinds_in_a_row_add_up() -> None:
    history = [failed(ago=4 * MINUTE), failed(Failure.PROCESS_EXITED, ago=2 * MINUTE), failed(WorkFailure.TESTS_FAILED)]
    assert isinstance(next_step(POLICY, history, NOW, 0), Fixer)


@pytest.mark.parametrize(("ago", "stops"), [(60, True), (61, False)])
def test_three_failures_within_a_minute_stop_the_retries_of_different_steps(ago: int, stops: bool) -> None:
    history = [
        failed(step="task-1", ago=timedelta(seconds=ago)),
        failed(step="task-2", ago=timedelta(seconds=5)),
        failed(step="task-3"),
    ]
    step = next_step(POLICY, history, NOW, 0)
    quickly = "3 failures in a row within 1 min"
    stopped = AskPerson(reason=f"task-3 failed (transport lost): {quickly}.", beside=quickly)
    assert step == (stopped if stops else Retry(at=NOW + timedelta(seconds=1), attempt=2, of=3))


def test_an_agent_that_keeps_failing_quickly_is_not_given_to_the_fixer() -> None:
    quick = [failed(Failure.PROCESS_EXITED, ago=timedelta(seconds=ago)) for ago in (5, 3, 0)]
    quickly = "3 failures in a row within 1 min"
    assert next_step(POLICY, quick, NOW, 0) == AskPerson(
        reason=f"task-1 failed (process exited): {quickly}.", beside=quickly
    )


def test_quick_failures_of_the_work_do_not_count_as_quick_failures_of_the_agent() -> None:
    assert isinstance(next_step(POLICY, [failed(WorkFailure.TESTS_FAILED)] * 3, NOW, 0), Fixer)
    crashes = [failed(Failure.PROCESS_EXITED)] * 2
    assert isinstance(next_step(POLICY, [*crashes, failed(WorkFailure.TESTS_FAILED)], NOW, 0), Fixer)


def test_an_exhausted_quota_stops_the_retries_and_names_the_reset_time() -> None:
    quota = replace(failed(Failure.QUOTA), reset_at=NOW + timedelta(hours=3))
    step = next_step(POLICY, [quota], NOW, 0)
    assert step == AskPerson(reason="The agent's quota is used up; it is full again at 2026-11-16 15:00 UTC.")


def test_a_quota_is_waited_for_only_if_the_user_chose_so() -> None:
    quota = replace(failed(Failure.QUOTA), reset_at=NOW + timedelta(hours=3))
    waiting = RetryPolicy(wait_for_quota=True)
    step = next_step(waiting, [quota], NOW, 0)
    assert step == Wait(
        until=NOW + timedelta(hours=3), reason="The agent's quota is used up until 2026-11-16 15:00 UTC."
    )
    assert isinstance(next_step(waiting, [replace(quota, reset_at=None)], NOW, 0), AskPerson)
    assert isinstance(next_step(waiting, [quota] * 3, NOW, 0), AskPerson)


def test_other_failures_do_not_count_as_an_exhausted_quota() -> None:
    quota = replace(failed(Failure.QUOTA), reset_at=NOW + timedelta(hours=3))
    others = [failed(Failure.PROCESS_EXITED, ago=2 * MINUTE), failed(WorkFailure.TESTS_FAILED, ago=MINUTE)]
    assert isinstance(next_step(RetryPolicy(wait_for_quota=True), [*others, quota], NOW, 0), Wait)


def test_a_quota_that_is_full_again_already_is_not_waited_for_any_longer() -> None:
    quota = replace(failed(Failure.QUOTA, ago=MINUTE), reset_at=NOW - timedelta(seconds=1))
    step = next_step(RetryPolicy(wait_for_quota=True), [quota], NOW, 0)
    assert isinstance(step, Wait)
    assert step.until == NOW


def test_an_overdue_retry_is_scheduled_now() -> None:
    step = next_step(POLICY, [failed(ago=timedelta(hours=1))], NOW, 0)
    assert step == Retry(at=NOW, attempt=2, of=3)


chances = st.floats(min_value=0, max_value=1, exclude_max=True)
failures = st.builds(
    FailedAttempt,
    step=st.sampled_from(["task-1", "task-2"]),
    what=st.sampled_from(list(CLASSES)),
    reason=st.just("It broke."),
    at=st.integers(min_value=0, max_value=3600).map(lambda ago: NOW - timedelta(seconds=ago)),
)


@given(st.integers(min_value=1, max_value=10_000), chances)
def test_a_retry_never_waits_shorter_than_the_first_nor_longer_than_the_longest(count, chance) -> None:
    wait = backoff(POLICY.first, POLICY.longest, count, chance)
    assert POLICY.first <= wait <= timedelta(seconds=60)


@given(st.integers(min_value=1, max_value=10_000), chances)
def test_a_wait_is_finite_for_any_setting(count, chance) -> None:
    longest = timedelta(seconds=LONGEST)
    assert backoff(longest, longest, count, chance) == longest


def test_retries_of_simultaneous_failures_are_spread() -> None:
    waits = {backoff(POLICY.first, POLICY.longest, 1, chance) for chance in (0, 0.25, 0.5, 0.75)}
    assert len(waits) == 4 and min(waits) == POLICY.first
    assert len({backoff(POLICY.first, POLICY.longest, 10, chance) for chance in (0, 0.5)}) == 2


@given(st.integers(min_value=1, max_value=20), chances)
def test_each_wait_is_longer_than_the_one_before(count, chance) -> None:
    waits = [backoff(POLICY.first, POLICY.longest, tries, chance) for tries in (count, count + 1)]
    assert waits == sorted(waits)


@given(st.lists(failures, min_size=1, max_size=8), st.booleans(), chances)
def test_no_retry_exceeds_the_attempts_or_is_in_the_past(history, wait_for_quota, chance) -> None:
    match next_step(RetryPolicy(wait_for_quota=wait_for_quota), history, NOW, chance):
        case Retry(at=at, attempt=attempt, of=of):
            assert NOW <= at <= NOW + timedelta(seconds=60)
            assert 2 <= attempt <= of == 3
            assert CLASSES[history[-1].what] is not FailureClass.PERSISTENT
            assert history[-1].what != Failure.QUOTA
        case Wait(until=until):
            assert wait_for_quota
            assert until >= NOW
        case Fixer(reason=reason) | AskPerson(reason=reason):
            assert reason
