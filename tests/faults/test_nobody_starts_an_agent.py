"""After a crash no agent runs until the user says so: not by a restart, not by the engine, not as time goes by.

A setting may say so beforehand.
"""

import anyio
import pytest

from segue.model.events import RunStarted, WorkflowMoved
from segue.orchestrator.resuming import BY_SETTING
from segue.testing.reckoning import reckon
from segue.testing.stage import Stage
from tests.faults.plays import Held
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio


async def test_no_agent_runs_after_a_kill_and_a_restart_until_resume(stage: Stage) -> None:
    stage.up()
    held = Held(stage)
    stage.kill()
    theatre = Theatre(stage.home, stage.repository)
    async with theatre.open():
        assert (await theatre.orchestrator.workflow(held.work.id)).status == "paused"
        # Somebody else's work is done meanwhile, so the engine is awake and looks into its queue.
        other = await theatre.begin("turns: []", title="Another work")
        await theatre.until(other.id, "completed")
        for _ in range(60):
            await theatre.clock.advance(1)
            assert held.work.processes() == set()
        assert len(await theatre.events(held.work.id, RunStarted)) == 1

        held.let_go()
        await theatre.orchestrator.resume(held.work.id, held.work.environment)
        await theatre.until(held.work.id, "completed")
        assert len(await theatre.events(held.work.id, RunStarted)) == 2
    await anyio.to_thread.run_sync(stage.up)
    assert reckon(stage, held.work).faults == []


async def test_what_was_at_work_goes_on_by_itself_where_the_setting_says_so(stage: Stage) -> None:
    stage.up()
    held, paused = Held(stage), Held(stage)
    paused.work.pause(wait=False)
    stage.kill()
    held.let_go()
    theatre = Theatre(stage.home, stage.repository)
    async with theatre.open(recovery="continue", environment=held.work.environment):
        await theatre.until(held.work.id, "completed")
        assert len(await theatre.events(held.work.id, RunStarted)) == 2
        assert BY_SETTING in [each.reason for each in await theatre.events(held.work.id, WorkflowMoved)]
        # Somebody had asked for that.
        assert (await theatre.orchestrator.workflow(paused.work.id)).status == "paused"
        assert len(await theatre.events(paused.work.id, RunStarted)) == 1
    await anyio.to_thread.run_sync(stage.up)
    assert reckon(stage, held.work).faults == []
