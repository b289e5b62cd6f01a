"""The machine sleeps in the middle of the work: that is nobody's silence, and nobody's missing answer."""

import pytest

from segue.model import events as e
from segue.model.requests import ApproveRequest
from tests.orchestrator.test_workflows import HELD, worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

NIGHT = 8 * 3600.0
NOTICED = {"stall_notice": 300.0}


async def wake_up(theatre: Theatre) -> None:
    """The night is over, and everybody who looks around from time to time does."""
    theatre.clock.suspend(NIGHT)
    await theatre.clock.advance(61)
    await theatre.sweep()


async def test_an_agent_at_work_goes_on_after_the_night(theatre: Theatre) -> None:
    async with theatre.open(**NOTICED):
        await theatre.begin(HELD)
        await theatre.event("build-it", e.ToolFinished)
        await wake_up(theatre)
        (worktree_of(theatre) / "go").touch()
        view = await theatre.until("build-it", "completed")
        assert (view.runs, await theatre.events("build-it", e.Warned)) == (1, [])


async def test_an_agent_that_had_just_got_its_prompt_is_given_its_time(theatre: Theatre) -> None:
    async with theatre.open(**NOTICED):
        await theatre.begin("turns: [{match: Do A, do: [{wait_for: go}]}]")
        await theatre.until_prompted(1)
        await wake_up(theatre)
        (worktree_of(theatre) / "go").touch()
        assert (await theatre.until("build-it", "completed")).runs == 1


async def test_a_question_waits_for_whoever_wakes_the_machine(theatre: Theatre) -> None:
    async with theatre.open(**NOTICED):
        await theatre.begin("turns: [{match: Do A, do: [{run: echo hello, ask: true}]}]", permissions="ask")
        await theatre.event("build-it", e.PermissionRequested)
        await wake_up(theatre)
        assert (await theatre.orchestrator.workflow("build-it")).question is not None
        await theatre.orchestrator.answer("build-it", ApproveRequest())
        await theatre.until("build-it", "completed")


async def test_a_question_that_nobody_answers_on_the_day_after_is_refused(theatre: Theatre) -> None:
    async with theatre.open(**NOTICED):
        await theatre.begin("turns: [{match: Do A, do: [{run: echo hello, ask: true}]}]", permissions="ask")
        await theatre.event("build-it", e.PermissionRequested)
        await wake_up(theatre)
        await theatre.clock.advance(3600)
        await theatre.sweep()
        (answered,) = await theatre.events("build-it", e.PermissionAnswered)
        assert (answered.outcome, answered.by) == ("denied", "timeout")


async def test_an_agent_that_is_silent_on_the_day_after_hangs(theatre: Theatre) -> None:
    async with theatre.open(silence_watchdog=1200.0):
        await theatre.begin(HELD)
        await theatre.event("build-it", e.ToolFinished)
        await wake_up(theatre)
        await theatre.clock.advance(1200)
        await theatre.sweep()
        assert "the agent gave no sign within 1200 seconds" in (await theatre.until("build-it", "paused")).reason
