"""Conversations that agents replace by a summary, said or unsaid."""

from typing import Any

import pytest
from literally import LiteralAgent, answer, update

from segue.drivers import load
from segue.model.events import Compacted, TurnEnded, UsageReported
from segue.testing.rehearsal.launch import Rehearsal, turn

pytestmark = pytest.mark.anyio

DRIVER = load("acp")
COMPACTING = """
turns:
  - do:
      - usage: {used: 900, size: 1000}
      - compact: {before: 901, after: 100}
      - usage: {used: 120, size: 1000}
"""


async def compactions(literal: LiteralAgent, *updates: dict[str, Any]) -> list[Compacted]:
    async with DRIVER.start(literal.launch(session_prompt=[*updates, answer(stopReason="end_turn")])) as agent:
        return [event for event in await turn(agent, "go") if isinstance(event, Compacted)]


def used(tokens: int) -> dict[str, Any]:
    return update("usage_update", used=tokens, size=1000)


def compacting(status: str, **more: Any) -> list[dict[str, Any]]:
    call = update("tool_call", toolCallId="c", title="Compact conversation", status="in_progress", **more)
    return [call, update("tool_call_update", toolCallId="c", status=status)]


async def test_a_compaction_is_told_once_and_is_no_tool_call(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(COMPACTING)) as agent:
        assert (await turn(agent, "go"))[:-1] == [
            UsageReported(context_tokens=900, window=1000),
            Compacted(tokens_before=901, tokens_after=100),
            UsageReported(context_tokens=120, window=1000),
        ]


async def test_a_compaction_known_by_its_title_is_one_too(literal: LiteralAgent) -> None:
    found = await compactions(literal, used(900), *compacting("completed"), used(100))
    assert found == [Compacted(tokens_before=900, tokens_after=100)]


async def test_a_window_reported_while_the_agent_compacts_belongs_to_that(literal: LiteralAgent) -> None:
    begun, ended = compacting("completed")
    assert await compactions(literal, used(900), begun, used(900), used(100), used(110), ended, used(120)) == [
        Compacted(tokens_before=900, tokens_after=110)
    ]


async def test_tokens_that_are_counted_after_the_end_are_told_with_it(literal: LiteralAgent) -> None:
    counted = update("tool_call_update", toolCallId="c", rawOutput={"preTokens": 905, "postTokens": 95})
    found = await compactions(literal, used(900), *compacting("completed"), counted, used(100), counted)
    assert found == [Compacted(tokens_before=905, tokens_after=95)]


async def test_a_compaction_of_which_nothing_more_is_said_is_told_when_the_agent_goes_on(literal: LiteralAgent) -> None:
    for after in ([update("agent_message_chunk", content={"type": "text", "text": "So."}), used(100)], []):
        found = await compactions(literal, used(900), *compacting("completed"), *after)
        assert found == [Compacted(tokens_before=900)]


async def test_a_compaction_that_failed_is_none(literal: LiteralAgent) -> None:
    assert await compactions(literal, used(900), *compacting("failed"), used(910)) == []


async def test_a_window_that_is_suddenly_half_empty_was_compacted(literal: LiteralAgent) -> None:
    found = await compactions(literal, used(900), used(451), used(100), used(900), used(0), used(800))
    assert found == [Compacted(tokens_before=451, tokens_after=100)]


async def test_a_later_drop_is_another_compaction(literal: LiteralAgent) -> None:
    found = await compactions(literal, used(900), *compacting("completed"), used(100), used(900), used(100))
    assert found == [Compacted(tokens_before=900, tokens_after=100)] * 2


async def test_a_compaction_that_is_remembered_is_not_told_again(literal: LiteralAgent) -> None:
    launch = literal.launch(
        initialize=[answer(protocolVersion=1, agentCapabilities={"loadSession": True})],
        session_load=[*compacting("completed"), answer()],
        session_prompt=[used(100), answer(stopReason="end_turn")],
    )
    async with DRIVER.resume(launch, "s") as agent:
        assert [type(event) for event in await turn(agent, "go")] == [UsageReported, TurnEnded]
