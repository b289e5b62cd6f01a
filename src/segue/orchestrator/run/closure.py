"""Closure of a run: its clean end, written in one transaction, or the settlement of a failure."""

from collections.abc import Mapping
from pathlib import Path

import anyio

from segue.journal import Transaction
from segue.model.crash import crash_point
from segue.model.errors import SegueError
from segue.model.events import RunEnded
from segue.model.ids import new_session_id
from segue.model.plan import TaskStatus
from segue.model.status import Carrying, Purpose, Trigger, Way, WorkflowStatus
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.runtime.queued_runs import queue
from segue.orchestrator.settling.recovery import (
    Settling,
    close_questions,
    give_task_back,
    left_standing,
    settle,
    settling_after,
    withdraw_messages,
    write_checkpoint,
)
from segue.orchestrator.settling.run_ends import End
from segue.resume.failures import POLICIES, failure_of
from segue.resume.planner import ResumePlan
from segue.snapshot.gather import Occasion, Workspace
from segue.state.fold import WorkflowState
from segue.workspace.worktrees import Worktree, discard_worktree


async def commit_end(lease: Lease, end: End, environment: Mapping[str, str]) -> None:
    """Commit the run's end with checkpoint, statuses and any retry; a hand-over also creates and queues the next
    session. The agent's process has exited, so the worktree does not change any more."""
    services = lease.services
    state, workspace = await lease.gather()
    child = new_session_id(services.clock.now())

    def finish(t: Transaction) -> bool:
        trigger, now = t.workflow.pause_trigger, end
        if end.status is WorkflowStatus.IN_PROGRESS and trigger is not None:
            # A pause that was requested since the hand-over was decided takes its place.
            now = End(WorkflowStatus.PAUSED, t.workflow.pause_reason or "", trigger)
        retried = _write_end(t, lease, now, t.catch_up(state), workspace)
        if now.status is WorkflowStatus.IN_PROGRESS:
            # The next session begins with a compiled context, before this one is full.
            t.sessions.create(child, lease.agent, lease.session_id, Carrying.NEEDED)
            queue(services, t, child, ResumePlan(way=Way.CONTEXT, reason=now.reason), Purpose.WORK, environment)
        return retried

    _, _, outcome = end.ending
    # Nothing is waited for after the commit: a run that is torn away meanwhile must still schedule its retry.
    if await lease.write(f"run.{outcome}", finish):
        services.kept_environments[lease.workflow_id] = environment
        services.retry_scheduled.set()
    await left_standing(services, lease.workflow_id, state)


def _write_end(t: Transaction, lease: Lease, end: End, state: WorkflowState, workspace: Workspace) -> bool:
    """Write the end of the run: questions, tasks, checkpoint, statuses, retry; return True if a retry was scheduled."""
    session_id, number = lease.session_id, lease.number
    kind, session_to, outcome = end.ending
    retry = end.retry if t.workflow.pause_trigger is None else None
    close_questions(t, session_id, number)
    if end.status is WorkflowStatus.FAILED:
        for task in t.tasks.all():
            if task.status is TaskStatus.IN_PROGRESS:
                t.tasks.fail(task.id, lease.attempt, session_id, number, end.reason)
    if end.asks is not None:
        t.tasks.interrupt(end.asks.task_id, session_id, number, "somebody has to say what becomes of it")
        t.append(end.asks, session_id=session_id, run=number)
    if end.retry is not None:
        give_task_back(t, session_id, number, end.reason)
    occasion = Occasion(
        type=kind,
        trigger=end.trigger,
        reason=end.reason,
        # A chat is no boundary of the work: the last snapshot still holds.
        snapshot=not end.talked,
        clean_boundary=end.retry is None,
    )
    write_checkpoint(t, session_id, number, occasion, state, workspace)
    if not end.talked:
        lease.move(t, session_to, reason=end.reason)
        if end.status is not WorkflowStatus.IN_PROGRESS:
            _move_workflow(t, end)
    if end.status is WorkflowStatus.COMPLETED:
        withdraw_messages(t)
    if retry is not None:
        t.schedule_retry(retry, session_id, number)
    t.runs.end(session_id, number, RunEnded(outcome=outcome, reason=end.reason))
    return retry is not None


def _move_workflow(t: Transaction, end: End) -> None:
    """Move the workflow to the end's status. A pause requested meanwhile also pauses a workflow that waits for a
    person, except a pause for want of money or context, since waiting costs nothing."""
    wanted = t.workflow
    t.move_workflow(end.status, reason=end.reason, trigger=end.trigger)
    asks = end.status in (WorkflowStatus.BLOCKED, WorkflowStatus.REVIEW)
    if asks and wanted.pause_trigger not in (None, Trigger.EXHAUSTION):
        t.move_workflow(WorkflowStatus.PAUSED, reason=wanted.pause_reason or "", trigger=wanted.pause_trigger)


async def settle_failure(lease: Lease, error: SegueError, *, reached: bool, advised_on: str | None) -> None:
    """Settle a run whose agent failed, by the table of failures; no other agent is started.

    `reached`: the agent had started. `advised_on`: the step that a second agent was being asked about.
    """
    policy, token = POLICIES[failure_of(error)], lease.token
    if token is not None and not policy.keeps_token:
        await lease.transact(lambda t: t.runtimes.refuse_token(lease.session_id, lease.number, token, error.message))
        crash_point("token.refused")
    await settle_run(lease, settling_after(error, reached=reached, advised_on=advised_on))
    if not reached and policy.session is None and lease.workflow.base is None:
        await _discard_worktree(lease)


async def _discard_worktree(lease: Lease) -> None:
    """Remove the new worktree of a first start that failed; do nothing if a retry needs it or it is the user's own
    checkout."""
    journal = lease.services.journal
    row = await journal.workflows.get(lease.workflow_id)
    if row.base is None or row.here or row.retry_at is not None:
        return
    worktree = Worktree(Path(row.worktree), row.branch, row.base)
    if await discard_worktree(Path(row.repository), worktree):
        await journal.transact(lease.workflow_id, lambda t: t.worktree_discarded(row.worktree, row.branch))


async def settle_run(lease: Lease, settling: Settling) -> None:
    """Settle the interrupted run as `settling` describes, even while this task is being cancelled."""
    with anyio.CancelScope(shield=True):
        await settle(lease.services, lease.session_id, lease.number, settling)
