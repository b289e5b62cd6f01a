"""Admission of requests: whether a workflow may be paused, resumed or answered now, as pure functions of values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from segue.model.errors import WrongState
from segue.model.status import Purpose, RunStatus, SessionStatus, Way, WorkflowStatus
from segue.state.moves import WORKFLOW_ENDED

_W = WorkflowStatus
RESUMABLE: Mapping[Purpose, frozenset[WorkflowStatus]] = {
    Purpose.WORK: frozenset({_W.PAUSED, _W.FAILED, _W.REVIEW, _W.PENDING}),
    Purpose.TALK: frozenset({_W.PAUSED, _W.FAILED, _W.REVIEW, _W.BLOCKED}),
}
"""Statuses from which an agent may be brought back."""
STARTS = frozenset({SessionStatus.CREATED, SessionStatus.STARTING, SessionStatus.SUSPENDED, SessionStatus.FAILED})
"""Statuses of a session whose run is queued or whose agent is not up yet."""
_VERBS = {Purpose.WORK: "resume", Purpose.TALK: "talk to"}
_HINTS = {
    _W.IN_PROGRESS: "`segue logs -f` follows it.",
    _W.PENDING: "`segue resume` starts it.",
    _W.BLOCKED: "Its plan waits for your word: `segue approve`, or `segue reject` with a reason.",
    _W.COMPLETED: "Go on from it in a new workflow: `segue sessions fork`.",
    _W.CANCELLED: "Go on from it in a new workflow: `segue sessions fork`.",
}


class Leaving(WrongState):
    """The agent is being put away just now."""

    hint = "Try again in a moment."


class AtWork(WrongState):
    """An agent is at work on it."""

    hint = "Pause it first: segue pause."


class Starting(WrongState):
    """Its agent is being started just now."""


class FilesMoving(WrongState):
    """The workflow's files are being put in place just now."""

    hint = "Try again in a moment."


class Overtaken(WrongState):
    """Another request has decided how the workflow goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that has not ended."""

    status: RunStatus
    purpose: Purpose
    way: Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """State of a workflow, as far as a request depends on it."""

    status: WorkflowStatus
    agent: str
    session: SessionStatus
    run: OpenRun | None = None
    files_moving: bool = False
    """Files are being put in place in its worktree."""
    retry_at: datetime | None = None
    """Time of the scheduled retry."""


class PauseCourse(Enum):
    """Course of a pause that is allowed."""

    ALREADY_PAUSED = "already paused"
    AT_ONCE = "at once"
    """No agent is at work."""
    AT_BOUNDARY = "at the boundary"
    """The run pauses at the end of its task."""


def refuse_while_files_move(now: Standing) -> None:
    """Raise FilesMoving in the middle of a change of the files; else do nothing."""
    if now.files_moving:
        raise FilesMoving


def admit_pause(now: Standing) -> PauseCourse:
    """Choose how a workflow is paused: at once, at its next boundary, or not again; raise where there is nothing to
    pause."""
    refuse_while_files_move(now)
    if now.status is _W.PAUSED:
        return PauseCourse.ALREADY_PAUSED
    if now.status in WORKFLOW_ENDED or now.status is _W.FAILED:
        raise WrongState(f"The workflow is {now.status}; there is nothing to pause.")
    if now.run is None or now.run.status is RunStatus.QUEUED or now.status is not _W.IN_PROGRESS:
        return PauseCourse.AT_ONCE
    return PauseCourse.AT_BOUNDARY


def admit_pause_at_once(now: Standing) -> bool:
    """Return False for a workflow that is paused already, else True; raise Starting if an agent has come up since."""
    refuse_while_files_move(now)
    if now.status is _W.PAUSED:
        return False
    if now.run is not None and now.run.status is RunStatus.ACTIVE:
        raise Starting
    return True


def admit_cancel(now: Standing) -> bool:
    """Return False for a workflow that is cancelled already, else True; raise while its files are changed."""
    refuse_while_files_move(now)
    return now.status is not _W.CANCELLED


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """A request to bring an agent back."""

    purpose: Purpose
    agent: str
    way: Way | None = None
    """The only way that is wanted."""
    goes_back: bool = False
    """The work goes back to a snapshot."""
    answers: bool = False
    """The request answers the question that the work stopped for."""
    holds_files: bool = False
    """The request itself changes the workflow's files."""
    due: datetime | None = None
    """Time of the retry that this is; it is made only while that is the scheduled one."""


class LaunchCourse(Enum):
    """Course of a launch that is allowed."""

    BEGIN = "begin"
    """A new run is queued."""
    JOIN = "join"
    """The open run serves the request."""
    TURN_TO_WORK = "turn to work"
    """The open run was there to talk, and goes on with the plan."""


def refuse_untimely(now: Standing, wanted: LaunchRequest) -> None:
    """Raise if others change the files now, or if the retry is not the scheduled one any more; else do nothing."""
    if not wanted.holds_files:
        refuse_while_files_move(now)
    if wanted.due is not None and wanted.due != now.retry_at:
        raise Overtaken


def admit_launch(now: Standing, wanted: LaunchRequest) -> LaunchCourse:
    """Choose whether a run begins, the open one is joined, or its chat is turned to work, so that no two runs are
    open; raise where none may be."""
    run, works = now.run, wanted.purpose is Purpose.WORK
    if run is None:
        if not wanted.answers:
            refuse_unless_resumable(now.status, wanted.purpose, goes_back=wanted.goes_back)
        return LaunchCourse.BEGIN
    if wanted.goes_back:
        raise AtWork(f"{now.agent} is at work on it.")
    if now.status in WORKFLOW_ENDED:
        # The workflow was cancelled just now, and its run is being torn away.
        refuse_unless_resumable(now.status, wanted.purpose)
    if run.purpose is Purpose.LEAVING:
        raise Leaving
    if works and wanted.agent != now.agent:
        raise AtWork(f"{now.agent} is at work on it.")
    if wanted.way not in (None, run.way):
        raise WrongState(f"The agent is on its way back already, by another way ({run.way}).", hint="Try again.")
    if works and run.purpose is Purpose.TALK:
        return LaunchCourse.TURN_TO_WORK
    if works and now.session not in STARTS and run.status is not RunStatus.QUEUED:
        refuse_unless_resumable(now.status, wanted.purpose)
    return LaunchCourse.JOIN


def refuse_unless_resumable(status: WorkflowStatus, purpose: Purpose, *, goes_back: bool = False) -> None:
    """Raise WrongState if the status allows no agent for this purpose; going back is also allowed from blocked."""
    if status in RESUMABLE[purpose] or (goes_back and status is _W.BLOCKED):
        return
    raise WrongState(f"The workflow is {status}; there is nothing to {_VERBS[purpose]}.", hint=_HINTS.get(status, ""))


class Question(Enum):
    """Kind of question that a person answers while no agent waits for the answer."""

    PLAN = "plan"
    TASK = "task"


def admit_answer(now: Standing, about: Question, *, is_open: bool) -> None:
    """Raise if the question is answered already, or the workflow cannot take an answer to it now; else do nothing."""
    purpose = now.run.purpose if now.run else None
    if not is_open:
        raise WrongState("Another answer was given just before.", hint="`segue status` shows what is open now.")
    if purpose is Purpose.WORK and about is Question.TASK:
        raise AtWork("The agent is at work on it again.")
    if purpose is Purpose.WORK or (purpose is Purpose.LEAVING and about is Question.TASK):
        # The run that asked ends in a moment.
        raise Leaving
    if about is Question.PLAN and now.status not in (_W.BLOCKED, _W.IN_PROGRESS):
        hint = "`segue resume` brings its question back." if now.status is _W.PAUSED else ""
        raise WrongState(f"The workflow is {now.status}; its plan waits for no answer now.", hint=hint)


def admit_prompt(now: Standing, waiting: int, most: int) -> None:
    """Raise WrongState if `most` messages wait for the agent already; else do nothing."""
    if waiting < most:
        return
    at_work = "Wait until it has read some: `segue logs -f` shows that."
    gone = "No agent reads them now; `segue resume` brings it back, and it gets them first."
    raise WrongState(
        f"{most} messages wait for the agent already; this one was not taken.", hint=at_work if now.run else gone
    )
