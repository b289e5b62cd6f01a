"""Agents in containers: they outlive the server, are found again by their label, joined again, or ended."""

import logging
import os
from collections.abc import Callable, Sequence

from segue.drivers import Capabilities, Introduction, Left, PermissionAnswer
from segue.journal.rows import RunRow
from segue.model import events as e
from segue.model.errors import SegueError
from segue.model.events import Record
from segue.model.ids import AttemptId, PromptId, SessionId, WorkflowId
from segue.model.status import SessionStatus
from segue.orchestrator.runtime.permissions import option_for
from segue.orchestrator.runtime.services import RuntimeServices
from segue.state.fold import WorkflowState
from segue.state.moves import SESSION_ENDED, WORKFLOW_ENDED
from segue.workspace.containers import FoundContainer, end_container, engine_address, managed
from segue.workspace.processes import PART

log = logging.getLogger("segue")

_STORY = ("agent.started", "prompt.sent", "turn.ended", "turn.failed", "permission.requested", "permission.answered")
_MOST = 100_000
_OVER = SESSION_ENDED | {SessionStatus.FAILED}


def engine_of(services: RuntimeServices) -> str:
    """Return the address of the container engine, by the settings or else the server's environment."""
    return engine_address(services.rules.container_engine, os.environ)


async def in_use(services: RuntimeServices, workflow_id: WorkflowId | None = None) -> bool:
    """Return True if any agent, or one of this workflow, runs in a container or ever did; otherwise no engine is looked
    for."""
    if await services.journal.sessions.any_in_container(workflow_id):
        return True
    contained = {agent.name for agent in services.agents.values() if agent.container}
    if workflow_id is None or not contained:
        return bool(contained)
    return any(each.agent in contained for each in await services.journal.sessions.of(workflow_id))


# ── joining one again ───────────────────────────────────────────────────────────────────────────────


async def closed(services: RuntimeServices, state: WorkflowState, workflow_id: WorkflowId) -> str | None:
    """Return why the current session's agent cannot be joined in its container: empty if it can, None if it has no
    container."""
    session, session_id = state.session, state.current_session
    agent = services.agents.get(session.agent) if session else None
    if session_id is None or agent is None or agent.container is None:
        return None
    try:
        return "" if await left(services, workflow_id, session_id) else "its container does not run any more"
    except SegueError as error:
        return error.message.rstrip(".")


async def left(services: RuntimeServices, workflow_id: WorkflowId, session_id: SessionId) -> Left | None:
    """Return the agent that still runs in the session's container, as the journal describes it, with its open turn;
    None if there is none."""
    runtime = await services.journal.sessions.runtime(session_id)
    if runtime.container is None:
        return None
    running = [each for each in await managed(engine_of(services)) if each.running and each.id == runtime.container]
    others = [each.id for each in await services.journal.sessions.of(workflow_id)]
    others.remove(session_id)
    for found in running:
        marks = await services.journal.last_records(workflow_id, ["agent.heard"], limit=1, aside=others)
        story = await services.journal.last_records(workflow_id, _STORY, limit=_MOST, aside=others)
        return _left(found, marks, story)
    return None


def _left(found: FoundContainer, marks: list[Record], story: list[Record]) -> Left | None:
    """Rebuild the stream's position and open turn from the latest events, newest first; None if they do not reach
    back to the agent's start or no position is known."""
    for number, record in enumerate(story, start=1):
        match record.event:
            case e.AgentStarted(execution=execution) as started if execution == found.execution:
                life = story[:number][::-1]
                place = marks[0].event if marks and marks[0].seq > record.seq else None
                if not isinstance(place, e.OutputRecorded):
                    return None
                return Left(
                    container=found.id,
                    introduction=Introduction(
                        name=started.name,
                        version=started.version,
                        capabilities=Capabilities(**dict.fromkeys(started.capabilities, True)),
                    ),
                    updates=place.updates,
                    characters=place.characters,
                    turn=_turn(life),
                    answers=_answers(life[1:]),
                )
            case _:
                pass
    return None


def _turn(life: Sequence[Record]) -> PromptId | None:
    """Return the last prompt if the end of its turn is not among the events, which come oldest first; else None."""
    turn: PromptId | None = None
    for record in life:
        match record.event:
            case e.PromptSent(prompt_id=prompt_id):
                turn = prompt_id
            case e.TurnEnded() | e.TurnFailed():
                turn = None
            case _:
                pass
    return turn


def _answers(life: Sequence[Record]) -> tuple[PermissionAnswer | None, ...]:
    """Return the answer to each permission request in the order in which the agent sent them, None for an open one;
    a joined agent repeats them."""
    asked: list[e.PermissionRequested] = []
    given: list[PermissionAnswer | None] = []
    again: list[int] = []
    for record in life:
        match record.event:
            case e.AgentStarted():
                again = [number for number, answer in enumerate(given) if answer is None]
            case e.PermissionRequested() as question if again:
                asked[again.pop(0)] = question
            case e.PermissionRequested() as question:
                asked.append(question)
                given.append(None)
            case e.PermissionAnswered(request_id=request_id, outcome="allowed" | "denied" as outcome):
                number = [each.request_id for each in asked].index(request_id)
                given[number] = PermissionAnswer(option=option_for(asked[number], outcome == "allowed"))
            case e.TurnEnded() | e.TurnFailed():
                # What was still open when the turn ended, the agent took back.
                given = [answer or PermissionAnswer(option=None) for answer in given]
            case _:
                pass
    return tuple(given)


async def begun(services: RuntimeServices, attempt: AttemptId) -> str | None:
    """Return the name of the container that this attempt has started; None if there is none."""
    return next((each.id for each in await managed(engine_of(services)) if each.execution == attempt), None)


# ── ending them ─────────────────────────────────────────────────────────────────────────────────────


async def end_all(services: RuntimeServices, workflow_id: WorkflowId) -> None:
    """End all containers of this workflow; one that cannot be ended now is logged and left to the next sweep."""
    await _end(services, lambda _run, _found: True, workflow_id)


async def end_helpers(services: RuntimeServices, workflow_id: WorkflowId) -> None:
    """End this workflow's containers of helpers, which have no run of their own."""
    await _end(services, lambda _, found: PART in found.execution, workflow_id)


async def tidy(services: RuntimeServices) -> None:
    """End all containers of this journal that no run will join again."""
    wanted = {found.id for found, run in await _ours(services) if await _is_wanted(services, found, run)}
    await _end(services, lambda _, found: found.id not in wanted)


async def _is_wanted(services: RuntimeServices, found: FoundContainer, run: RunRow) -> bool:
    """Return True if the workflow has an open run, or the container is the running one of its current session and
    can be joined again."""
    if await services.journal.runs.open(run.workflow_id):
        # Whoever carries it out knows what is needed.
        return True
    workflow = await services.journal.workflows.get(run.workflow_id)
    session = await services.journal.sessions.get(run.session_id)
    runtime = await services.journal.sessions.runtime(run.session_id)
    agent = services.agents.get(session.agent)
    if agent is None or agent.container is None:
        # It was taken out of the settings while it was in there, and only they say how it is joined.
        return False
    current = session.number == workflow.session_count and session.status not in _OVER
    return found.running and current and runtime.container == found.id and workflow.status not in WORKFLOW_ENDED


async def _end(
    services: RuntimeServices, unwanted: Callable[[RunRow, FoundContainer], bool], workflow_id: WorkflowId | None = None
) -> None:
    """End the unwanted containers; one that cannot be ended now is found by the next sweep."""
    for found, run in await _ours(services, workflow_id):
        if unwanted(run, found):
            try:
                await end_container(found.id, engine=engine_of(services))
            except SegueError as error:
                log.warning("container %s could not be ended: %s", found.id[:12], error.message)


async def _ours(
    services: RuntimeServices, workflow_id: WorkflowId | None = None
) -> list[tuple[FoundContainer, RunRow]]:
    """Return the containers with a run in this journal, of one workflow or of all; none if no engine is reachable.
    Others may belong to another Segue."""
    if not await in_use(services, workflow_id):
        return []
    try:
        everyones = await managed(engine_of(services))
    except SegueError as error:
        log.info("no containers can be looked for: %s", error.message)
        return []
    runs = await services.journal.runs.by_attempt({_attempt(each) for each in everyones})
    ours = [(each, runs[_attempt(each)]) for each in everyones if _attempt(each) in runs]
    return [(found, run) for found, run in ours if workflow_id in (None, run.workflow_id)]


def _attempt(found: FoundContainer) -> AttemptId:
    """Return the attempt that a container belongs to; a helper's is its run's."""
    return AttemptId(found.execution.partition(PART)[0])
