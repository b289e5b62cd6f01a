"""Gather what the workspace says, and put a checkpoint together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from segue.model.checkpoint import Checkpoint, CheckpointType, GitState, TaskMark
from segue.model.errors import SegueError
from segue.model.ids import CheckpointId, PromptId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import Task, TaskStatus
from segue.model.status import PromptStatus, Trigger
from segue.state.fold import SessionState, WorkflowState
from segue.workspace.checkpoints import save_with_state
from segue.workspace.git import committed_between
from segue.workspace.worktrees import is_half_made

NEXT_STEPS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The worktree at one moment, saved; or why it could not be."""

    git: GitState | None = None
    commit: str | None = None
    left_out: tuple[str, ...] = ()
    problem: str = ""


async def gather(worktree: str | None, ref: str, base: str | None) -> Workspace:
    """Save the worktree under a ref, and read its git state; a failure becomes `problem` and is not raised."""
    if worktree is None:
        return Workspace(problem="There is no worktree yet.")
    if is_half_made(Path(worktree)):
        # Its files are those of no moment of the work.
        return Workspace(problem="The worktree could not be saved: it was not made to its end.")
    try:
        git, saved = await save_with_state(Path(worktree), ref, "Segue checkpoint", base)
    except (SegueError, OSError) as error:
        return Workspace(problem=f"The worktree could not be saved: {error}")
    return Workspace(git=await _with_commits(Path(worktree), git), commit=saved.commit, left_out=saved.left_out)


async def _with_commits(worktree: Path, git: GitState) -> GitState:
    """Return the git state with the changes committed since the base; unchanged if there are none or git fails."""
    if git.base is None or git.base == git.head:
        return git
    try:
        return replace(git, committed=await committed_between(worktree, git.base, git.head))
    except (SegueError, OSError):  # the worktree is saved, and what it holds is known
        return git


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Why a checkpoint is taken."""

    type: CheckpointType
    trigger: Trigger
    reason: str
    snapshot: bool
    clean_boundary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the journal it stands."""

    id: CheckpointId
    workflow_id: WorkflowId
    session_id: SessionId
    at: datetime
    after: Seq
    session_began: datetime


def make_checkpoint(
    place: Place,
    occasion: Occasion,
    state: WorkflowState,
    statuses: Sequence[tuple[TaskId, TaskStatus]],
    workspace: Workspace,
) -> Checkpoint:
    """Return a checkpoint of all that a successor needs; `statuses` are the tasks' as read under the lock."""
    session = state.sessions[place.session_id]
    status = dict(statuses)
    plan = state.plan
    tasks = plan.tasks if plan else ()
    finished = [name for name, value in statuses if value is TaskStatus.COMPLETED]
    following = plan.next_ready(finished) if plan else None
    return Checkpoint(
        id=place.id,
        workflow_id=place.workflow_id,
        session_id=place.session_id,
        session_number=session.number,
        created_at=place.at,
        type=occasion.type,
        trigger=occasion.trigger,
        reason=occasion.reason,
        snapshot=occasion.snapshot,
        clean_boundary=occasion.clean_boundary,
        after=place.after,
        issue=state.issue if occasion.snapshot else None,
        tasks=tuple(_mark(task, status[task.id], occasion.snapshot) for task in tasks),
        current_task=state.current_task,
        next_task=following.id if following else None,
        git=workspace.git,
        commit=workspace.commit,
        left_out=workspace.left_out,
        open_calls=tuple(session.calls.values()),
        in_flight_prompt=_in_flight(session),
        usage=state.usage,
        session_seconds=(place.at - place.session_began).total_seconds(),
        bookmark=session.bookmark,
        step=_title(tasks, state.current_task or (finished[-1] if finished else None)),
        summary=f"{_progress(state, finished)}; stopped because of {occasion.trigger}",
        next_steps=_next_steps(state, status),
        can_resume=occasion.trigger is not Trigger.CANCEL and (following is not None or state.planning is not None),
        resume_instructions=f"segue resume --workflow-id {place.workflow_id}",
        problem=workspace.problem,
    )


def _progress(state: WorkflowState, finished: Sequence[TaskId]) -> str:
    """Return how far the plan is, in one phrase."""
    if state.plan is None:
        return "a plan waits for approval" if state.planning and state.planning.proposed else "no plan is made yet"
    return f"{len(finished)} of {len(state.plan.tasks)} tasks are done"


def _next_steps(state: WorkflowState, status: Mapping[TaskId, TaskStatus]) -> tuple[str, ...]:
    """Return the titles of the next open tasks, or the step that the plan needs."""
    if (planning := state.planning) is not None:
        return ("Approve or reject the plan",) if planning.proposed else ("Make a plan",)
    tasks = state.plan.tasks if state.plan else ()
    return tuple(task.title for task in tasks if status[task.id] is not TaskStatus.COMPLETED)[:NEXT_STEPS]


def _mark(task: Task, status: TaskStatus, whole: bool) -> TaskMark:
    """Return a task with its status; only a snapshot (`whole`) keeps its description."""
    description = task.description if whole else ""
    return TaskMark(id=task.id, title=task.title, status=status, depends_on=task.depends_on, description=description)


def _title(tasks: Sequence[Task], wanted: TaskId | None) -> str:
    """Return the title of a task, or an empty text."""
    return next((task.title for task in tasks if task.id == wanted), "")


def _in_flight(session: SessionState) -> PromptId | None:
    """Return the last prompt that was sent and not answered, or None."""
    sent = [name for name, prompt in session.prompts.items() if prompt.status is PromptStatus.SENT]
    return sent[-1] if sent else None
