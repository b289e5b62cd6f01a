"""A driver that does something wrong does not pass: each of these spoils one thing of a driver that passes."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
from candidates import ExampleCandidate

from segue.drivers import Agent, Driver, Image, Introduction, Launch
from segue.model.events import AgentEvent, AgentExited, TextDelta, ToolFinished, UsageReported
from segue.model.ids import PromptId, RequestId
from segue.testing.conformance import CHECKS, Say, checks
from segue.testing.conformance.candidate import Check

pytestmark = pytest.mark.anyio


class Spoiled:
    """An agent that does everything as the real one does, but for what a subclass changes."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)


class Silent(Spoiled):
    """Keeps events of some kind to itself."""

    hidden: type[AgentEvent] = UsageReported

    def events(self) -> AsyncIterator[AgentEvent]:
        return self._shown()

    async def _shown(self) -> AsyncGenerator[AgentEvent]:
        async for event in self.agent.events():
            if not isinstance(event, self.hidden):
                yield event


class WithoutAnExit(Silent):
    hidden = AgentExited


class WithoutResults(Silent):
    hidden = ToolFinished


class Obliging(Spoiled):
    """Takes every answer for yes."""

    async def answer(self, request_id: RequestId, option: str | None) -> None:
        await self.agent.answer(request_id, "allow")


class Stubborn(Spoiled):
    """Goes on when it is told to stop."""

    async def cancel(self) -> None:
        # From here on there is nothing to wait for.
        checks.WITHIN = 1.0


class Impatient(Spoiled):
    """Takes a second prompt while it is at the first."""

    async def prompt(self, prompt_id: PromptId, text: str, images: Sequence[Image] = ()) -> None:
        self.agent._turn = ""  # type: ignore[attr-defined]
        await self.agent.prompt(prompt_id, text, images)


class Repeating(Spoiled):
    """Tells what was said long ago as if it were news."""

    async def prompt(self, prompt_id: PromptId, text: str, images: Sequence[Image] = ()) -> None:
        self.agent.events().give(TextDelta(role="message", text="I will remember."))  # type: ignore[attr-defined]
        await self.agent.prompt(prompt_id, text, images)


class SpoiledDriver(Driver):
    def __init__(self, driver: Driver, spoil: type[Spoiled]) -> None:
        self._driver, self._spoil = driver, spoil

    @asynccontextmanager
    async def start(self, launch: Launch) -> AsyncGenerator[Any]:
        async with self._driver.start(launch) as agent:
            yield self._spoil(agent)

    @asynccontextmanager
    async def resume(self, launch: Launch, token: str) -> AsyncGenerator[Any]:
        async with self._driver.resume(launch, token) as agent:
            yield self._spoil(agent)

    async def introduce(self, launch: Launch) -> Introduction:
        return await self._driver.introduce(launch)


class Forgetful(SpoiledDriver):
    """Begins anew where it was asked to go back, and says nothing."""

    def resume(self, launch: Launch, token: str) -> AbstractAsyncContextManager[Agent]:
        return self.start(launch)


def spoiled(root: Path, spoil: type[Spoiled]) -> ExampleCandidate:
    candidate = ExampleCandidate(root)
    candidate.driver = SpoiledDriver(candidate.driver, spoil)
    return candidate


@pytest.mark.parametrize(
    ("spoil", "check", "error", "says"),
    [
        (Silent, checks.usage_is_told_before_the_turn_ends, AssertionError, "The context was reported as"),
        (WithoutAnExit, checks.a_killed_agent_ends_the_stream_with_its_exit, AssertionError, "the stream ended with"),
        (WithoutResults, checks.a_tool_call_is_told_from_its_beginning_to_its_end, AssertionError, "Of the call was"),
        (Obliging, checks.a_refused_question_has_no_effect, AssertionError, "written all the same"),
        (Stubborn, checks.a_cancelled_turn_ends_and_the_next_one_works, TimeoutError, None),
        (Impatient, checks.a_second_prompt_within_a_turn_is_refused, AssertionError, "WrongState was not raised"),
        (Repeating, checks.a_conversation_comes_back_after_a_kill, AssertionError, "came as news"),
    ],
)
async def test_a_spoiled_agent_does_not_pass(
    spoil: type[Spoiled],
    check: Check,
    error: type[Exception],
    says: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Put back what one of them changes.
    monkeypatch.setattr(checks, "WITHIN", checks.WITHIN)
    with pytest.raises(error, match=says):
        await check(spoiled(tmp_path, spoil))


@pytest.mark.parametrize(
    "check",
    [
        checks.a_conversation_comes_back_after_a_kill,
        checks.a_token_that_nobody_knows_is_rejected,
        checks.another_conversation_than_the_one_asked_for_is_not_taken_for_it,
    ],
    ids=str,
)
async def test_a_driver_that_begins_anew_in_silence_does_not_pass(check: Check, tmp_path: Path) -> None:
    candidate = ExampleCandidate(tmp_path)
    candidate.driver = Forgetful(candidate.driver, Spoiled)
    with pytest.raises(AssertionError):
        await check(candidate)


async def test_what_an_agent_cannot_show_is_skipped_and_says_why(tmp_path: Path) -> None:
    candidate = ExampleCandidate(tmp_path)
    candidate.plays = frozenset({Say})
    with pytest.raises(SkipTest, match="does not play Write"):
        await checks.a_refused_question_has_no_effect(candidate)


def test_every_check_of_the_suite_is_in_the_list() -> None:
    written = {each for each in vars(checks).values() if isinstance(each, Check)}
    assert written == set(CHECKS)
