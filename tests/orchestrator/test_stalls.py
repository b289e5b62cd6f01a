"""An agent that is silent: when that is said, and when it counts as a start that failed."""

import pytest

from segue.model import events as e
from segue.model.requests import ApproveRequest
from segue.model.status import Failure
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

NOTICE = {"stall_notice": 300.0, "silence_watchdog": 36000.0}


async def warnings(theatre: Theatre) -> list[str]:
    return [each.message for each in await theatre.events("build-it", e.Warned) if each.code == "stalled"]


async def test_silence_is_said_once_after_five_minutes_and_ends_nothing(theatre: Theatre) -> None:
    async with theatre.open(**NOTICE):
        await theatre.begin_until(e.PromptAcknowledged, "turns: [{match: Do A, do: [{say: Hm.}, {wait_for: go}]}]")
        await theatre.clock.advance(299)
        assert await warnings(theatre) == []
        await theatre.clock.advance(61)
        await theatre.event("build-it", e.Warned)
        await theatre.clock.advance(1000)
        (said,) = await warnings(theatre)
        assert said.startswith("The agent has been silent for ")
        await theatre.go_until("build-it", "completed")


async def test_how_often_is_looked_is_a_setting(theatre: Theatre) -> None:
    async with theatre.open(**NOTICE, stall_look=200.0):
        await theatre.begin_until(e.PromptAcknowledged, "turns: [{match: Do A, do: [{say: Hm.}, {wait_for: go}]}]")
        await theatre.clock.advance(399)
        assert await warnings(theatre) == []
        await theatre.clock.advance(2)
        await theatre.event("build-it", e.Warned)
        await theatre.go_until("build-it", "completed")


async def test_whoever_waits_for_an_answer_is_not_silent(theatre: Theatre) -> None:
    script = "turns: [{match: Do A, do: [{run: echo hello, ask: true}]}]"
    async with theatre.open(**NOTICE):
        await theatre.begin_until(e.PermissionRequested, script, permissions="ask")
        await theatre.clock.advance(1500)
        await theatre.orchestrator.answer("build-it", ApproveRequest())
        await theatre.until("build-it", "completed")
        assert await warnings(theatre) == []


async def test_an_agent_that_never_reacts_to_its_prompt_has_not_come_up_and_is_tried_again(theatre: Theatre) -> None:
    async with theatre.open(**NOTICE, retry_attempts=3):
        await theatre.begin("turns: [{match: Do A, do: [{hang: true, once: true}]}]")
        await theatre.until_prompted(1)
        await theatre.as_time_goes_by("build-it", "paused", "completed")
        assert (await theatre.first("build-it", e.StepFailed)).what == Failure.NEVER_ANSWERED
        await theatre.clock.advance(11)
        assert (await theatre.until("build-it", "completed")).runs == 2
    assert sum("Do A" in entry["text"] for entry in theatre.diary("prompt")) == 2
