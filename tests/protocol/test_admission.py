"""Admission of requests, as tables."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from segue.model.errors import WrongState
from segue.model.status import Purpose, RunStatus, SessionStatus, Way, WorkflowStatus
from segue.protocol.admission import (
    AtWork,
    FilesMoving,
    LaunchCourse,
    LaunchRequest,
    Leaving,
    OpenRun,
    Overtaken,
    PauseCourse,
    Question,
    Standing,
    Starting,
    admit_answer,
    admit_cancel,
    admit_launch,
    admit_pause,
    admit_pause_at_once,
    admit_prompt,
    refuse_untimely,
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


WORK = LaunchRequest(purpose=Purpose.WORK, agent="claude")
TALK = LaunchRequest(purpose=Purpose.TALK, agent="claude")

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


LAUNCHES: list[tuple[Standing, LaunchRequest, LaunchCourse | type[WrongState]]] = [
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
def test_launch(now: Standing, wanted: LaunchRequest, course: LaunchCourse | type[WrongState]) -> None:
    if isinstance(course, LaunchCourse):
        assert admit_launch(now, wanted) is course
    else:
        with pytest.raises(course):
            admit_launch(now, wanted)


AT_ONCE: list[tuple[Standing, bool | type[WrongState]]] = [
    (standing(W.IN_PROGRESS), True),
    (standing(W.IN_PROGRESS, QUEUED), True),
    (standing(W.REVIEW), True),
    (standing(W.PAUSED), False),
    (standing(W.PAUSED, TALKING), False),
    (standing(W.IN_PROGRESS, WORKING), Starting),
    (standing(W.REVIEW, TALKING), Starting),
    (replace(standing(W.BLOCKED), files_moving=True), FilesMoving),
]


@pytest.mark.parametrize(("now", "allowed"), AT_ONCE)
def test_pause_at_once(now: Standing, allowed: bool | type[WrongState]) -> None:
    if isinstance(allowed, bool):
        assert admit_pause_at_once(now) is allowed
    else:
        with pytest.raises(allowed):
            admit_pause_at_once(now)


@pytest.mark.parametrize("admit", [admit_pause, admit_pause_at_once, admit_cancel])
def test_nothing_is_decided_while_files_move(admit: Callable[[Standing], object]) -> None:
    with pytest.raises(FilesMoving):
        admit(replace(standing(W.IN_PROGRESS), files_moving=True))


@pytest.mark.parametrize("status", W)
def test_cancel(status: WorkflowStatus) -> None:
    assert admit_cancel(standing(status)) is (status is not W.CANCELLED)


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
UNTIMELY: list[tuple[Standing, LaunchRequest, type[WrongState] | None]] = [
    (standing(W.PAUSED), WORK, None),
    (replace(standing(W.PAUSED), files_moving=True), WORK, FilesMoving),
    (replace(standing(W.PAUSED), files_moving=True), replace(WORK, holds_files=True), None),
    (replace(standing(W.PAUSED), retry_at=NOON), replace(WORK, due=NOON), None),
    (replace(standing(W.PAUSED), retry_at=NOON + timedelta(1)), replace(WORK, due=NOON), Overtaken),
    (standing(W.PAUSED), replace(WORK, due=NOON), Overtaken),
]


@pytest.mark.parametrize(("now", "wanted", "refused"), UNTIMELY)
def test_untimely_launch(now: Standing, wanted: LaunchRequest, refused: type[WrongState] | None) -> None:
    with pytest.raises(refused) if refused else nullcontext():
        refuse_untimely(now, wanted)


PLAN, TASK = Question.PLAN, Question.TASK
ANSWERS: list[tuple[Standing, Question, type[WrongState] | None]] = [
    (standing(W.BLOCKED), PLAN, None),
    (standing(W.BLOCKED, TALKING), PLAN, None),
    (standing(W.IN_PROGRESS), PLAN, None),
    (standing(W.IN_PROGRESS, WORKING), PLAN, Leaving),
    (standing(W.BLOCKED, ENDING), PLAN, None),
    (standing(W.PAUSED), PLAN, WrongState),
    (standing(W.CANCELLED), PLAN, WrongState),
    (standing(W.REVIEW), TASK, None),
    (standing(W.PAUSED), TASK, None),
    (standing(W.REVIEW, TALKING), TASK, None),
    (standing(W.IN_PROGRESS, WORKING), TASK, AtWork),
    (standing(W.REVIEW, ENDING), TASK, Leaving),
]


@pytest.mark.parametrize(("now", "about", "refused"), ANSWERS)
def test_answer(now: Standing, about: Question, refused: type[WrongState] | None) -> None:
    with pytest.raises(refused) if refused else nullcontext():
        admit_answer(now, about, is_open=True)
    with pytest.raises(WrongState, match="Another answer was given"):
        admit_answer(now, about, is_open=False)


@pytest.mark.parametrize(("now", "hint"), [(standing(W.IN_PROGRESS, WORKING), "logs"), (standing(W.PAUSED), "resume")])
def test_prompt(now: Standing, hint: str) -> None:
    admit_prompt(now, waiting=2, most=3)
    with pytest.raises(WrongState, match="3 messages wait") as refused:
        admit_prompt(now, waiting=3, most=3)
    assert f"segue {hint}" in refused.value.hint
