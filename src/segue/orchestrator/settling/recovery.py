"""Crash recovery: bring an interrupted run to rest, and start nothing."""

import logging
from dataclasses import dataclass, replace
from datetime import datetime

from segue.journal import Transaction
from segue.journal.rows import (
    RunRow,
    SessionRow,
)
from segue.model.checkpoint import CheckpointType
from segue.model.crash import crash_point
from segue.model.errors import QuotaExceeded, SegueError
from segue.model.events import IncidentLogged, PermissionAnswered, RunEnded, RunOutcome
from segue.model.ids import RequestId, SessionId, WorkflowId
from segue.model.plan import TaskStatus
from segue.model.status import (
    Failure,
    PromptStatus,
    Purpose,
    RunStatus,
    SessionStatus,
    Trigger,
    WaitingFor,
    WorkflowStatus,
)
from segue.orchestrator.runtime import containers
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling import retry_schedule
from segue.resume.failures import POLICIES, failure_of
from segue.snapshot.gather import Occasion, Place, Workspace, gather, make_checkpoint
from segue.state.fold import FailedAttempt, WorkflowState
from segue.state.moves import WORKFLOW_ENDED
from segue.workspace.processes import end_marked

log = logging.getLogger("segue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """Plan for bringing an interrupted run to rest."""

    stop: Stop
    outcome: RunOutcome = "crashed"
    incident: bool = True
    checkpoint: bool = True
    session_to: SessionStatus = SessionStatus.SUSPENDED
    """Status of a session that was interrupted in a turn or a start."""
    back_to_before: bool = False
    """A failed start returns to the state before it; a first start goes to `session_to`."""
    ends_session: bool = False
    """Also a session that was idle goes there."""
    workflow_to: WorkflowStatus = WorkflowStatus.PAUSED
    failure: Failure | None = None
    reached: bool = True
    """The agent had started."""
    advised_on: str | None = None
    """The step that a second agent was being asked about, before the agent was to come up."""
    reset_at: datetime | None = None
    leaves_container: bool = False
    """An agent in a container goes on meanwhile, and can be joined again."""


CRASHED = Settling(
    stop=Stop(trigger=Trigger.CRASH, reason="the server was stopped in the middle of the work"), leaves_container=True
)


def settling_for(stop: Stop) -> Settling:
    """Choose how a stopped run is settled: as cancelled, as paused, or, after a crash, as an incident."""
    if stop.trigger is Trigger.CANCEL:
        return Settling(
            stop=stop, outcome="cancelled", incident=False, session_to=SessionStatus.CANCELLED, ends_session=True
        )
    if stop.trigger is not Trigger.CRASH:
        return Settling(stop=stop, outcome="paused", incident=False)
    return Settling(stop=stop)


def settling_after(error: SegueError, *, reached: bool, advised_on: str | None = None) -> Settling:
    """Choose how a failed run is settled, by the table of failures. `reached`: the agent had started. `advised_on`:
    the step that a second agent was being asked about."""
    failure = failure_of(error)
    policy = POLICIES[failure]
    stop = Stop(trigger=Trigger.CRASH, reason=error.message)
    reset_at = error.reset_at if isinstance(error, QuotaExceeded) else None
    if policy.session is not None:
        return Settling(
            stop=stop,
            outcome="failed",
            checkpoint=reached,
            session_to=policy.session,
            ends_session=policy.session is SessionStatus.FAILED,
            workflow_to=policy.workflow,
            failure=failure,
            reached=reached,
            advised_on=advised_on,
            reset_at=reset_at,
        )
    if reached:
        return Settling(stop=stop, failure=failure)
    return Settling(
        stop=stop,
        outcome="failed",
        checkpoint=False,
        session_to=SessionStatus.FAILED,
        back_to_before=True,
        workflow_to=WorkflowStatus.FAILED,
        failure=failure,
        reached=reached,
    )


async def settle(services: RuntimeServices, session_id: SessionId, number: int, settling: Settling) -> bool:
    """End a run's processes and write the end as `settling` describes it; False if it has ended already. Calling it
    twice does no harm."""
    run = await services.journal.runs.get(session_id, number)
    if run.status is RunStatus.ENDED:
        return False
    workflow_id = run.workflow_id
    if run.attempt is not None:
        # Its guardian ends it too; this is for the case that both were killed.
        await end_marked(run.attempt)
        await (containers.end_helpers if settling.leaves_container else containers.end_all)(services, workflow_id)
    state = await services.journal.state(workflow_id)
    workspace = Workspace(problem="The agent was not started.")
    if run.status is RunStatus.ACTIVE and settling.checkpoint:
        workspace = await gather(state.worktree, checkpoint_ref(workflow_id, state), state.base)
    crash_point("settle.before_write")
    retry = await services.journal.transact(
        workflow_id, lambda t: _settle(services, t, run, settling, state, workspace)
    )
    crash_point("settle.written")
    environment = services.environments.pop((session_id, number), None)
    if retry and environment is not None:
        services.kept_environments[workflow_id] = environment
    if retry:
        services.retry_scheduled.set()
    await left_standing(services, workflow_id, state)
    return True


async def left_standing(services: RuntimeServices, workflow_id: WorkflowId, before: WorkflowState) -> None:
    """Request the study of the workflow's snapshot, and log the pause if the run has paused it."""
    services.unstudied.put_nowait(workflow_id)
    after = await services.journal.state(workflow_id)
    if after.status is WorkflowStatus.PAUSED and before.status is not WorkflowStatus.PAUSED:
        message = "[segue] Workflow paused (workflow=%s, reason=%r, snapshot=%s)"
        log.info(message, workflow_id, after.reason, after.last_snapshot)


def checkpoint_ref(workflow_id: WorkflowId, state: WorkflowState) -> str:
    """Name the checkpoint's ref by the last event it can contain, so that a second try writes the same ref."""
    return f"refs/segue/checkpoints/{workflow_id}/{state.seq:08d}"


def _settle(
    services: RuntimeServices,
    t: Transaction,
    run: RunRow,
    settling: Settling,
    state: WorkflowState,
    workspace: Workspace,
) -> bool:
    """Write everything that ends the run; return True if a retry was scheduled, False also if the run is not open
    any more."""
    found = t.runs.open()
    if found is None or (found.session_id, found.number) != (run.session_id, run.number):
        return False
    run, state = found, t.catch_up(state)
    if t.workflow.status is WorkflowStatus.CANCELLED:
        # Cancelled, and cut off before it was carried out.
        settling = settling_for(Stop(trigger=Trigger.CANCEL, reason=settling.stop.reason))
    failed = _failed(services, t, run, settling, state)
    retry = retry_schedule.what_follows(services, t.workflow, state, failed) if failed else None
    if retry is not None and settling.workflow_to is WorkflowStatus.FAILED:
        settling = replace(settling, workflow_to=WorkflowStatus.PAUSED)
    if retry is None and failed is not None and failed.step == retry_schedule.RESTART:
        settling = replace(settling, stop=replace(settling.stop, reason=retry_schedule.TOO_OFTEN))
    session = t.sessions.current()
    started = run.status is RunStatus.ACTIVE
    mid_turn = is_mid_turn(session)
    close_questions(t, session.id, run.number)
    _return_prompts(t, session.id, run.number)
    if t.workflow.status in WORKFLOW_ENDED:
        withdraw_messages(t)
    for helper in t.sessions.open_helpers():
        t.end_helper(helper.id, SessionStatus.TERMINATED, settling.stop.reason)
    interrupted = give_task_back(t, session.id, run.number, settling.stop.reason)
    if started and settling.checkpoint:
        occasion = Occasion(
            type=CheckpointType.INTERRUPTED,
            trigger=settling.stop.trigger,
            reason=settling.stop.reason,
            # A chat that is interrupted does not change where the work stands.
            snapshot=_at_work(t, run) or mid_turn,
            clean_boundary=not mid_turn and not interrupted,
        )
        write_checkpoint(t, session.id, run.number, occasion, state, workspace)
    _settle_session(t, session, run, settling, mid_turn)
    _settle_workflow(t, session, settling)
    if settling.incident:
        incident = IncidentLogged(what=f"run {run.number} was interrupted", detail=settling.stop.reason)
        t.append(incident, session_id=session.id, run=run.number)
    if failed is not None:
        retry_schedule.append_failure(t, session.id, run.number, failed, retry)
    outcome = settling.outcome if started else "not_started"
    ended = RunEnded(outcome=outcome, reason=settling.stop.reason, failure=settling.failure, reset_at=settling.reset_at)
    t.runs.end(session.id, run.number, ended)
    return retry is not None


def _at_work(t: Transaction, run: RunRow) -> bool:
    """Return True if the run worked on the plan, or had just completed it."""
    leaves = run.purpose is Purpose.LEAVING and t.workflow.status is WorkflowStatus.IN_PROGRESS
    return run.purpose is Purpose.WORK or leaves


def _failed(
    services: RuntimeServices, t: Transaction, run: RunRow, settling: Settling, state: WorkflowState
) -> FailedAttempt | None:
    """Return the failed attempt that counts for retries; None after a chat, and for an interruption that is not
    continued by itself."""
    if not _at_work(t, run):
        return None
    if settling.failure is None:
        return retry_schedule.cut_short(services, t.workflow, run, t.now)
    step = settling.advised_on or retry_schedule.step_of(state, reached=settling.reached)
    advised = state.advice is not None and state.advice.step == step
    return FailedAttempt(
        step=step,
        what=settling.failure,
        reason=settling.stop.reason,
        at=t.now,
        reset_at=settling.reset_at,
        after_fixer=advised,
    )


def _settle_workflow(t: Transaction, session: SessionRow, settling: Settling) -> None:
    """Move an in-progress workflow to the settlement's status, or to paused if only a resume failed; a paused one
    moves only to review."""
    before, after = t.workflow.status, settling.workflow_to
    if settling.back_to_before and (_was_resuming(session) or session.run_count > 1 or session.parent is not None):
        # A failed start on the way back is no failure of the work.
        after = WorkflowStatus.PAUSED
    # A chat does not move the workflow, unless its conversation is lost.
    needs_review = before is WorkflowStatus.PAUSED and after is WorkflowStatus.REVIEW
    if before is WorkflowStatus.IN_PROGRESS or needs_review:
        t.move_workflow(after, reason=settling.stop.reason, trigger=settling.stop.trigger)


def _settle_session(t: Transaction, session: SessionRow, run: RunRow, settling: Settling, mid_turn: bool) -> None:
    """Move the session if it was in a turn, starting or is to end; a failed resume returns it to its status before.
    Else do nothing."""
    interrupted = mid_turn or session.status is SessionStatus.STARTING
    never_came_up = settling.back_to_before and session.status is SessionStatus.CREATED
    if not (interrupted or never_came_up or settling.ends_session):
        return
    after = settling.session_to
    if settling.back_to_before and _was_resuming(session):
        after = SessionStatus(session.started_from)
    if after is session.status:
        return
    waiting_for = WaitingFor.PROMPT if after is SessionStatus.WAITING_FOR_INPUT else None
    t.sessions.move(session.id, after, run=run.number, reason=settling.stop.reason, waiting_for=waiting_for)


def _was_resuming(session: SessionRow) -> bool:
    """Return True if the session is starting again, not for the first time."""
    return session.status is SessionStatus.STARTING and session.started_from not in (None, SessionStatus.CREATED)


def is_mid_turn(session: SessionRow) -> bool:
    """Return True if the session is in a turn, which includes an open permission request."""
    asking = session.status is SessionStatus.WAITING_FOR_INPUT and session.waiting_for is WaitingFor.PERMISSION
    return asking or session.status is SessionStatus.RUNNING


def close_questions(t: Transaction, session_id: SessionId, run: int) -> frozenset[RequestId]:
    """Close the open permission requests, whose process or turn is over, and return them."""
    closed = frozenset(question.id for question in t.questions.open())
    for request_id in closed:
        t.questions.answer(
            PermissionAnswered(request_id=request_id, outcome="interrupted", by="segue"), session_id, run
        )
    return closed


def _return_prompts(t: Transaction, session_id: SessionId, run: int) -> None:
    """Queue the run's unsent messages again, and mark its other unsent prompts as not sent; sent ones stay as they
    are."""
    for prompt in t.prompts.open(session_id, run):
        if prompt.status is not PromptStatus.QUEUED:
            continue
        if prompt.task_id is None:
            t.prompts.give_back(prompt)
        else:
            t.prompts.move(prompt.id, PromptStatus.NOT_SENT, session_id, run)


def withdraw_messages(t: Transaction) -> None:
    """Mark all waiting messages as not sent, since there will be no agent for them."""
    for message in t.prompts.waiting():
        t.prompts.move(message.id, PromptStatus.NOT_SENT, message.session_id, None)


def give_task_back(t: Transaction, session_id: SessionId, run: int, reason: str) -> bool:
    """Make the task in progress pending again; return True if there was one."""
    for task in t.tasks.all():
        if task.status is TaskStatus.IN_PROGRESS:
            t.tasks.interrupt(task.id, session_id, run, reason)
            return True
    return False


def write_checkpoint(
    t: Transaction, session_id: SessionId, run: int, occasion: Occasion, state: WorkflowState, workspace: Workspace
) -> None:
    """Write a checkpoint of this state and workspace, placed after the journal's last event."""
    place = Place(
        id=t.checkpoints.next_id(occasion.type),
        workflow_id=t.workflow_id,
        session_id=session_id,
        at=t.now,
        after=t.head,
        session_began=t.sessions.get(session_id).created_at,
    )
    statuses = t.tasks.statuses()
    t.checkpoints.save(make_checkpoint(place, occasion, state, statuses, workspace), run)
