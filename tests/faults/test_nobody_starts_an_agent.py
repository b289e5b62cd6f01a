"""After a crash no agent runs until the user says so: not by a restart, not by the engine, not as time goes by."""

import anyio
import pytest

from segue.model.events import RunStarted
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
