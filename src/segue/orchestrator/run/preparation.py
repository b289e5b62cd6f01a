"""Preparation of a run: its worktree, and what the first prompt needs."""

from collections.abc import Mapping
from pathlib import Path

from segue.model.agents import Choices
from segue.model.checkpoint import CheckpointType, GitState
from segue.model.codec import decode
from segue.model.events import Warned
from segue.model.status import Trigger, Way
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.recorder import Recorder
from segue.orchestrator.runtime.services import DIVERGED
from segue.orchestrator.runtime.worktree_recovery import made_again
from segue.orchestrator.settling.recovery import write_checkpoint
from segue.resume.prompts import Occasion as PromptOccasion
from segue.snapshot.gather import Occasion
from segue.state.fold import WorkflowState
from segue.workspace.git import read_state
from segue.workspace.worktrees import Worktree, require_worktree, run_setup

START = Occasion(
    type=CheckpointType.START, trigger=Trigger.PAUSE, reason="nothing is done yet", snapshot=False, clean_boundary=True
)


async def prepare_worktree(lease: Lease, recorder: Recorder, environment: Mapping[str, str]) -> GitState:
    """Make the worktree where it is missing, run the user's setup command in a new one, journal its base at the
    first run, and return its git state."""
    row, path = lease.workflow, Path(lease.workflow.worktree)
    if lease.has_worktree:
        # One look is enough where the worktree is as the run before left it.
        git = await read_state(path, row.base)
        if row.here or git.branch == row.branch:
            return git
    if row.base is not None:
        await require_worktree(Path(row.repository), path, row.branch, here=row.here)
    if row.here:
        worktree = Worktree(path, row.branch, (await read_state(path, None)).head)
    else:
        worktree, gone = await made_again(lease.services, row)
        if gone is not None:
            await recorder.record(gone)
        setup = lease.services.rules.setup_for(decode(Choices, row.choices))
        if setup is not None and (worktree.made or row.base is None):
            await run_setup(setup, path, environment, lease.services.rules.setup_watchdog, execution=lease.attempt)
    if row.base is None:
        await lease.write("worktree.ready", lambda t: t.worktree_ready(str(path), row.branch, worktree.commit))
    return await read_state(path, row.base)


async def collect_occasion(lease: Lease, state: WorkflowState, way: Way, git: GitState) -> PromptOccasion:
    """Collect what the first prompt needs, without writing: the way, the last snapshot, git, changes since, rewinds
    and forks."""
    journal, origin = lease.services.journal, state.forked_from
    # Changes of the worktree were journalled as warnings, together with the request for this run.
    warnings = await journal.last_records(lease.workflow_id, ["warning"], limit=50)
    mine = [
        each.event for each in reversed(warnings) if (each.session_id, each.run) == (lease.session_id, lease.number)
    ]
    return PromptOccasion(
        way=way,
        checkpoint=await journal.checkpoints.base(lease.workflow_id, state),
        git=git,
        divergence=tuple(each.message for each in mine if isinstance(each, Warned) and each.code == DIVERGED),
        taken_back=state.rewound_by,
        directory=lease.workflow.worktree,
        copied_from=(await journal.state(origin.workflow_id)).worktree if origin else None,
        knows_issue=state.sessions[lease.session_id].was_given_a_task,
    )


async def save_start(lease: Lease, before: WorkflowState) -> None:
    """Write a checkpoint with the files before the first prompt, so that the first task can be undone; do nothing if
    the workflow has a checkpoint."""
    if before.last_snapshot is not None or await lease.services.journal.checkpoints.exist(lease.workflow_id):
        return
    state, workspace = await lease.gather()
    await lease.write(
        "start.kept",
        lambda t: write_checkpoint(t, lease.session_id, lease.number, START, t.catch_up(state), workspace),
    )
