"""Fork of a workflow: a new one that goes on from a checkpoint in its own worktree; the original does not change.

The new workflow is written first, then its files are made. A server that dies in between leaves a pending workflow that
knows the source of its files, and `segue resume` makes them before anything else.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from segue.drivers.environment import allowed
from segue.journal import NewWorkflowRow, Transaction
from segue.journal.rows import SessionRow, WorkflowRow
from segue.model.agents import Choices
from segue.model.checkpoint import Checkpoint, CheckpointType
from segue.model.codec import decode
from segue.model.crash import crash_point
from segue.model.errors import CheckpointNotFound
from segue.model.events import Origin
from segue.model.ids import WorkflowId, new_session_id, new_workflow_id
from segue.model.plan import TaskStatus
from segue.model.requests import ForkRequest
from segue.model.status import Carrying, SessionStatus, Trigger, WorkflowStatus
from segue.model.views import Forked
from segue.orchestrator.requests.rewinds import Target, target
from segue.orchestrator.requests.secrets import refuse_secrets
from segue.orchestrator.runtime.agents import agent_named, choices_for, require
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.runtime.views import view_of
from segue.orchestrator.settling.recovery import checkpoint_ref, write_checkpoint
from segue.snapshot.gather import Occasion, gather
from segue.state.fold import WorkflowState
from segue.workspace.checkpoints import restore
from segue.workspace.worktrees import ensure_worktree, run_setup

FreeSlug = Callable[[str, Path], Awaitable[str]]
LONGEST_NAME = 43
"""Highest number of characters of the original's name that the fork's name begins with."""


async def fork(services: RuntimeServices, session_id: str, request: ForkRequest, free_slug: FreeSlug) -> Forked:
    """Create a workflow at the named snapshot, else the session's last one, with its files in a new worktree; leave it
    paused, with no agent started."""
    session = await services.journal.sessions.get(session_id)
    row = await services.journal.workflows.get(session.workflow_id)
    at = await target(services, row, request.snapshot or await _last_of(services, row, session))
    agent = agent_named(services, row.agent if request.agent is None else request.agent)
    if request.to_start:
        require(agent, request.environment)
    choices = choices_for(request, row) or decode(Choices, row.choices)
    refuse_secrets(choices)
    slug = await free_slug(request.title or f"{row.slug[:LONGEST_NAME]} fork", Path(row.repository))
    state, now = await services.journal.state(row.id), services.clock.now()
    assert state.issue is not None, "every journal begins with its workflow's issue"
    new = NewWorkflowRow(
        id=new_workflow_id(now),
        slug=slug,
        issue=state.issue,
        plan=at.plan,
        agent=agent.name,
        permissions=row.permissions,
        repository=row.repository,
        here=False,
        worktree=str(services.home / "worktrees" / slug),
        branch=f"segue/{slug}",
        choices=choices,
        title=request.title,
        forked_from=_origin(row.id, at),
    )
    child = new_session_id(now)
    parent = at.checkpoint.session_id

    def begin(t: Transaction) -> None:
        t.sessions.create(child, agent.name, parent, Carrying.NEEDED)

    await services.journal.create(new, begin)
    crash_point("fork.created")
    await prepare(services, await services.journal.workflows.get(new.id), request.environment)
    view = view_of(*await services.journal.present(new.id))
    return Forked(workflow=view, parent=parent, checkpoint_id=at.checkpoint.id, left_out=at.checkpoint.left_out)


async def _last_of(services: RuntimeServices, row: WorkflowRow, session: SessionRow) -> str:
    """Return the id of the workflow's last snapshot, or, for a session that another followed, of that session's newest
    one; raise CheckpointNotFound if there is none."""
    if session.number == row.session_count:
        found = (await services.journal.state(row.id)).last_snapshot
    else:
        snapshots = await services.journal.checkpoints.snapshots(row.id)
        found = next((each.id for each in snapshots if each.session_id == session.id), None)
    if found is None:
        raise CheckpointNotFound(f"Session {session.number} has no snapshot to go on from.", hint="Pause it first.")
    return found


def _origin(workflow_id: WorkflowId, at: Target) -> Origin:
    """Build the record of the workflow and the checkpoint that a fork comes from."""
    checkpoint = at.checkpoint
    return Origin(
        workflow_id=workflow_id,
        session_id=checkpoint.session_id,
        checkpoint_id=checkpoint.id,
        after=checkpoint.after,
        tasks=at.tasks,
        planning=at.planning,
    )


async def prepare(services: RuntimeServices, row: WorkflowRow, environment: Mapping[str, str]) -> None:
    """Make the worktree of a fork with the checkpoint's files, and pause the workflow with a snapshot, unless it is no
    longer pending."""
    state = await services.journal.state(row.id)
    origin = state.forked_from
    assert origin is not None and state.current_session is not None, "a fork is created with both"
    checkpoint = await services.journal.checkpoints.get(origin.workflow_id, origin.checkpoint_id)
    assert checkpoint.git is not None and checkpoint.commit is not None, "a fork begins where there are files"
    session_id, path = state.current_session, Path(row.worktree)
    await ensure_worktree(Path(row.repository), path, row.branch, checkpoint.git.head)
    await _fill(services, row, checkpoint.commit, environment)
    crash_point("fork.filled")
    base = checkpoint.git.base or checkpoint.git.head
    workspace = await gather(row.worktree, checkpoint_ref(row.id, state), base)
    reason = f"forked from {(await services.journal.workflows.get(origin.workflow_id)).slug} at {origin.checkpoint_id}"
    occasion = Occasion(
        type=CheckpointType.PAUSE,
        trigger=Trigger.PAUSE,
        reason=reason,
        snapshot=True,
        clean_boundary=checkpoint.clean_boundary,
    )

    def pause(t: Transaction) -> None:
        if t.workflow.status is not WorkflowStatus.PENDING:
            return
        t.worktree_ready(row.worktree, row.branch, base)
        t.sessions.move(session_id, SessionStatus.SUSPENDED, reason=reason)
        write_checkpoint(t, session_id, 0, occasion, _as_it_stood(t.catch_up(state), checkpoint), workspace)
        t.move_workflow(WorkflowStatus.PAUSED, reason=reason, trigger=Trigger.PAUSE)

    await services.journal.transact(row.id, pause)
    services.unstudied.put_nowait(row.id)


async def _fill(services: RuntimeServices, row: WorkflowRow, commit: str, environment: Mapping[str, str]) -> None:
    """Restore the checkpoint's files in the worktree; if there is a setup command, run it and restore them again."""
    path, rules = Path(row.worktree), services.rules
    await restore(path, commit)
    if (setup := rules.setup_for(decode(Choices, row.choices))) is not None:
        agent = agent_named(services, row.agent)
        await run_setup(setup, path, allowed(environment, agent.environment), rules.setup_watchdog)
        await restore(path, commit)


def _as_it_stood(state: WorkflowState, checkpoint: Checkpoint) -> WorkflowState:
    """Return the state with the checkpoint's open calls and its current task in progress; unchanged if the checkpoint
    is clean."""
    session_id, task = state.current_session, checkpoint.current_task
    if checkpoint.clean_boundary or session_id is None:
        return state
    calls = {call.call_id: call for call in checkpoint.open_calls}
    tasks = {**state.tasks, task: TaskStatus.IN_PROGRESS} if task in state.tasks else state.tasks
    session = replace(state.sessions[session_id], calls=calls)
    return replace(state, tasks=tasks, sessions={**state.sessions, session_id: session})
