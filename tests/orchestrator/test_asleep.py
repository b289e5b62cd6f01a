"""The machine sleeps in the middle of the work: that is nobody's silence, and nobody's missing answer."""

import pytest

from segue.model import events as e
from segue.model.requests import ApproveRequest
from tests.orchestrator.test_workflows import HELD, worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

ASKS = "turns: [{match: Do A, do: [{run: echo hello, ask: true}]}]"
NIGHT = 8 * 3600.0


@pytest.fixture
def server_settings() -> dict[str, float]:
    return {"stall_notice": 300.0}


async def wake_up(theatre: Theatre) -> None:
    """The night is over, and everybody who looks around from time to time does."""
    theatre.clock.suspend(NIGHT)
    await theatre.clock.advance(61)
    await theatre.sweep()


async def test_an_agent_at_work_goes_on_after_the_night(opened: Theatre) -> None:
    await opened.begin_until(e.ToolFinished, HELD)
    await wake_up(opened)
    view = await opened.go_until("build-it", "completed")
    assert (view.runs, await opened.events("build-it", e.Warned)) == (1, [])


async def test_an_agent_that_had_just_got_its_prompt_is_given_its_time(opened: Theatre) -> None:
    await opened.begin("turns: [{match: Do A, do: [{wait_for: go}]}]")
    await opened.until_prompted(1)
    await wake_up(opened)
    (worktree_of(opened) / "go").touch()
    assert (await opened.until("build-it", "completed")).runs == 1


async def test_a_question_waits_for_whoever_wakes_the_machine(opened: Theatre) -> None:
    await opened.begin_until(e.PermissionRequested, ASKS, permissions="ask")
    await wake_up(opened)
    assert (await opened.orchestrator.workflow("build-it")).question is not None
    await opened.orchestrator.answer("build-it", ApproveRequest())
    await opened.until("build-it", "completed")


async def test_a_question_that_nobody_answers_on_the_day_after_is_refused(opened: Theatre) -> None:
    await opened.begin_until(e.PermissionRequested, ASKS, permissions="ask")
    await wake_up(opened)
    await opened.clock.advance(3600)
    await opened.sweep()
    (answered,) = await opened.events("build-it", e.PermissionAnswered)
    assert (answered.outcome, answered.by) == ("denied", "timeout")


async def test_an_agent_that_is_silent_on_the_day_after_hangs(theatre: Theatre) -> None:
    async with theatre.open(silence_watchdog=1200.0):
        await theatre.begin_until(e.ToolFinished, HELD)
        await wake_up(theatre)
        await theatre.clock.advance(1200)
        await theatre.sweep()
        assert "the agent gave no sign within 1200 seconds" in (await theatre.until("build-it", "paused")).reason
