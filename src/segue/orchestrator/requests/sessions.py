"""Views of sessions: data, life of the agent's process, and the way in which the session would be resumed."""

from datetime import timedelta
from typing import Literal

from segue.journal.rows import RuntimeRow, SessionRow, WorkflowRow
from segue.model.status import RuntimeStatus, SessionStatus
from segue.model.views import RuntimeView, SessionDetail, SessionStanding, WayBack
from segue.orchestrator.requests.launches import means_of
from segue.orchestrator.runtime.agents import agent_named
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.runtime.views import failure_view
from segue.protocol.accounts import session_account
from segue.resume.planner import plan_resume
from segue.state.fold import WorkflowState
from segue.state.moves import WORKFLOW_ENDED
from segue.workspace.processes import identity

RECENTLY = timedelta(seconds=30)
"""Longest time since a process was last seen for it to count as seen recently."""
ACTIVE = frozenset({SessionStatus.WAITING_FOR_INPUT, SessionStatus.STARTING, SessionStatus.RUNNING})
BACK = ACTIVE | {SessionStatus.SUSPENDED}


async def detail(services: RuntimeServices, session_id: str) -> SessionDetail:
    """Return the details of one session; raise SessionNotFound if there is none."""
    row = await services.journal.sessions.get(session_id)
    workflow = await services.journal.workflows.get(row.workflow_id)
    state = await services.journal.state(row.workflow_id)
    return await _detail(services, workflow, state, row)


async def details(services: RuntimeServices, workflow: WorkflowRow) -> list[SessionDetail]:
    """Return the details of all sessions of a workflow, the first one first."""
    state = await services.journal.state(workflow.id)
    rows = await services.journal.sessions.of(workflow.id)
    return [await _detail(services, workflow, state, row) for row in rows]


async def _detail(
    services: RuntimeServices, workflow: WorkflowRow, state: WorkflowState, row: SessionRow
) -> SessionDetail:
    """Build the details of a session from its rows and state, with the way in which it would be resumed."""
    session = state.sessions[row.id]
    runtime = await services.journal.sessions.runtime(row.id)
    return SessionDetail(
        id=row.id,
        workflow_id=row.workflow_id,
        number=max(row.number, 0),
        role=row.role,
        agent=row.agent,
        status=row.status,
        waiting_for=row.waiting_for,
        reason=row.reason,
        parent=row.parent,
        children=tuple(each for each, other in state.sessions.items() if other.parent == row.id),
        runs=row.run_count,
        started_at=row.created_at,
        token=runtime.token,
        refused_tokens=session.refused_tokens,
        capabilities=session.capabilities,
        carrying=row.carrying,
        compactions=session.compactions,
        context_tokens_new=session.context_tokens_new,
        usage=session.usage,
        spent=session_account(row.id, session).account,
        failure=failure_view(session),
        runtime=_runtime(runtime),
        way_back=await _way_back(services, workflow, state, row),
    )


async def _way_back(
    services: RuntimeServices, workflow: WorkflowRow, state: WorkflowState, row: SessionRow
) -> WayBack | None:
    """Return how the session would be resumed; None if its agent is not configured, its workflow has ended or it is
    not the current one."""
    gone = row.agent not in services.agents
    if gone or workflow.status in WORKFLOW_ENDED or row.number != workflow.session_count:
        return None
    plan = plan_resume(await means_of(services, state, workflow.id, agent_named(services, row.agent)))
    return WayBack(way=plan.way, reason=plan.reason, prices=plan.prices)


def _runtime(row: RuntimeRow) -> RuntimeView:
    """Build the view of a session's agent process, and whether it is alive."""
    return RuntimeView(
        status=row.status,
        alive=_is_alive(row),
        pid=row.pid,
        execution=row.execution,
        generation=row.generation,
        last_seen_at=row.last_seen_at,
        dropped_events=row.dropped_events,
    )


def _is_alive(row: RuntimeRow) -> bool:
    """Return True if the stored process is live and still the same, by its start time and boot; else False."""
    found = identity(row.pid) if row.pid is not None and row.status is RuntimeStatus.LIVE else None
    return found is not None and (str(found.started), found.boot) == (row.pid_started, row.machine_boot)


async def standing(services: RuntimeServices, session_id: str) -> SessionStanding:
    """Return whether the session's agent runs, must be started again, and can be. After a failure `needs_resume` is
    False: a person decides."""
    row = await services.journal.sessions.get(session_id)
    workflow = await services.journal.workflows.get(row.workflow_id)
    state = await services.journal.state(row.workflow_id)
    runtime = await services.journal.sessions.runtime(row.id)
    current = row.number == workflow.session_count and workflow.status not in WORKFLOW_ENDED
    running = current and workflow.id in services.live
    seen = runtime.last_seen_at is not None and services.clock.now() - runtime.last_seen_at < RECENTLY
    stale = seen and _is_alive(runtime)
    resumable = current and not running and not stale and row.status in BACK
    failure = state.sessions[row.id].failure
    return SessionStanding(
        session_id=row.id,
        state=row.status,
        is_agent_running=running,
        needs_resume=resumable and failure is None,
        is_resumable=resumable,
        resume_reason=_reason(runtime) if resumable else "",
        worktree_path=state.worktree,
        worktree_branch=workflow.branch,
        error=row.reason if failure is not None else "",
    )


def _reason(runtime: RuntimeRow) -> Literal["agent_not_running", "agent_not_running_fresh_start"]:
    """Return why the agent does not answer, and whether it would start without its conversation."""
    return "agent_not_running" if runtime.token is not None else "agent_not_running_fresh_start"
