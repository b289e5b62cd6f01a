"""The routes under /api: each parses a request, calls the service once, and answers."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Depends, Query, Request, Response

from segue import __version__
from segue.model.accounts import WorkflowAccount
from segue.model.bounds import MOST
from segue.model.errors import BadInput, SessionNotFound, WrongState
from segue.model.requests import (
    ApproveRequest,
    CancelRequest,
    ForkRequest,
    OpenRequest,
    PathInput,
    PauseRequest,
    PromptRequest,
    RejectRequest,
    ResumeRequest,
    RunRequest,
)
from segue.model.status import WorkflowStatus
from segue.model.views import (
    Action,
    AgentCheck,
    Answered,
    CompiledContext,
    EventPage,
    Forked,
    PlanView,
    Prompted,
    Resumed,
    SessionDetail,
    SessionFiles,
    SessionStanding,
    Verification,
    WorkflowView,
    WorkspaceRestored,
)
from segue.model.work_settings import NOTHING_SAID, WorkSettings
from segue.server.documents import (
    AgentList,
    AgentsRequest,
    LimitsRequest,
    Sent,
    SentByCaller,
    ServerStatus,
    SessionList,
    ShutdownAnswer,
    ShutdownRequest,
    WorkflowList,
    own_variables,
)
from segue.server.interface import WorkflowService
from segue.server.shutdown import Shutdown
from segue.server.work_choices import choices_for
from segue.settings import Settings

MOST_SHOWN = 20
LONGEST_WAIT = 60.0
LEAST_BUDGET = 100
"""Least tokens that hold any content."""
SHORT_SESSION = re.compile(r"session-[a-z0-9]+")

api = APIRouter(prefix="/api")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Values that routes use beside the request."""

    service: WorkflowService
    home: Path
    started_at: datetime
    settings: Settings
    spoken: WorkSettings = NOTHING_SAID
    """Work settings from the server's own environment variables."""
    stopping: Shutdown
    stop: Callable[[], None]


def _context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


def _service(request: Request) -> WorkflowService:
    """Return the service of this server."""
    return _context(request).service


InContext = Annotated[Context, Depends(_context)]
WithService = Annotated[WorkflowService, Depends(_service)]


async def _session(session_id: str, service: WithService) -> str:
    """Return the whole id of a session, given in full or in short: `session-abc123`; raise if none or several match
    the short form."""
    if not SHORT_SESSION.fullmatch(session_id):
        return session_id
    ending = session_id.removeprefix("session")
    views = await service.workflows(None, [])
    found = [each.id for view in views for each in await service.sessions(view.id) if each.id.endswith(ending)]
    if not found:
        raise SessionNotFound(f"No session has the id {session_id}.", hint="`segue sessions list` lists them.")
    if len(found) > 1:
        raise BadInput(f"Several sessions match {session_id}: {', '.join(found)}.", hint="Give the whole id.")
    return found[0]


SessionName = Annotated[str, Depends(_session)]


@api.get("/status")
async def status(context: InContext) -> ServerStatus:
    """Return the server's identity, and the workflows that are or recently were active."""
    return ServerStatus(
        version=__version__,
        pid=os.getpid(),
        boot=context.service.boot,
        home=str(context.home),
        started_at=context.started_at,
        workflows=await context.service.recent(MOST_SHOWN),
    )


@api.post("/shutdown", status_code=202)
async def shutdown(context: InContext, request: ShutdownRequest | None = None) -> ShutdownAnswer:
    """Stop the server; work in progress is paused first."""
    if request is not None and request.if_idle and context.service.busy:
        raise WrongState("A workflow is running.", hint="`segue status` shows it.")
    context.stop()
    return ShutdownAnswer()


# ── workflows ───────────────────────────────────────────────────────────────────────────────────────


@api.post("/workflows", status_code=201)
async def create(request: SentByCaller[RunRequest], context: InContext) -> WorkflowView:
    """Create a workflow and start it."""
    if not request.issue.title.strip():
        raise BadInput("The issue has no title.", hint="Describe the work in one line.")
    if not request.repository.is_absolute():
        raise BadInput(f"The repository {request.repository} is not an absolute path.")
    agent, choices = await choices_for(request, context.settings, context.spoken)
    return await context.service.create(request, agent, choices)


@api.get("/workflows")
async def workflows(service: WithService, directory: PathInput | None = None, status: str = "") -> WorkflowList:
    """List workflows; `directory` selects those it belongs to, `status` those in one of several (`a,b`)."""
    statuses = [name for name in status.split(",") if name]
    known = {item.value for item in WorkflowStatus}
    if unknown := set(statuses) - known:
        raise BadInput(f"{min(unknown)!r} is not a workflow status.", hint=f"Known: {', '.join(sorted(known))}.")
    return WorkflowList(workflows=await service.workflows(directory, statuses))


@api.get("/workflows/{name}")
async def workflow(name: str, service: WithService) -> WorkflowView:
    """Return a workflow."""
    return await service.workflow(name)


@api.get("/workflows/{name}/plan", response_model=PlanView, responses={200: {"content": {"application/yaml": {}}}})
async def plan(name: str, service: WithService, form: Literal["json", "yaml"] = "json") -> PlanView | Response:
    """Return the plan that waits for approval, else the current one; `form=yaml` can be edited and sent back."""
    view = await service.plan(name)
    return view if form == "json" else Response(view.text, media_type="application/yaml")


@api.post("/workflows/{name}/pause", responses={202: {"model": Action}})
async def pause(
    name: str, response: Response, context: InContext, request: Sent[PauseRequest] | None = None, wait: bool = False
) -> Action:
    """Pause at the end of the current task; with `wait`, answer when the workflow is paused."""
    with context.stopping.interrupts():
        action = await context.service.pause(name, request or PauseRequest(), wait)
        response.status_code = 202 if action.status == "pause_requested" else 200
        return action


@api.post("/workflows/{name}/resume")
async def resume(name: str, request: SentByCaller[ResumeRequest], service: WithService) -> Resumed:
    """Resume where the workflow stopped, or from an earlier snapshot."""
    return await service.resume(name, request)


@api.post("/workflows/{name}/limits")
async def limit(name: str, request: LimitsRequest, service: WithService) -> WorkflowView:
    """Change the limits of a workflow; a field left out stays as it is, and 0 removes a limit."""
    return await service.limit(name, request.limits, request.wait_for_quota)


@api.post("/workflows/{name}/workspace")
async def restore_workspace(name: str, service: WithService) -> WorkspaceRestored:
    """Recreate the worktree if it is gone, and start no agent."""
    return await service.restore_workspace(name)


@api.post("/workflows/{name}/prompt")
async def prompt(name: str, request: SentByCaller[PromptRequest], context: InContext) -> Prompted:
    """Send a message to the workflow's agent, which is started again if it is gone."""
    with context.stopping.interrupts():
        return await context.service.prompt(name, request)


@api.post("/workflows/{name}/approve")
async def approve(name: str, service: WithService, request: SentByCaller[ApproveRequest] | None = None) -> Answered:
    """Approve the oldest open question, or the plan that waits, or another plan in its place."""
    return await service.answer(name, request or ApproveRequest(environment=own_variables()))


@api.post("/workflows/{name}/reject")
async def reject(name: str, service: WithService, request: SentByCaller[RejectRequest] | None = None) -> Answered:
    """Reject the oldest open question; a plan is rejected with a reason, and the agent plans again."""
    return await service.answer(name, request or RejectRequest(environment=own_variables()))


@api.post("/workflows/{name}/cancel")
async def cancel(name: str, service: WithService, request: Sent[CancelRequest] | None = None) -> Action:
    """End the workflow for good."""
    return await service.cancel(name, request or CancelRequest())


# ── journal and context ────────────────────────────────────────────────────────────────────────────


@api.get("/workflows/{name}/events")
async def events(
    name: str,
    context: InContext,
    after: Annotated[int, Query(ge=0, le=MOST)] = 0,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0.0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
) -> EventPage:
    """Return the events after number `after`; with `wait`, answer at the next one, or after that many seconds."""
    with context.stopping.interrupts():
        return await context.service.events(name, after, wait, limit)


@api.get("/workflows/{name}/context")
async def context(
    name: str, service: WithService, budget: Annotated[int | None, Query(ge=LEAST_BUDGET, le=MOST)] = None
) -> CompiledContext:
    """Compile the context that a successor would read now, and grade it in the exam."""
    return await service.context(name, budget)


@api.get("/workflows/{name}/verify")
async def verify(name: str, service: WithService) -> Verification:
    """Verify the hash chain of the workflow's journal."""
    return await service.verify(name)


# ── sessions ────────────────────────────────────────────────────────────────────────────────────────


@api.get("/workflows/{name}/sessions")
async def sessions(name: str, service: WithService) -> SessionList:
    """List the sessions of a workflow, the first one first."""
    return SessionList(sessions=await service.sessions(name))


@api.get("/workflows/{name}/usage")
async def usage(name: str, service: WithService) -> WorkflowAccount:
    """Return tokens and cost of a workflow, by session and by model, each cost with its source."""
    return await service.usage(name)


@api.get("/sessions/{session_id}")
async def session(session_id: SessionName, service: WithService) -> SessionDetail:
    """Return a session: its process, its token, and the ways to resume it with their prices."""
    return await service.session(session_id)


@api.get("/sessions/{session_id}/status")
async def session_status(session_id: SessionName, service: WithService) -> SessionStanding:
    """Return whether the session's agent must be started again, and whether that is possible."""
    return await service.session_standing(session_id)


@api.post("/sessions/{session_id}/files")
async def session_files(session_id: SessionName, service: WithService) -> SessionFiles:
    """Rebuild the session's files from the journal, and report whether the existing ones were correct."""
    return await service.session_files(session_id)


@api.post("/sessions/{session_id}/resume")
async def open_session(
    session_id: SessionName, service: WithService, request: SentByCaller[OpenRequest] | None = None
) -> Resumed:
    """Start the session's agent again, without a prompt."""
    return await service.open_session(session_id, request or OpenRequest(environment=own_variables()))


@api.post("/sessions/{session_id}/prompt")
async def prompt_session(session_id: SessionName, request: SentByCaller[PromptRequest], context: InContext) -> Prompted:
    """Send a message to the session's agent."""
    with context.stopping.interrupts():
        return await context.service.prompt_session(session_id, request)


@api.post("/sessions/{session_id}/fork", status_code=201)
async def fork(
    session_id: SessionName, service: WithService, request: SentByCaller[ForkRequest] | None = None
) -> Forked:
    """Fork the session's last snapshot, or another, into a new workflow; no agent is started."""
    return await service.fork(session_id, request or ForkRequest(environment=own_variables()))


# ── agents ──────────────────────────────────────────────────────────────────────────────────────────


@api.post("/agents")
async def agents(service: WithService, request: AgentsRequest | None = None) -> AgentList:
    """List the configured agents, and whether their programs are on the caller's PATH; none is started."""
    return AgentList(agents=await service.agents((request or AgentsRequest()).environment))


@api.post("/agents/{name}/check")
async def check_agent(name: str, service: WithService, request: AgentsRequest | None = None) -> AgentCheck:
    """Start the agent's program, and return its name, version and capabilities; no session is opened."""
    return await service.check_agent(name, (request or AgentsRequest()).environment)
