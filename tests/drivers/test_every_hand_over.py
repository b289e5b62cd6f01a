"""Work goes from any way of talking to an agent to any other, and back, by a compiled context."""

import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from itertools import combinations
from pathlib import Path

import pytest
from candidates import AcpCandidate, AmpCandidate, ApiCandidate, LangGraphCandidate
from test_claude_turns import OVER, StandIn
from test_claude_turns import said as claude_said

from segue.drivers import DRIVERS, Launch
from segue.model import events as e
from segue.model.agents import AgentConfiguration, Choices, Limits
from segue.model.status import Way
from segue.testing.conformance import Line, Say
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

PLAN = """
- {id: a, title: Do A}
- {id: b, title: Do B, depends_on: [a]}
- {id: c, title: Do C, depends_on: [b]}
"""
WHY = "We use tabs instead of spaces because the parser is older."
SAID = Say(f"It is done. {WHY}")
LINES = (Line("Task 3 of 3", Say("It is done.")), Line("Task 2 of 3", Say("It is done.")), Line("Do A", SAID))


@asynccontextmanager
async def claude(root: Path) -> AsyncGenerator[Launch]:
    """Claude Code itself is certified; here a stand-in for it says the same as the others."""
    answers = {line.prompt: [[claude_said(line.act.text), OVER]] for line in LINES}
    yield StandIn(root).launch(answers, SEGUE_CLAUDE_HOME=str(root / "memory"))


CASTS: dict[str, Callable[[Path], AbstractAsyncContextManager[Launch]]] = {
    "acp": lambda root: AcpCandidate(root).cast(*LINES),
    "amp": lambda root: AmpCandidate(root).cast(*LINES),
    "api": lambda root: ApiCandidate(root).cast(*LINES),
    "claude": claude,
    "langgraph": lambda root: LangGraphCandidate(root).cast(*LINES),
}


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "--quiet", "--initial-branch", "main")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "first")
    return Theatre(tmp_path, repository)


def invite(theatre: Theatre, driver: str, launch: Launch) -> None:
    """Make an agent of what a driver would start."""
    own = {name: value for name, value in launch.environment.items() if os.environ.get(name) != value}
    theatre.variables |= own
    theatre.agents[driver] = AgentConfiguration(
        name=driver, driver=driver, command=launch.command, environment=tuple(own)
    )


TOLD = re.compile(rb"Session Resume Context.*?" + re.escape(WHY.encode()), re.DOTALL)
"""A context with the decision in it. Nobody says it again after that, so it is not the agent's own word."""


def was_told(root: Path) -> bool:
    """Whether the agent that lives here has kept a context that it got."""
    return any(TOLD.search(file.read_bytes()) for file in root.rglob("*") if file.is_file())


def test_every_driver_is_cast() -> None:
    assert set(CASTS) == set(DRIVERS)


@pytest.mark.parametrize("pair", list(combinations(CASTS, 2)), ids="-".join)
async def test_decisions_are_handed_over_and_the_way_back_is_open(theatre: Theatre, pair: tuple[str, str]) -> None:
    one, other = pair
    async with AsyncExitStack() as stack:
        models: dict[str, str | None] = {}
        for driver in pair:
            (root := theatre.root / driver).mkdir()
            launch = await stack.enter_async_context(CASTS[driver](root))
            invite(theatre, driver, launch)
            models[driver] = launch.model
        theatre.choices = Choices(limits=Limits(tasks=1), model=models[one])
        await stack.enter_async_context(theatre.open())
        await theatre.begin("turns: []", plan=PLAN, agent=one)
        await theatre.until("build-it", "paused")
        assert not was_told(theatre.root / one)
        for successor, status in ((other, "paused"), (one, "completed")):
            head = (await theatre.orchestrator.workflow("build-it")).head
            took_over = await theatre.resume("build-it", agent=successor, model=models[successor])
            assert (took_over.way, took_over.agent) == (Way.CONTEXT, successor)
            await theatre.event("build-it", e.RunEnded, after=head)
            await theatre.until("build-it", status)
            assert was_told(theatre.root / successor), f"{successor} took over and got no context"
        carried = await theatre.events("build-it", e.ContextCarried)
        started = await theatre.events("build-it", e.AgentStarted)
    assert [each.way for each in carried] == [Way.CONTEXT] * 2
    assert all(each.exam is not None and each.exam.score == 1 and WHY in each.text for each in carried)
    assert len(started) == 3
