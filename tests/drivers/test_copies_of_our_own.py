"""A fork of a workflow of one of our own agents begins with a copy of its conversation, up to the snapshot."""

import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from candidates import RECALL, AmpCandidate, ApiCandidate, LangGraphCandidate
from stand_in import OVER, StandIn
from stand_in import said as claude_said

from segue.drivers import Launch, load
from segue.drivers.environment import allowed
from segue.model import crash, errors
from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.checkpoint import Checkpoint
from segue.model.requests import ForkRequest
from segue.model.status import Carrying, Way
from segue.model.views import Resumed
from segue.settings import BUILT_IN_AGENTS
from segue.testing.conformance import Line, Say
from segue.testing.rehearsal.launch import turn
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

FORK = "build-it-fork"
PLAN = "[{id: a, title: Do FIGS}, {id: b, title: Do PEARS, depends_on: [a]}, {id: c, title: Do KIWIS, depends_on: [b]}]"
DONE = Say("It is done.")
LINES = (Line("Do ", DONE), Line(RECALL, DONE))


@dataclass(frozen=True)
class Cast:
    """An agent that was invited, and how one learns what it was told."""

    launch: Launch
    told: Callable[[Theatre], Awaitable[str]]


async def _as_it_says(theatre: Theatre) -> str:
    head = (await theatre.orchestrator.workflow(FORK)).head
    await theatre.prompt(FORK, RECALL)
    message = (await theatre.event(FORK, e.AgentMessage, after=head)).event
    assert isinstance(message, e.AgentMessage)
    return message.text


@asynccontextmanager
async def _api(root: Path) -> AsyncGenerator[Cast]:
    candidate = ApiCandidate(root)

    async def told(theatre: Theatre) -> str:
        await _as_it_says(theatre)
        assert candidate.model is not None
        return "\n".join(each.text for each in candidate.model.requests[-1].messages if each.role == "user")

    async with candidate.cast(*LINES) as launch:
        yield Cast(launch, told)


@asynccontextmanager
async def _claude(root: Path) -> AsyncGenerator[Cast]:
    """Claude Code itself is certified; here is a stand-in that keeps its conversations in files as Claude Code does."""
    answers: dict[str, Any] = {RECALL: [[{"recall": True}, OVER]], "Do ": [[claude_said(DONE.text), OVER]]}
    yield Cast(StandIn(root).launch(answers, remembers=True, SEGUE_CLAUDE_HOME=str(root / "memory")), _as_it_says)


@asynccontextmanager
async def _langgraph(root: Path) -> AsyncGenerator[Cast]:
    async with LangGraphCandidate(root).cast(*LINES) as launch:
        yield Cast(launch, _as_it_says)


CASTS: dict[str, Callable[[Path], AbstractAsyncContextManager[Cast]]] = {
    "api": _api,
    "claude-sdk": _claude,
    "langgraph": _langgraph,
}
everybody = pytest.mark.parametrize("agent", CASTS)


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "--quiet", "--initial-branch", "main")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "first")
    return Theatre(tmp_path, repository)


@asynccontextmanager
async def invited(theatre: Theatre, agent: str) -> AsyncGenerator[Cast]:
    """As Segue comes with it, but for what stands in for its vendor."""
    (root := theatre.root / agent).mkdir()
    async with CASTS[agent](root) as cast:
        own = {name: value for name, value in cast.launch.environment.items() if os.environ.get(name) != value}
        theatre.variables |= own
        as_built_in = BUILT_IN_AGENTS[agent]
        theatre.agents[agent] = replace(as_built_in, command=cast.launch.command, environment=tuple(own))
        theatre.choices = Choices(limits=Limits(tasks=1), model=cast.launch.model)
        yield cast


async def after_one_task(theatre: Theatre, agent: str) -> Checkpoint:
    await theatre.begin("turns: []", plan=PLAN, agent=agent)
    await theatre.until("build-it", "paused")
    return (await theatre.orchestrator.snapshots("build-it"))[0].checkpoint


async def another_task(theatre: Theatre, name: str = "build-it") -> Resumed:
    head = (await theatre.orchestrator.workflow(name)).head
    resumed = await theatre.resume(name)
    await theatre.event(name, e.RunEnded, after=head)
    await theatre.until(name, "paused", "completed")
    return resumed


async def fork(theatre: Theatre, snapshot: str | None = None) -> None:
    (session,) = await theatre.orchestrator.sessions("build-it")
    await theatre.orchestrator.fork(session.id, ForkRequest(environment=theatre.environment, snapshot=snapshot))


@everybody
async def test_a_fork_begins_with_a_copy_of_the_conversation(theatre: Theatre, agent: str) -> None:
    async with invited(theatre, agent) as cast, theatre.open():
        await after_one_task(theatre, agent)
        await fork(theatre)
        assert (await another_task(theatre, FORK)).way is Way.FORK
        assert not await theatre.events(FORK, e.WayChanged)
        told = await cast.told(theatre)
        assert "Do FIGS" in told and "This conversation is a copy" in told
        (original,) = await theatre.orchestrator.sessions("build-it")
        (copy,) = await theatre.orchestrator.sessions(FORK)
        assert copy.token not in (None, original.token) and copy.carrying is Carrying.NOTHING
        assert (await another_task(theatre)).way is Way.NATIVE


@everybody
async def test_a_fork_from_an_earlier_snapshot_knows_the_conversation_up_to_it(theatre: Theatre, agent: str) -> None:
    async with invited(theatre, agent) as cast, theatre.open():
        first = await after_one_task(theatre, agent)
        await another_task(theatre)
        await theatre.until_studied()
        original = await theatre.orchestrator.workflow("build-it")
        second = (await theatre.orchestrator.snapshots("build-it"))[0].checkpoint
        assert first.bookmark and second.bookmark and first.bookmark != second.bookmark
        await fork(theatre, first.id)
        told = await cast.told(theatre)
        (queued,) = await theatre.events(FORK, e.RunQueued)
        assert queued.way is Way.FORK and not await theatre.events(FORK, e.WayChanged)
        assert "Task 1 of 3: Do FIGS" in told and "Task 2 of 3" not in told
        assert (await theatre.orchestrator.workflow("build-it")).head == original.head
        assert (await another_task(theatre)).way is Way.NATIVE
        assert (await theatre.orchestrator.workflow("build-it")).tasks_done == 3


class Fault(Exception):
    """Where a run would have died."""


@contextmanager
def a_fault_at(point: str) -> Generator[None]:
    def pull(name: str) -> None:
        if name == point:
            raise Fault

    crash.arm(pull)
    try:
        yield
    finally:
        crash.arm(None)


async def test_a_run_that_dies_over_its_copy_begins_with_another_and_claims_one(theatre: Theatre) -> None:
    async with invited(theatre, "langgraph") as cast, theatre.open():
        first = await after_one_task(theatre, "langgraph")
        await another_task(theatre)
        await fork(theatre, first.id)
        with a_fault_at("fork.copied"):
            await another_task(theatre, FORK)
        assert not await theatre.events(FORK, e.AgentStarted) and not await theatre.events(FORK, e.PromptSent)
        assert (await another_task(theatre, FORK)).way is Way.FORK
        assert len(await theatre.events(FORK, e.AgentStarted)) == len(await theatre.events(FORK, e.TokenCaptured)) == 1
        told = await cast.told(theatre)
        assert told.count("This conversation is a copy") == told.count("Task 1 of 3") == told.count("Task 2 of 3") == 1


async def test_an_agent_that_has_lost_the_place_begins_anew_and_that_is_said(theatre: Theatre) -> None:
    async with invited(theatre, "langgraph"), theatre.open():
        first = await after_one_task(theatre, "langgraph")
        await another_task(theatre)
        await fork(theatre, first.id)
        with sqlite3.connect(theatre.root / "langgraph" / "checkpoints" / "graph.sqlite") as checkpoints:
            checkpoints.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (first.bookmark,))
        assert (await another_task(theatre, FORK)).way is Way.FORK
        (changed,) = await theatre.events(FORK, e.WayChanged)
        assert (changed.after, f"has no checkpoint {first.bookmark}" in changed.reason) == (Way.CONTEXT, True)


async def test_an_agent_that_knows_no_places_copies_no_less_than_the_whole(theatre: Theatre) -> None:
    """The one with which all others are rehearsed tells of none."""
    theatre.native_fork = True
    theatre.choices = Choices(limits=Limits(tasks=1))
    async with theatre.open():
        first = await after_one_task(theatre, "rehearsal")
        await another_task(theatre)
        await fork(theatre, first.id)
        resumed = await another_task(theatre, FORK)
        assert first.bookmark is None and resumed.way is Way.CONTEXT
        assert "the original's conversation has gone beyond the snapshot" in resumed.reason


@everybody
async def test_a_place_that_nobody_knows_is_no_place_for_a_copy_to_end(theatre: Theatre, agent: str) -> None:
    async with invited(theatre, agent) as cast:
        driver = load(BUILT_IN_AGENTS[agent].driver)
        async with driver.start(cast.launch) as begun:
            await turn(begun, "Do it")
        for place in ("99", "nowhere", str(uuid4())):
            with pytest.raises(errors.TokenRejected):
                async with driver.fork(cast.launch, begun.token, place):
                    pass


# ── which agents copy ───────────────────────────────────────────────────────────────────────────────


COPYING = {"rehearsal", "claude", "codex", "claude-sdk", "api", "langgraph"}
"""All others cannot, but for OpenCode, whose copies stay in the directory of the original."""


def test_these_agents_copy_their_conversations_for_a_fork() -> None:
    assert {agent.name for agent in BUILT_IN_AGENTS.values() if agent.native_fork} == COPYING


@pytest.mark.parametrize("name", ["rehearsal", "amp", "api", "claude-sdk", "langgraph"])
async def test_an_agent_of_our_own_copies_if_it_says_so(name: str, tmp_path: Path) -> None:
    agent = BUILT_IN_AGENTS[name]
    environment = {**allowed(os.environ), "HOME": str(tmp_path), "SEGUE_REHEARSAL_HOME": str(tmp_path)}
    if name == "amp":
        launch = AmpCandidate(tmp_path).launch({})
    else:
        launch = Launch(command=agent.command, directory=tmp_path, environment=environment, execution=f"asked-{name}")
    assert (await load(agent.driver).introduce(launch)).capabilities.fork is agent.native_fork
