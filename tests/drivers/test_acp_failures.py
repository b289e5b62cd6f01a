"""Turns that fail, and connections that break."""

from datetime import UTC, datetime

import anyio
import pytest
from literally import LiteralAgent, answer, update

from segue.drivers import load
from segue.model import errors
from segue.model.events import AgentExited, TextDelta, ToolCalled, ToolFinished, TurnEnded, TurnFailed
from segue.model.ids import PromptId
from segue.model.status import Failure
from segue.testing.rehearsal.launch import Rehearsal, rest_of_turn

pytestmark = pytest.mark.anyio

DRIVER = load("acp")
LIMIT = "You've hit your limit · resets 3pm (UTC)"
LOST = "The connection to the agent broke, though its process was still there."


def chunk(words: str, **more: str) -> dict[str, object]:
    return update("agent_message_chunk", content={"type": "text", "text": words}, **more)


async def last_of(rehearsal: Rehearsal, steps: str) -> object:
    async with DRIVER.start(rehearsal.launch(f"turns: [{{do: [{steps}]}}]")) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        return (await rest_of_turn(agent))[-1]


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("quota", Failure.QUOTA),
        ("login", Failure.LOGIN_REQUIRED),
        ("corrupt", Failure.TRANSCRIPT_CORRUPT),
    ],
)
async def test_an_error_that_can_be_understood_is_named(rehearsal: Rehearsal, kind: str, failure: Failure) -> None:
    event = await last_of(rehearsal, f"{{fail: {{kind: {kind}}}}}")
    assert isinstance(event, TurnFailed)
    assert (event.prompt_id, event.failure, event.reset_at) == ("prompt-1", failure, None)


async def test_a_used_up_quota_says_when_it_is_full_again(rehearsal: Rehearsal) -> None:
    event = await last_of(rehearsal, '{fail: {kind: quota, reset: "2031-01-01T12:00:00Z"}}')
    assert isinstance(event, TurnFailed) and event.reset_at == datetime(2031, 1, 1, 12, tzinfo=UTC)


async def test_a_prompt_that_does_not_fit_any_more_ends_the_turn_as_a_full_window_does(rehearsal: Rehearsal) -> None:
    event = await last_of(rehearsal, "{fail: {kind: full}}")
    assert event == TurnEnded(prompt_id=PromptId("prompt-1"), reason="max_tokens")


async def test_a_last_message_that_is_nothing_but_a_complaint_fails_the_turn(rehearsal: Rehearsal) -> None:
    event = await last_of(rehearsal, f'{{write: {{path: a, content: ""}}}}, {{say: "{LIMIT}"}}')
    assert isinstance(event, TurnFailed)
    assert (event.failure, event.message) == (Failure.QUOTA, LIMIT)
    assert event.reset_at is not None and event.reset_at.hour == 15


@pytest.mark.parametrize(
    "steps",
    [
        f'{{say: "The page says: {LIMIT}"}}',
        f'{{say: "{LIMIT}"}}, {{say: " is what it says."}}',
        f'{{say: "{LIMIT}"}}, {{write: {{path: a, content: ""}}}}',
        f'{{say: "{LIMIT}"}}, {{think: Hm.}}, {{say: Done.}}',
    ],
)
async def test_an_agent_that_talks_about_limits_is_not_failed(rehearsal: Rehearsal, steps: str) -> None:
    assert await last_of(rehearsal, steps) == TurnEnded(prompt_id=PromptId("prompt-1"), reason="end_turn")


async def test_a_complaint_after_other_messages_and_notices_is_heard(literal: LiteralAgent) -> None:
    complaint = "exceeded retry limit, last status: 429 Too Many Requests\n\n"
    for before in ([chunk("Warning: no metadata.\n\n")], [chunk("I am at it", messageId="m1")]):
        launch = literal.launch(session_prompt=[*before, chunk(complaint), answer(stopReason="end_turn")])
        async with DRIVER.start(launch) as agent:
            await agent.prompt(PromptId("prompt-1"), "go")
            event = (await rest_of_turn(agent))[-1]
        assert isinstance(event, TurnFailed) and event.failure is Failure.QUOTA


async def test_a_complaint_of_the_turn_before_does_not_fail_the_next(literal: LiteralAgent) -> None:
    launch = literal.launch(session_prompt=[answer(stopReason="end_turn"), chunk(LIMIT)])
    async with DRIVER.start(launch) as agent:
        for _ in range(2):
            await agent.prompt(PromptId("prompt-1"), "go")
            assert isinstance((await rest_of_turn(agent))[-1], TurnEnded)
            # Between the turns, and not while the next one is under way.
            with anyio.fail_after(30):
                assert await anext(agent.events()) == TextDelta(role="message", text=LIMIT)


async def test_the_number_of_a_vendors_answer_is_understood(literal: LiteralAgent) -> None:
    error = {"jsonrpc": "2.0", "id": "$id", "error": {"code": 429, "message": "Slow down."}}
    async with DRIVER.start(literal.launch(session_prompt=[error])) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        assert await rest_of_turn(agent) == [
            TurnFailed(prompt_id=PromptId("prompt-1"), failure=Failure.QUOTA, message="Slow down.")
        ]


async def test_what_is_heard_after_a_failed_turn_still_comes(rehearsal: Rehearsal) -> None:
    script = "turns: [{match: first, do: [{fail: {kind: quota}}]}, {do: [{say: Again.}]}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await agent.prompt(PromptId("prompt-1"), "first")
        await rest_of_turn(agent)
        await agent.prompt(PromptId("prompt-2"), "second")
        assert (await rest_of_turn(agent))[0] == TextDelta(role="message", text="Again.")


async def test_an_output_that_closes_while_the_process_lives_is_a_lost_connection(rehearsal: Rehearsal) -> None:
    script = 'turns: [{do: [{write: {path: a, content: ""}}, {mute: true}, {hang: true}]}]'
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        events = await rest_of_turn(agent)
        assert [type(event) for event in events] == [ToolCalled, ToolFinished, AgentExited]
        assert events[-1] == AgentExited(code=None, detail=LOST)
        with pytest.raises(errors.TransportLost):
            await agent.prompt(PromptId("prompt-2"), "go on")


@pytest.mark.parametrize("where", ["on_initialize", "on_new"])
async def test_a_connection_lost_before_the_agent_is_ready_is_named(rehearsal: Rehearsal, where: str) -> None:
    with anyio.fail_after(30), pytest.raises(errors.TransportLost, match="though its process was still there"):
        async with DRIVER.start(rehearsal.launch(f"{where}: {{mute: true, hang: true}}")):
            pass


async def test_a_slow_agent_is_waited_for_but_not_for_ever(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch("on_initialize: {delay: 0.2}")):
        pass
    with pytest.raises(errors.HandshakeTimeout):
        async with DRIVER.start(rehearsal.launch("on_initialize: {delay: 60}", handshake_timeout=0.5)):
            pass
