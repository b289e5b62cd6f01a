"""A workflow with Claude Code, whose own files of the conversation are lost."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.status import Way
from segue.settings import BUILT_IN_AGENTS
from tests.drivers.stand_in import OVER, StandIn, said
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

DONE: dict[str, list[list[Any]]] = {"": [[said("Done."), OVER]]}
CLAUDE = BUILT_IN_AGENTS["claude-sdk"]


@pytest.fixture
def claude(theatre: Theatre, tmp_path: Path) -> StandIn:
    """Pauses after each task."""
    claude = StandIn(tmp_path)
    variables = claude.launch(DONE, remembers=True).environment
    theatre.variables = {name: variables[name] for name in ("HOME", "SEGUE_CLAUDE_PROGRAM")}
    theatre.agents = {CLAUDE.name: CLAUDE}
    theatre.choices = Choices(limits=Limits(tasks=1))
    return claude


async def half_done_and_forgotten(theatre: Theatre, claude: StandIn) -> None:
    await theatre.begin("", agent=CLAUDE.name)
    await theatre.until("build-it", "paused")
    shutil.rmtree(claude.home)
    claude.home.mkdir()
    await theatre.resume("build-it")


async def test_the_work_goes_on_in_the_conversation_that_segue_kept(theatre: Theatre, claude: StandIn) -> None:
    async with theatre.open():
        await half_done_and_forgotten(theatre, claude)
        await theatre.until("build-it", "completed")
        runs = await theatre.events("build-it", e.RunQueued)
        warnings = [each.code for each in await theatre.events("build-it", e.Warned)]
    assert [run.way for run in runs] == [Way.FIRST, Way.NATIVE]
    assert warnings.count("conversation_copy") == 1
    (begun, *_, resumed) = claude.arguments()
    token = next(word.partition("=")[2] for word in begun if word.startswith("--session-id="))
    assert f"--resume={token}" in resumed


async def test_an_agent_whose_conversations_are_not_kept_is_asked_for_review(theatre: Theatre, claude: StandIn) -> None:
    theatre.agents = {CLAUDE.name: replace(CLAUDE, keep_conversations=False)}
    async with theatre.open():
        await half_done_and_forgotten(theatre, claude)
        await theatre.until("build-it", "review")
    assert "--session-mirror" not in claude.arguments()[0]
