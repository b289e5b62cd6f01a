"""What a talk leaves alone: the interruption before it, a wish for another way, and a pause."""

import anyio
import pytest

from segue.model import events as e
from segue.model.status import Way
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

CRASH = """
turns:
  - match: Do A
    do:
      - crash: {when: after, of: {write: {path: a.txt, content: "A"}}}
        once: true
      - say: A is there.
"""


@pytest.fixture
def server_settings() -> dict[str, float]:
    return {"talk_linger": 60.0}


async def crashed_and_talked_to(theatre: Theatre) -> None:
    await theatre.begin(CRASH)
    await theatre.until("build-it", "paused")
    await theatre.prompt("build-it", "Hello")
    await theatre.event("build-it", e.TurnEnded)


async def test_a_talk_does_not_make_the_next_task_forget_what_was_interrupted(opened: Theatre) -> None:
    await crashed_and_talked_to(opened)
    await opened.resume_until("build-it", "completed")
    prompts = [p.text for p in await opened.events("build-it", e.PromptQueued) if p.task_id == "a"]
    assert "interrupted in the middle" in prompts[-1], prompts[-1]


async def test_a_fresh_conversation_that_is_asked_for_is_fresh_though_the_agent_is_awake(opened: Theatre) -> None:
    await crashed_and_talked_to(opened)
    resumed = await opened.resume("build-it", way=Way.FRESH)
    await opened.until("build-it", "completed")
    assert (resumed.way, resumed.session_number) == (Way.FRESH, 2)


async def test_a_failure_is_over_when_the_agent_is_up_again(opened: Theatre) -> None:
    await crashed_and_talked_to(opened)
    view = await opened.orchestrator.workflow("build-it")
    assert view.failure is None, view.failure
    await opened.cancel("build-it")


async def test_a_pause_is_not_undone_by_words_that_were_waiting(opened: Theatre) -> None:
    await opened.begin_until(e.PromptSent, "turns: [{match: Do A, do: [{wait_for: go}]}]")
    async with anyio.create_task_group() as group:
        group.start_soon(opened.prompt, "build-it", "Hello")
        said = (await opened.event("build-it", e.PromptSent)).seq
        await opened.event("build-it", e.PromptQueued, after=said)
        await opened.pause("build-it", "lunch")
        (opened.root / "worktrees" / "build-it" / "go").touch()
        await opened.event("build-it", e.RunEnded)
    await opened.until("build-it", "paused")
    view = await opened.orchestrator.workflow("build-it")
    assert (view.runs, view.waiting_messages) == (1, 1)


async def test_an_interruption_is_remembered_after_the_talk_about_it_is_over(opened: Theatre) -> None:
    await crashed_and_talked_to(opened)
    await opened.as_time_goes_by("build-it", "paused")
    await opened.resume_until("build-it", "completed")
    prompts = [p.text for p in await opened.events("build-it", e.PromptQueued) if p.task_id == "a"]
    assert "interrupted in the middle" in prompts[-1]


async def test_a_conversation_that_began_with_a_talk_is_told_the_issue_with_its_first_task(opened: Theatre) -> None:
    await opened.begin("on_new: {login: true}")
    await opened.until("build-it", "failed")
    opened.script.write_text("turns: []")
    await opened.prompt("build-it", "Hello")
    await opened.event("build-it", e.TurnEnded)
    await opened.as_time_goes_by("build-it", "failed")
    assert (await opened.resume("build-it")).way is Way.NATIVE
    await opened.until("build-it", "completed")
    assert "# Build it" in opened.diary("prompt")[1]["text"]
