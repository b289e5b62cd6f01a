"""After a crash no agent runs until the user says so: not by a restart, not by the queue, not as time goes by.

A setting may say so beforehand.
"""

from contextlib import suppress

import anyio
import pytest

from segue.model.errors import ServerError
from segue.model.events import RetryScheduled, RunStarted
from segue.testing.reckoning import reckon
from segue.testing.stage import Stage
from segue.testing.work import Work
from tests.equipment.armed_server import CRASH_AT
from tests.faults.conftest import CheckAll
from tests.faults.plays import PLAN, Held
from tests.faults.test_retries import until_dead, with_retries
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

BY_SETTING = "the server was started anew, and the setting `recovery` says that the work goes on"
TOO_OFTEN = "the server was stopped in the middle of the work again and again, so a person has to look"


async def test_no_agent_runs_after_a_kill_and_a_restart_until_resume(stage: Stage) -> None:
    stage.up()
    held = Held(stage)
    stage.kill()
    theatre = Theatre(stage.home, stage.repository)
    async with theatre.open():
        assert (await theatre.orchestrator.workflow(held.work.id)).status == "paused"
        # Somebody else's work is done meanwhile, so the queue is read.
        other = await theatre.begin("turns: []", title="Another work")
        await theatre.until(other.id, "completed")
        for _ in range(60):
            await theatre.clock.advance(1)
            assert held.work.processes() == set()
        assert len(await theatre.events(held.work.id, RunStarted)) == 1

        held.let_go()
        await theatre.resume(held.work.id, environment=held.work.environment)
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
        assert BY_SETTING in [each.reason for each in await theatre.events(held.work.id, RetryScheduled)]
        # Somebody had asked for that.
        assert (await theatre.orchestrator.workflow(paused.work.id)).status == "paused"
        assert len(await theatre.events(paused.work.id, RunStarted)) == 1
    await anyio.to_thread.run_sync(stage.up)
    assert reckon(stage, held.work).faults == []


def going_on(work: Work, **more: str) -> dict[str, str]:
    """For a server whose user wants the work to go on."""
    return with_retries(work, SEGUE_RECOVERY="continue", SEGUE_RETRY_ATTEMPTS="1", **more)


def test_what_is_to_go_on_does_so_though_the_server_dies_again_before_it_began(stage: Stage, check: CheckAll) -> None:
    stage.up()
    held = Held(stage)
    stage.kill()
    held.let_go()
    with pytest.raises(ServerError):
        stage.up(**going_on(held.work, **{CRASH_AT: "settle.written"}))
    stage.up(**going_on(held.work))
    assert held.work.until_status("completed").runs == 2
    check(stage, held.work)


def test_work_that_kills_the_server_is_left_to_a_person_at_last(stage: Stage, check: CheckAll) -> None:
    work = stage.work("turns: []")
    fatal = going_on(work, **{CRASH_AT: "prompt.delivered"})
    stage.up(**fatal)
    work.begin("Kill it", PLAN)
    until_dead(stage, work)
    for _ in range(2):
        with suppress(ServerError):
            stage.up(**fatal)
            stage.mourn()
    stage.up(**going_on(work))
    view = work.view
    assert (view.status, view.retry, view.runs, view.reason) == ("paused", None, 3, TOO_OFTEN)
    work.resume()
    work.until_status("completed")
    check(stage, work)
