"""Which way back, and why."""

from dataclasses import replace

import pytest

from segue.model.checkpoint import Usage
from segue.model.status import SessionStatus, Way
from segue.resume.planner import plan_resume
from segue.state.fold import SessionState

NEW = SessionState(number=1, agent="rehearsal", parent=None)
TALKED = replace(NEW, status=SessionStatus.SUSPENDED, token="t", usage=Usage(turns=1))


@pytest.mark.parametrize(
    ("session", "native", "way", "reason"),
    [
        (TALKED, True, Way.NATIVE, "own conversation goes on"),
        (replace(TALKED, status=SessionStatus.FAILED), True, Way.NATIVE, "own conversation goes on"),
        (replace(TALKED, status=SessionStatus.WAITING_FOR_INPUT), True, Way.NATIVE, "own conversation goes on"),
        (TALKED, False, Way.FRESH, "may lose a conversation"),
        (replace(TALKED, token=None, refused_tokens=("t",)), True, Way.FRESH, "no longer knows"),
        (replace(TALKED, status=SessionStatus.CANCELLED), True, Way.FRESH, "is cancelled"),
        (replace(TALKED, token=None), True, Way.FRESH, "no conversation was recorded"),
        (NEW, True, Way.FIRST, "never reached"),
        (replace(NEW, status=SessionStatus.SUSPENDED), True, Way.FIRST, "never reached"),
    ],
)
def test_the_way_back_and_its_reason(session: SessionState, native: bool, way: Way, reason: str) -> None:
    plan = plan_resume(session, native)
    assert plan.way is way
    assert reason in plan.reason
