"""A question may outlive the turn it was asked in, and be asked between two turns; somebody always answers it."""

import anyio
import pytest

from segue.drivers.acp.handle import AcpAgent
from segue.model import events as e
from segue.model.errors import NothingToAnswer
from segue.model.requests import ApproveRequest
from tests.orchestrator.test_answering_in_words import ONE_TASK, asking
from tests.orchestrator.test_resuming import standing_still
from tests.orchestrator.test_talk_races import say
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import WITHIN, Theatre

__all__ = ["asking"]
pytestmark = pytest.mark.anyio

LEFT_OPEN = """
turns:
  - match: Do A
    do: [{aside: [{ask: {title: May I?}}]}, {wait_for: asked}]
  - match: Do B
    do: [{write: {path: b.txt, content: "B"}}, {say: Hm.}, {wait_for: go}]
"""
BETWEEN = """
turns:
  - match: Do A
    do: [{crash: true, once: true}]
  - match: Hello
    do: [{aside: [{wait_for: later}, {ask: {title: May I?}}]}]
  - match: Slowly
    do: [{say: Hm.}, {wait_for: go}]
"""


async def answers(theatre: Theatre) -> list[tuple[str, str]]:
    return [(each.outcome, each.by) for each in await theatre.events("build-it", e.PermissionAnswered)]


async def told(theatre: Theatre) -> list[tuple[str, str | None]]:
    """What the agent itself got as an answer, once it has one."""
    await theatre.until_noted(lambda: len(theatre.diary("answer")) >= 1)
    return [(each["outcome"], each["option"]) for each in theatre.diary("answer")]


async def left_open(theatre: Theatre) -> None:
    """The turn of the first task is over, and its question was not answered."""
    await theatre.begin_until(e.PermissionRequested, LEFT_OPEN, permissions="ask")
    (worktree_of(theatre) / "asked").touch()


async def asked_between(theatre: Theatre) -> None:
    """The agent is awake, nobody speaks to it, and it wants to know something."""
    await theatre.begin(BETWEEN, plan=ONE_TASK, permissions="ask")
    await theatre.until("build-it", "paused")
    assert await say(theatre, "Hello") == "sent"
    await standing_still(theatre)
    (worktree_of(theatre) / "later").touch()
    await theatre.event("build-it", e.PermissionRequested)


async def test_a_question_that_is_open_at_the_end_of_its_turn_is_taken_back_and_the_agent_told(opened: Theatre) -> None:
    await left_open(opened)
    await opened.event("build-it", e.TaskCompleted)
    assert await answers(opened) == [("interrupted", "segue")]
    assert await told(opened) == [("cancelled", None)]
    with pytest.raises(NothingToAnswer):
        await opened.orchestrator.answer("build-it", ApproveRequest())
    await opened.go_until("build-it", "completed")


async def test_a_question_of_a_turn_that_is_over_excuses_no_silence(theatre: Theatre) -> None:
    async with theatre.open(stall_notice=300.0, silence_watchdog=36000.0):
        await left_open(theatre)
        await theatre.until_prompted(2)
        with anyio.fail_after(WITHIN):
            async with theatre.time_going_by(60):
                await theatre.event("build-it", e.Warned)
        assert {each.code for each in await theatre.events("build-it", e.Warned)} == {"stalled"}
        await theatre.go_until("build-it", "completed")


async def test_what_is_asked_between_two_turns_can_be_answered_in_the_next(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=600.0):
        await asked_between(theatre)
        assert await say(theatre, "Slowly") == "sent"
        assert (await theatre.orchestrator.answer("build-it", ApproveRequest())).status == "approved"
        assert await told(theatre) == [("selected", "allow")]
        (worktree_of(theatre) / "go").touch()
        await standing_still(theatre)


async def test_what_is_asked_between_two_turns_is_taken_back_at_the_end_of_the_next(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=600.0):
        await asked_between(theatre)
        assert await say(theatre, "Slowly") == "sent"
        (worktree_of(theatre) / "go").touch()
        assert await told(theatre) == [("cancelled", None)]
        assert await answers(theatre) == [("interrupted", "segue")]
        await standing_still(theatre)


async def test_what_nobody_answers_between_two_turns_is_denied_and_the_agent_told(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=6000.0, permission_timeout=60.0):
        await asked_between(theatre)
        await theatre.clock.advance(61)
        await theatre.sweep()
        assert await answers(theatre) == [("denied", "timeout")]
        assert await told(theatre) == [("selected", "reject")]


async def test_an_answer_that_is_too_late_becomes_a_message(asking: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = AcpAgent.answer

    async def too_late(agent: AcpAgent, request_id, option, words="") -> None:
        await answer(agent, request_id, None)
        await answer(agent, request_id, option, words)

    monkeypatch.setattr(AcpAgent, "answer", too_late)
    async with asking.open():
        await asking.begin_until(e.PermissionRequested, "turns: []", plan=ONE_TASK, agent="graph", permissions="ask")
        assert (await asking.prompt("build-it", "Call it segue.")).status == "answered"
        assert (await asking.first("build-it", e.Warned)).code == "answer_too_late"
        queued = await asking.events("build-it", e.PromptQueued)
        assert [each.text for each in queued[1:]] == ["Call it segue."]
