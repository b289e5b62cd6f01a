"""Rewind of a workflow to an earlier checkpoint, which can be undone too.

First the present is saved as a snapshot, then the files are restored. The event of the rewind is written with the run
that goes on from there; if it cannot be written, the files are put back. Only a server that dies before that leaves
files that differ from the last snapshot, and the next resume reports them. The same command again completes the rewind,
and so does the retry that it was done for.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from segue.journal import Transaction
from segue.journal.rows import WorkflowRow
from segue.model.checkpoint import Checkpoint, CheckpointType
from segue.model.crash import crash_point
from segue.model.errors import CheckpointNotFound, WorkspaceError, WorktreeMissing, WrongState
from segue.model.events import CheckpointCreated, Stretch, TaskStarted, WorkflowRewound
from segue.model.ids import NOTHING_SEEN, CheckpointId, Seq, TaskId
from segue.model.plan import Plan, Planning, TaskStatus
from segue.model.status import Trigger
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling.recovery import checkpoint_ref, write_checkpoint
from segue.snapshot.gather import Occasion, gather
from segue.state.fold import WorkflowState, fold
from segue.state.story import story
from segue.state.workflow import rewound
from segue.workspace.checkpoints import restore, tree_in
from segue.workspace.comparison import between, is_on_the_way
from segue.workspace.git import read_state

log = logging.getLogger("segue")

PREVIOUS = "previous"
"""Name for the snapshot before the one that the work stands on."""
NOTHING_UNDONE = (
    "No file was undone, since no clean checkpoint from before this step has them; they are as they were left."
)
"""Message of a retry that should undo a step and finds no checkpoint to go back to."""
BEFORE = "before going back to "
"""Beginning of the reason of a snapshot that a rewind has saved."""
PLANS = (
    "workflow.created",
    "workflow.rewound",
    "plan.proposed",
    "plan.rejected",
    "plan.adopted",
    "plan.reopened",
)
"""Kinds of events that the plan and its making are folded from."""


@dataclass(frozen=True, slots=True)
class Target:
    """Checkpoint that the work can go back to, with the commit of its files and the plan of that time."""

    checkpoint: Checkpoint
    commit: str
    plan: Plan | None
    planning: Planning | None

    @property
    def tasks(self) -> dict[TaskId, TaskStatus]:
        """Return the tasks of the plan of that time with their status; one in progress, or unknown to the checkpoint,
        is pending."""
        stood = {mark.id: mark.status for mark in self.checkpoint.tasks}
        started = [name for name, status in stood.items() if status is TaskStatus.IN_PROGRESS]
        stood |= dict.fromkeys(started, TaskStatus.PENDING)
        # Tasks that the checkpoint does not know were not begun at its time.
        return {task.id: stood.get(task.id, TaskStatus.PENDING) for task in self.plan.tasks} if self.plan else {}


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Rewind whose files are restored and whose event is not written yet."""

    event: WorkflowRewound
    left_alone: tuple[str, ...]
    """Files that no checkpoint holds; they are left as they are."""


async def target(services: RuntimeServices, row: WorkflowRow, name: str) -> Target:
    """Return the named checkpoint with the plan of its time; raise if its files are not stored. Nothing is changed."""
    checkpoint = await _named(services, row, name)
    if checkpoint.commit is None:
        why = checkpoint.problem or "it has no files."
        raise WrongState(f"Snapshot {checkpoint.id} cannot be gone back to: {why}", hint="Choose another one.")
    await tree_in(Path(row.repository), checkpoint.commit)
    then = await _planned(services, row, checkpoint.after)
    return Target(checkpoint, checkpoint.commit, then.plan, then.planning)


async def _planned(services: RuntimeServices, row: WorkflowRow, until: Seq) -> WorkflowState:
    """Fold the events of the plan up to event `until`, earlier rewinds included; the state holds nothing else."""
    records = await services.journal.last_records(row.id, PLANS, within=Stretch(NOTHING_SEEN, until))
    return fold(reversed(records))


async def _named(services: RuntimeServices, row: WorkflowRow, name: str) -> Checkpoint:
    """Return the checkpoint of this name, or for "previous" the last snapshot before the present one; raise
    CheckpointNotFound if there is none."""
    if name != PREVIOUS:
        return await services.journal.checkpoints.get(row.id, name)
    state = await services.journal.state(row.id)
    standing = await services.journal.checkpoints.base(row.id, state)
    known = story(state.rewinds, standing.after) if standing else ()
    for snapshot in await services.journal.checkpoints.snapshots(row.id):
        before = standing is not None and snapshot.after < standing.after
        if before and any(part.after < snapshot.after <= part.until for part in known):
            return snapshot
    raise CheckpointNotFound("There is no snapshot before the last one.", hint="Name the one you mean.")


async def before_task(services: RuntimeServices, row: WorkflowRow, step: str) -> Target | None:
    """Return the last clean checkpoint with files from before the task `step` was first begun, or None."""
    starts = await services.facts.last_records(row.id, ["task.started"])
    # The original of a fork has event numbers and checkpoints of its own.
    told = [(record.seq, record.event) for record in starts if record.workflow_id == row.id]
    mine = [seq for seq, event in told if isinstance(event, TaskStarted) and event.task_id == step]
    for record in await services.facts.last_records(row.id, ["checkpoint.created"]):
        made = record.event
        if not isinstance(made, CheckpointCreated) or record.workflow_id != row.id:
            continue
        if made.clean_boundary and made.commit is not None and (not mine or record.seq < min(mine)):
            return await target(services, row, made.checkpoint_id)
    return None


async def require_worktree_of(row: WorkflowRow, target: Target) -> None:
    """Raise if the worktree is gone or not on the branch of the checkpoint; else do nothing."""
    if not await anyio.Path(row.worktree).is_dir():
        raise WorktreeMissing(
            f"The worktree {row.worktree} is gone.", hint="Make it again first: segue resume --workspace-only"
        )
    now = (await read_state(Path(row.worktree), row.base)).branch
    saved = target.checkpoint.git
    if saved is not None and saved.branch != now:
        raise WrongState(
            f"Snapshot {target.checkpoint.id} was taken on branch {saved.branch}, and the worktree is on {now}.",
            hint=f"Switch it back: git -C {row.worktree} switch {saved.branch}",
        )


def foreseen(state: WorkflowState, target: Target) -> WorkflowState:
    """Return the state as the rewind will leave it, for checks before anything is changed."""
    event = WorkflowRewound(
        checkpoint_id=target.checkpoint.id,
        after=target.checkpoint.after,
        saved=CheckpointId(""),
        tasks=target.tasks,
        plan=target.plan,
        planning=target.planning,
    )
    return after(state, event)


def after(state: WorkflowState, event: WorkflowRewound) -> WorkflowState:
    """Return the state after a rewind whose event is not written yet."""
    following = Seq(state.seq + 1)
    return replace(rewound(state, event, following), seq=following)


@asynccontextmanager
async def taken_back(
    services: RuntimeServices, row: WorkflowRow, target: Target, admit: Callable[[Transaction], None]
) -> AsyncGenerator[TakenBack]:
    """Save the present as a snapshot and restore the target's files, for a body that writes the event; if the body
    fails, put them back. `admit` is called in a transaction before that, and raises to refuse."""
    await services.journal.transact(row.id, admit)
    saved = await _left_by_a_dead_try(services, row, target) or await _save(services, row, target)
    crash_point("rewind.saved")
    try:
        yield await _bring_back(services, row, target, saved)
    except (Exception, anyio.get_cancelled_exc_class()):
        with anyio.CancelScope(shield=True):
            await _unless_written(services, row, saved)
        raise


async def _unless_written(services: RuntimeServices, row: WorkflowRow, saved: Checkpoint) -> None:
    """Restore the saved files unless the event of the rewind is written after all; log an error, raise none."""
    assert saved.commit is not None, "nothing is touched before it is saved"
    try:
        last = await services.journal.last_records(row.id, ["workflow.rewound"], limit=1)
        if not any(isinstance(each.event, WorkflowRewound) and each.event.saved == saved.id for each in last):
            await restore(Path(row.worktree), saved.commit)
    except Exception:  # the first error is reported; the next resume reports the files
        log.exception("the files of %s were not put back as snapshot %s has them", row.slug, saved.id)


async def _bring_back(services: RuntimeServices, row: WorkflowRow, target: Target, saved: Checkpoint) -> TakenBack:
    """Restore the target's files, and return the event of the rewind with all that it undoes; nothing is journalled
    yet."""
    worktree, state = Path(row.worktree), await services.journal.state(row.id)
    assert saved.commit is not None, "nothing is touched before it is saved"
    try:
        left_alone = await restore(worktree, target.commit)
    except WorkspaceError as error:
        hint = f"What was there before is snapshot {saved.id}. {error.hint}".strip()
        raise WorkspaceError(error.message, hint=hint) from error
    crash_point("rewind.restored")
    files = await between(worktree, target.commit, saved.commit)
    event = WorkflowRewound(
        checkpoint_id=target.checkpoint.id,
        after=target.checkpoint.after,
        saved=saved.id,
        tasks=target.tasks,
        undone=(*_plan_undone(state, target), *_tasks_undone(state, target), *files),
        plan=target.plan,
        planning=target.planning,
    )
    return TakenBack(event, left_alone)


def _plan_undone(state: WorkflowState, target: Target) -> list[str]:
    """Return a sentence for each task that the rewind removes from the plan or puts back, and one for a proposed plan
    that it withdraws."""
    now, then = (plan.tasks if plan else () for plan in (state.plan, target.plan))
    ids_now, ids_then = {task.id for task in now}, {task.id for task in then}
    proposed, before = (each.proposed if each else None for each in (state.planning, target.planning))
    withdrawn = proposed is not None and proposed != before
    return [
        *(f"Task {task.title!r} came into the plan." for task in now if task.id not in ids_then),
        *(f"Task {task.title!r} left the plan." for task in then if task.id not in ids_now),
        *(["A plan was proposed, which waited for approval; it is withdrawn."] if withdrawn else []),
    ]


def _tasks_undone(state: WorkflowState, target: Target) -> list[str]:
    """Return a sentence for each task that the rewind gives another status."""
    then = target.tasks
    return [
        f"Task {mark.title!r} became {mark.status.replace('_', ' ')}."
        for mark in state.marks
        if mark.id in then and mark.status is not then[mark.id]
    ]


def _reason(target: Target) -> str:
    """Build the reason of the checkpoint that is saved before a rewind."""
    return f"{BEFORE}{target.checkpoint.id}"


def unfinished(state: WorkflowState, standing: Checkpoint) -> tuple[str, ...]:
    """Return a sentence if the last checkpoint was saved for a rewind that was never written; else an empty tuple."""
    if not standing.reason.startswith(BEFORE) or any(rewind.at > standing.after for rewind in state.rewinds):
        return ()
    target = standing.reason.removeprefix(BEFORE)
    told = f"Going back to snapshot {target} was interrupted; snapshot {standing.id} holds what was there before."
    return (told,)


async def _left_by_a_dead_try(services: RuntimeServices, row: WorkflowRow, target: Target) -> Checkpoint | None:
    """Return the snapshot that an interrupted attempt at this rewind saved, if every file is as in it or as in the
    target; else None."""
    standing = await services.journal.checkpoints.base(row.id, await services.journal.state(row.id))
    if standing is None or standing.reason != _reason(target) or standing.commit is None:
        return None
    on_the_way = await is_on_the_way(Path(row.worktree), standing.commit, target.commit)
    return standing if on_the_way else None


async def _save(services: RuntimeServices, row: WorkflowRow, target: Target) -> Checkpoint:
    """Save the present as a snapshot, as clean as the last checkpoint, and return it; raise WrongState if its files
    cannot be stored."""
    state = await services.journal.state(row.id)
    standing = await services.journal.checkpoints.base(row.id, state)
    workspace = await gather(row.worktree, checkpoint_ref(row.id, state), state.base)
    if workspace.commit is None:
        raise WrongState(f"Nothing was touched, because it could not be undone. {workspace.problem}")
    occasion = Occasion(
        type=CheckpointType.PAUSE,
        trigger=Trigger.PAUSE,
        reason=_reason(target),
        snapshot=True,
        clean_boundary=standing is None or standing.clean_boundary,
    )

    def save(t: Transaction) -> CheckpointId:
        name = t.checkpoints.next_id()
        write_checkpoint(t, t.sessions.current().id, 0, occasion, t.catch_up(state), workspace)
        return name

    name = await services.journal.transact(row.id, save)
    services.unstudied.put_nowait(row.id)
    return await services.journal.checkpoints.get(row.id, name)
