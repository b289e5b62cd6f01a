"""No state is sticky: what hangs is torn away when its time is over, and its processes with it."""

import os
from pathlib import Path

import anyio
import pytest

from segue.model.events import ToolFinished
from segue.model.views import WorkflowView
from segue.testing.process_search import carrying
from tests.orchestrator.theatre import WITHIN, Theatre, git

pytestmark = pytest.mark.anyio

ON_TIME = 30
WATCHDOG = 120.0
HANGS_AT_START = "on_initialize: {hang: true}"
HANGS_AT_WORK = """
turns:
  - do:
      - {write: {path: begun.txt, content: ""}, once: true}
      - {hang: true, deaf: true, once: true}
"""


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "--quiet", "--initial-branch", "main")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "first")
    return Theatre(tmp_path, repository)


def processes(theatre: Theatre) -> set[int]:
    return carrying("SEGUE_REHEARSAL_HOME", str(theatre.agent_home))


async def until_its_time_is_over(theatre: Theatre, view: WorkflowView) -> WorkflowView:
    """Turn the clock, and look, until the workflow has left the state in which it hangs."""
    assert processes(theatre)
    await theatre.clock.advance(ON_TIME)
    assert (await theatre.orchestrator.workflow(view.id)).status == "in_progress"
    with anyio.fail_after(WITHIN):
        while (await theatre.orchestrator.workflow(view.id)).status == "in_progress":
            await theatre.clock.advance(theatre.services.rules.sweep_interval)
    return await theatre.until(view.id, "paused")


async def finish(theatre: Theatre, view: WorkflowView, script: str) -> None:
    theatre.script.write_text(script)
    await theatre.resume(view.id)
    await theatre.until(view.id, "completed")


async def test_a_setup_command_that_hangs_is_ended(theatre: Theatre, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    setup = f"test -e {pipe}.again || {{ touch {pipe}.again; echo up > {pipe}; exec sleep 3600; }}"
    async with theatre.open(setup=setup, setup_watchdog=WATCHDOG):
        view = await theatre.begin("turns: []")
        await until_there_is_a_writer(pipe)
        stopped = await until_its_time_is_over(theatre, view)
        assert "the worktree was not ready within 120 seconds" in stopped.reason
        assert processes(theatre) == set()
        await finish(theatre, view, "turns: []")


async def test_an_agent_that_does_not_come_up_is_ended(theatre: Theatre, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = " ".join(theatre.commands["rehearsal"])
    once = f"test -e {pipe}.again || {{ touch {pipe}.again; echo up > {pipe}; }}"
    theatre.commands["rehearsal"] = ("/bin/sh", "-c", f"{once}; exec {program}")
    async with theatre.open(start_watchdog=WATCHDOG, handshake_timeout=3600.0):
        view = await theatre.begin(HANGS_AT_START)
        await until_there_is_a_writer(pipe)
        stopped = await until_its_time_is_over(theatre, view)
        assert "the agent did not come up within 120 seconds" in stopped.reason
        assert processes(theatre) == set()
        await finish(theatre, view, "turns: []")


async def test_an_agent_that_gives_no_sign_is_ended(theatre: Theatre) -> None:
    async with theatre.open(silence_watchdog=WATCHDOG):
        view = await theatre.begin(HANGS_AT_WORK)
        await theatre.event(view.id, ToolFinished)
        stopped = await until_its_time_is_over(theatre, view)
        assert "the agent gave no sign within 120 seconds" in stopped.reason
        assert processes(theatre) == set()
        await finish(theatre, view, HANGS_AT_WORK)


async def until_there_is_a_writer(pipe: Path) -> None:
    with anyio.fail_after(WITHIN):
        await anyio.to_thread.run_sync(pipe.read_text, abandon_on_cancel=True)
