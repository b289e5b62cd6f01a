"""Detection of silent agents."""

from datetime import UTC, datetime, timedelta

import pytest

from segue.protocol.stalls import NoReaction, Stalled, Watch, check, observe

SENT = datetime(2026, 11, 16, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_five_silent_minutes_are_reported_once_for_each_prompt() -> None:
    watch = observe(Watch(sent_at=SENT), SENT + MINUTE)
    watch, early = check(watch, SENT + 6 * MINUTE - timedelta(seconds=1))
    watch, notice = check(watch, SENT + 6 * MINUTE)
    assert early is None
    assert notice == Stalled(since=SENT + MINUTE, reason="The agent has been silent for 5 min.")
    assert check(watch, SENT + 7 * MINUTE)[1] is None
    assert check(observe(watch, SENT + 8 * MINUTE), SENT + 20 * MINUTE)[1] is None


def test_a_prompt_that_never_brought_an_event_is_a_failed_launch() -> None:
    _, notice = check(Watch(sent_at=SENT), SENT + 5 * MINUTE)
    assert notice == NoReaction(since=SENT, reason="The agent has not reacted to its prompt for 5 min.")


@pytest.mark.parametrize("minutes", [0, 4, 9])
def test_an_agent_with_a_recent_event_is_not_reported(minutes: int) -> None:
    watch = observe(Watch(sent_at=SENT), SENT + minutes * MINUTE)
    assert check(watch, SENT + (minutes + 4) * MINUTE) == (watch, None)


def test_the_notice_time_can_be_set() -> None:
    assert check(Watch(sent_at=SENT), SENT + MINUTE, notice_after=MINUTE)[1] is not None
