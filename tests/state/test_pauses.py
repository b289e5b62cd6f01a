"""Requested pauses, as a table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from segue.model.status import Trigger
from segue.state.pauses import RequestedPause, combine_pauses

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SOONER, LATER = NOON - timedelta(minutes=1), NOON + timedelta(minutes=1)
PERSON = RequestedPause(trigger=Trigger.PAUSE, reason="lunch", force_at=NOON)
LIMIT = RequestedPause(trigger=Trigger.EXHAUSTION, reason="the budget is used up", force_at=NOON)


@pytest.mark.parametrize(
    ("before", "asked", "holds"),
    [
        (None, PERSON, PERSON),
        (None, LIMIT, LIMIT),
        (PERSON, replace(PERSON, reason="dinner", force_at=LATER), PERSON),
        (PERSON, replace(LIMIT, force_at=LATER), PERSON),
        (PERSON, replace(LIMIT, force_at=SOONER), replace(PERSON, force_at=SOONER)),
        (LIMIT, replace(PERSON, force_at=LATER), PERSON),
        (LIMIT, replace(PERSON, force_at=SOONER), replace(PERSON, force_at=SOONER)),
        (LIMIT, replace(LIMIT, reason="the context is full", force_at=LATER), LIMIT),
        (LIMIT, replace(LIMIT, reason="the context is full"), LIMIT),
        (
            LIMIT,
            replace(LIMIT, reason="the context is full", force_at=SOONER),
            replace(LIMIT, reason="the context is full", force_at=SOONER),
        ),
    ],
)
def test_the_sooner_pause_holds_and_that_of_a_person_stays(
    before: RequestedPause | None, asked: RequestedPause, holds: RequestedPause
) -> None:
    assert combine_pauses(before, asked) == holds
