"""The paths under /api: each takes a request apart, asks the service once, and answers."""

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
    PauseRequest,
    Place,
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
from segue.model.work import NOTHING_SAID, WorkSettings
from segue.server.choosing import choices_for
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
from segue.server.service import Service
from segue.server.stopping import Stopping
from segue.settings import Settings

MOST_SHOWN = 20
LONGEST_WAIT = 60.0
LEAST_BUDGET = 100
"""Fewer tokens hold nothing."""
SHORT_SESSION = re.compile(r"session-[a-z0-9]+")

api = APIRouter(prefix="/api")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the routes know beside the request."""

    service: Service
    home: Path
    started_at: datetime
    settings: Settings
    spoken: WorkSettings = NOTHING_SAID
    """What the server's own variables say of the work."""
    stopping: Stopping
    stop: Callable[[], None]


def _context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


def _service(request: Request) -> Service:
    return _context(request).service


InContext = Annotated[Context, Depends(_context)]
WithService = Annotated[Service, Depends(_service)]


async def _session(session_id: str, service: WithService) -> str:
    """A session's id, also where it was given in short: `session-abc123`."""
    if not SHORT_SESSION.fullmatch(session_id):
        return session_id
    ending = session_id.removeprefix("session")
    views = await service.workflows(None, [])
    found = [each.id for view in views for each in await service.sessions(view.id) if each.id.endswith(ending)]
    if not found:
        raise SessionNotFound(f"No session is called {session_id}.", hint="`segue sessions list` lists them.")
    if len(found) > 1:
        raise BadInput(f"Several sessions are called {session_id}: {', '.join(found)}.", hint="Give the whole id.")
    return found[0]


SessionName = Annotated[str, Depends(_session)]


@api.get("/status")
async def status(context: InContext) -> ServerStatus:
    """The server, and the workflows that are active or were lately."""
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
    """Stop the server; work in progress is brought to rest first."""
    if request is not None and request.if_idle and context.service.busy:
        raise WrongState("Somebody's work is going on.", hint="`segue status` shows it.")
    context.stop()
    return ShutdownAnswer()


# ── workflows ───────────────────────────────────────────────────────────────────────────────────────


@api.post("/workflows", status_code=201)
async def create(request: SentByCaller[RunRequest], context: InContext) -> WorkflowView:
    """Begin a workflow."""
    if not request.issue.title.strip():
        raise BadInput("The issue has no title.", hint="Say in one line what is to be done.")
    if not request.repository.is_absolute():
        raise BadInput(f"The repository {request.repository} is not an absolute path.")
    agent, choices = await choices_for(request, context.settings, context.spoken)
    return await context.service.create(request, agent, choices)


@api.get("/workflows")
async def workflows(service: WithService, directory: Place | None = None, status: str = "") -> WorkflowList:
    """All workflows, or those that a directory belongs to, or those in one of some statuses (`a,b`)."""
    statuses = [name for name in status.split(",") if name]
    known = {item.value for item in WorkflowStatus}
    if unknown := set(statuses) - known:
        raise BadInput(f"No workflow status is called {min(unknown)!r}.", hint=f"Known: {', '.join(sorted(known))}.")
    return WorkflowList(workflows=await service.workflows(directory, statuses))


@api.get("/workflows/{name}")
async def workflow(name: str, service: WithService) -> WorkflowView:
    return await service.workflow(name)


@api.get("/workflows/{name}/plan", response_model=PlanView, responses={200: {"content": {"application/yaml": {}}}})
async def plan(name: str, service: WithService, form: Literal["json", "yaml"] = "json") -> PlanView | Response:
    """The plan that waits for approval, else the one that is worked on; `form=yaml` can be changed and given back."""
    view = await service.plan(name)
    return view if form == "json" else Response(view.text, media_type="application/yaml")


@api.post("/workflows/{name}/pause", responses={202: {"model": Action}})
async def pause(
    name: str, response: Response, context: InContext, request: Sent[PauseRequest] | None = None, wait: bool = False
) -> Action:
    """Pause at the end of the current task; with `wait`, answer when that has happened."""
    with context.stopping.interrupts():
        action = await context.service.pause(name, request or PauseRequest(), wait)
        response.status_code = 202 if action.status == "pause_requested" else 200
        return action


@api.post("/workflows/{name}/resume")
async def resume(name: str, request: SentByCaller[ResumeRequest], service: WithService) -> Resumed:
    """Go on where the workflow stopped, or from an earlier snapshot."""
    return await service.resume(name, request)


@api.post("/workflows/{name}/limits")
async def limit(name: str, request: LimitsRequest, service: WithService) -> WorkflowView:
    """Let the workflow use more, or less, from now on; what is left out stays, and 0 lifts a limit."""
    return await service.limit(name, request.limits, request.wait_for_quota)


@api.post("/workflows/{name}/workspace")
async def restore_workspace(name: str, service: WithService) -> WorkspaceRestored:
    """Make the worktree again if it is gone, and start no agent."""
    return await service.restore_workspace(name)


@api.post("/workflows/{name}/prompt")
async def prompt(name: str, request: SentByCaller[PromptRequest], context: InContext) -> Prompted:
    """Say something to the workflow's agent; it is brought back for that if it is gone."""
    with context.stopping.interrupts():
        return await context.service.prompt(name, request)


@api.post("/workflows/{name}/approve")
async def approve(name: str, service: WithService, request: SentByCaller[ApproveRequest] | None = None) -> Answered:
    """Allow what the oldest open question asks for, or take the plan that waits, or another in its place."""
    return await service.answer(name, request or ApproveRequest(environment=own_variables()))


@api.post("/workflows/{name}/reject")
async def reject(name: str, service: WithService, request: SentByCaller[RejectRequest] | None = None) -> Answered:
    """Refuse what the oldest open question asks for; a plan is rejected with a reason, and made again."""
    return await service.answer(name, request or RejectRequest(environment=own_variables()))


@api.post("/workflows/{name}/cancel")
async def cancel(name: str, service: WithService, request: Sent[CancelRequest] | None = None) -> Action:
    """End the workflow for good."""
    return await service.cancel(name, request or CancelRequest())


# ── what is written down ────────────────────────────────────────────────────────────────────────────


@api.get("/workflows/{name}/events")
async def events(
    name: str,
    context: InContext,
    after: Annotated[int, Query(ge=0, le=MOST)] = 0,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0.0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
) -> EventPage:
    """The events after number `after`; with `wait`, answer when there are some, or when that many seconds are over."""
    with context.stopping.interrupts():
        return await context.service.events(name, after, wait, limit)


@api.get("/workflows/{name}/context")
async def context(
    name: str, service: WithService, budget: Annotated[int | None, Query(ge=LEAST_BUDGET, le=MOST)] = None
) -> CompiledContext:
    """What a successor would read if the work went on now, and how well that did in the exam."""
    return await service.context(name, budget)


@api.get("/workflows/{name}/verify")
async def verify(name: str, service: WithService) -> Verification:
    """Whether the journal of this workflow is whole."""
    return await service.verify(name)


# ── sessions ────────────────────────────────────────────────────────────────────────────────────────


@api.get("/workflows/{name}/sessions")
async def sessions(name: str, service: WithService) -> SessionList:
    """The conversations of a workflow, the first one first."""
    return SessionList(sessions=await service.sessions(name))


@api.get("/workflows/{name}/usage")
async def usage(name: str, service: WithService) -> WorkflowAccount:
    """Tokens and cost of a workflow, by session and by model; each cost says how it is known."""
    return await service.usage(name)


@api.get("/sessions/{session_id}")
async def session(session_id: SessionName, service: WithService) -> SessionDetail:
    """One conversation: its process, its token, and how it would come back at which price."""
    return await service.session(session_id)


@api.get("/sessions/{session_id}/status")
async def session_status(session_id: SessionName, service: WithService) -> SessionStanding:
    """Whether the session needs its agent brought back, and whether that can be done."""
    return await service.session_standing(session_id)


@api.post("/sessions/{session_id}/files")
async def session_files(session_id: SessionName, service: WithService) -> SessionFiles:
    """Write the session's files anew from the journal, and tell whether those that were there had been right."""
    return await service.session_files(session_id)


@api.post("/sessions/{session_id}/resume")
async def open_session(
    session_id: SessionName, service: WithService, request: SentByCaller[OpenRequest] | None = None
) -> Resumed:
    """Bring the session's agent back, and ask nothing of it."""
    return await service.open_session(session_id, request or OpenRequest(environment=own_variables()))


@api.post("/sessions/{session_id}/prompt")
async def prompt_session(session_id: SessionName, request: SentByCaller[PromptRequest], context: InContext) -> Prompted:
    """Say something to the session's agent."""
    with context.stopping.interrupts():
        return await context.service.prompt_session(session_id, request)


@api.post("/sessions/{session_id}/fork", status_code=201)
async def fork(
    session_id: SessionName, service: WithService, request: SentByCaller[ForkRequest] | None = None
) -> Forked:
    """Go on from the session's last snapshot, or from another, in a new workflow; no agent is started."""
    return await service.fork(session_id, request or ForkRequest(environment=own_variables()))


# ── agents ──────────────────────────────────────────────────────────────────────────────────────────


@api.post("/agents")
async def agents(service: WithService, request: AgentsRequest | None = None) -> AgentList:
    """The agents there are, and whether their programs are on the caller's PATH. Nothing is started."""
    return AgentList(agents=await service.agents((request or AgentsRequest()).environment))


@api.post("/agents/{name}/check")
async def check_agent(name: str, service: WithService, request: AgentsRequest | None = None) -> AgentCheck:
    """Start the agent's program, and let it say what it is and what it can do; no conversation is opened."""
    return await service.check_agent(name, (request or AgentsRequest()).environment)
