"""What each agent says it used, in the shape that it was seen to send."""

from dataclasses import replace
from typing import Any

import pytest
from literally import LiteralAgent, answer, update

from segue.drivers import Launch, load
from segue.model.events import UsageReported
from segue.model.ids import PromptId
from segue.testing.rehearsal.launch import rest_of_turn

pytestmark = pytest.mark.anyio

DRIVER = load("acp")
CODEX = {"totalTokens": 9020, "inputTokens": 1000, "cachedInputTokens": 8000, "outputTokens": 20}
GEMINI = {"input_tokens": 9000, "output_tokens": 20}
CLAUDE = {**CODEX, "cachedWriteTokens": 300, "reasoningOutputTokens": 0}


def usage(**counted: int) -> dict[str, Any]:
    return answer(stopReason="end_turn", usage=counted)


def quota(*models: tuple[str, dict[str, int]]) -> dict[str, Any]:
    listed = [{"model": model, "token_count": count} for model, count in models]
    return answer(stopReason="end_turn", usage={}, _meta={"quota": {"model_usage": listed}})


async def reports_of(launch: Launch, turns: int = 1) -> list[UsageReported]:
    found: list[UsageReported] = []
    async with DRIVER.start(launch) as agent:
        for number in range(turns):
            await agent.prompt(PromptId(f"prompt-{number}"), "go")
            found += [event for event in await rest_of_turn(agent) if isinstance(event, UsageReported)]
    return found


def counted(input: int, output: int, cached: int | None, model: str | None = None) -> UsageReported:
    return UsageReported(input_tokens=input, output_tokens=output, cached_tokens=cached, model=model)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        # Input without the cache, as claude and opencode count; with it, as copilot does.
        (usage(inputTokens=1000, outputTokens=20, cachedReadTokens=8000, totalTokens=9020), counted(1000, 20, 8000)),
        (usage(inputTokens=9000, outputTokens=20, cachedReadTokens=8000, totalTokens=9020), counted(1000, 20, 8000)),
        (
            usage(inputTokens=1, outputTokens=2, cachedReadTokens=4, cachedWriteTokens=8, totalTokens=15),
            counted(9, 2, 4),
        ),
        (usage(inputTokens=10, outputTokens=2, thoughtTokens=5, totalTokens=17), counted(10, 7, None)),
        (usage(inputTokens=10, outputTokens=7, thoughtTokens=5, totalTokens=17), counted(10, 7, None)),
        (quota(("gpt-5.4", CODEX)), counted(1000, 20, 8000, "gpt-5.4")),
        (quota(("claude-opus-5-5", CLAUDE)), counted(1300, 20, 8000, "claude-opus-5-5")),
        (quota(("gemini-3.8-flash", GEMINI)), counted(9000, 20, None, "gemini-3.8-flash")),
    ],
)
async def test_turn_tokens_are_told_apart(literal: LiteralAgent, said: dict[str, Any], heard: UsageReported) -> None:
    assert await reports_of(literal.launch(session_prompt=[said])) == [heard]


async def test_each_model_of_a_turn_is_told_by_itself(literal: LiteralAgent) -> None:
    said = quota(("big", CODEX), ("small", {"inputTokens": 1, "outputTokens": 2}), ("odd", {}))
    reports = await reports_of(literal.launch(session_prompt=[said]))
    assert reports == [counted(1000, 20, 8000, "big"), counted(1, 2, None, "small")]


async def test_the_model_of_the_conversation_is_the_one_that_the_agent_has_taken(literal: LiteralAgent) -> None:
    option = {"id": "m", "category": "model", "type": "select", "currentValue": "vendor/one", "options": []}
    launch = literal.launch(
        session_new=[answer(sessionId="s", configOptions=[option])],
        session_prompt=[
            update("usage_update", used=1, size=2, cost={"amount": 0.5, "currency": "USD"}),
            usage(inputTokens=1, outputTokens=2, totalTokens=3),
        ],
    )
    assert [report.model for report in await reports_of(launch)] == ["vendor/one", "vendor/one"]


async def test_a_model_that_is_named_beside_the_window_is_the_better_name(literal: LiteralAgent) -> None:
    named = update("usage_update", used=1, size=2, _meta={"_claude/model": "claude-opus-5-5"})
    launch = literal.launch(session_prompt=[named, usage(inputTokens=1, outputTokens=2, totalTokens=3)])
    assert [report.model for report in await reports_of(launch)] == ["claude-opus-5-5", "claude-opus-5-5"]


async def test_an_agent_that_counts_since_its_start_is_told_turn_by_turn(literal: LiteralAgent) -> None:
    said = usage(inputTokens=9000, outputTokens=20, cachedReadTokens=8000, totalTokens=9020)
    launch = replace(literal.launch(session_prompt=[said]), counts_since_start=True)
    assert await reports_of(launch, turns=2) == [counted(1000, 20, 8000), counted(0, 0, 0)]
