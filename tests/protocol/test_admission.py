"""Admission of requests, as tables."""

from dataclasses import replace

import pytest

from segue.model.errors import WrongState
from segue.model.status import Purpose, RunStatus, SessionStatus, Way, WorkflowStatus
from segue.protocol.admission import (
    AtWork,
    Launch,
    LaunchCourse,
    Leaving,
    OpenRun,
    PauseCourse,
    Standing,
    admit_launch,
    admit_pause,
)

W, S = WorkflowStatus, SessionStatus
WORKING = OpenRun(status=RunStatus.ACTIVE, purpose=Purpose.WORK, way=Way.NATIVE)
QUEUED = replace(WORKING, status=RunStatus.QUEUED)
TALKING = replace(WORKING, purpose=Purpose.TALK)
ENDING = replace(WORKING, purpose=Purpose.LEAVING)


def standing(
    status: WorkflowStatus, run: OpenRun | None = None, session: SessionStatus = SessionStatus.RUNNING
) -> Standing:
    return Standing(status=status, agent="claude", session=session, run=run)


WORK = Launch(purpose=Purpose.WORK, agent="claude")
TALK = Launch(purpose=Purpose.TALK, agent="claude")

PAUSES: list[tuple[Standing, PauseCourse | type[WrongState]]] = [
    (standing(W.IN_PROGRESS, WORKING), PauseCourse.AT_BOUNDARY),
    (standing(W.IN_PROGRESS, TALKING), PauseCourse.AT_BOUNDARY),
    (standing(W.IN_PROGRESS, QUEUED), PauseCourse.AT_ONCE),
    (standing(W.IN_PROGRESS), PauseCourse.AT_ONCE),
    (standing(W.PENDING, QUEUED), PauseCourse.AT_ONCE),
    (standing(W.BLOCKED), PauseCourse.AT_ONCE),
    (standing(W.REVIEW, TALKING), PauseCourse.AT_ONCE),
    (standing(W.PAUSED), PauseCourse.ALREADY_PAUSED),
    (standing(W.PAUSED, TALKING), PauseCourse.ALREADY_PAUSED),
    (standing(W.FAILED), WrongState),
    (standing(W.COMPLETED), WrongState),
    (standing(W.CANCELLED), WrongState),
]


@pytest.mark.parametrize(("now", "course"), PAUSES)
def test_pause(now: Standing, course: PauseCourse | type[WrongState]) -> None:
    if isinstance(course, PauseCourse):
        assert admit_pause(now) is course
    else:
        with pytest.raises(course, match=f"is {now.status}"):
            admit_pause(now)


LAUNCHES: list[tuple[Standing, Launch, LaunchCourse | type[WrongState]]] = [
    # No run is open: the status decides.
    *[(standing(status), WORK, LaunchCourse.BEGIN) for status in (W.PAUSED, W.FAILED, W.REVIEW, W.PENDING)],
    *[(standing(status), TALK, LaunchCourse.BEGIN) for status in (W.PAUSED, W.FAILED, W.REVIEW, W.BLOCKED)],
    *[(standing(status), WORK, WrongState) for status in (W.IN_PROGRESS, W.BLOCKED, W.COMPLETED, W.CANCELLED)],
    *[(standing(status), TALK, WrongState) for status in (W.IN_PROGRESS, W.PENDING, W.COMPLETED, W.CANCELLED)],
    (standing(W.BLOCKED), replace(WORK, answers=True), LaunchCourse.BEGIN),
    (standing(W.BLOCKED), replace(WORK, goes_back=True), LaunchCourse.BEGIN),
    # A run is open: nothing is started twice.
    (standing(W.IN_PROGRESS, WORKING), TALK, LaunchCourse.JOIN),
    (standing(W.IN_PROGRESS, WORKING), WORK, WrongState),
    (standing(W.IN_PROGRESS, WORKING, S.STARTING), WORK, LaunchCourse.JOIN),
    (standing(W.IN_PROGRESS, QUEUED), WORK, LaunchCourse.JOIN),
    (standing(W.PAUSED, TALKING), TALK, LaunchCourse.JOIN),
    (standing(W.PAUSED, TALKING), WORK, LaunchCourse.TURN_TO_WORK),
    (standing(W.PAUSED, TALKING), replace(WORK, agent="codex"), AtWork),
    (standing(W.PAUSED, TALKING), replace(WORK, way=Way.CONTEXT), WrongState),
    (standing(W.PAUSED, TALKING), replace(WORK, way=Way.NATIVE), LaunchCourse.TURN_TO_WORK),
    (standing(W.PAUSED, TALKING), replace(WORK, goes_back=True), AtWork),
    (standing(W.PAUSED, ENDING), WORK, Leaving),
    (standing(W.IN_PROGRESS, ENDING), TALK, Leaving),
    (standing(W.CANCELLED, WORKING), TALK, WrongState),
]


@pytest.mark.parametrize(("now", "wanted", "course"), LAUNCHES)
def test_launch(now: Standing, wanted: Launch, course: LaunchCourse | type[WrongState]) -> None:
    if isinstance(course, LaunchCourse):
        assert admit_launch(now, wanted) is course
    else:
        with pytest.raises(course):
            admit_launch(now, wanted)
