"""Messages that waited for the agent reach it as one prompt, and each is still one message."""

import signal
from os import kill

import pytest

from segue.model import crash
from segue.model import events as e
from segue.model.requests import Shown
from tests.orchestrator.races import torn
from tests.orchestrator.test_pictures import PNG
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

SCRIPT = """
turns:
  - match: Do A
    do: [{write: {path: a.txt, content: "A"}}, {wait_for: go}]
  - match: Use tabs
    do: [{say: So be it.}]
  - match: Do B
    do: [{write: {path: b.txt, content: "B"}}]
"""
SAID = ("Use tabs.", "No, spaces.", "Use tabs after all.")
FATAL = SCRIPT.replace("{say: So be it.}", "{hang: true, once: true}")


async def said_meanwhile(theatre: Theatre, script: str = SCRIPT, *shown: Shown) -> list[str]:
    """The ids of what was said while the agent was at work on its first task."""
    await theatre.begin_until(e.ToolFinished, script)
    answers = [await theatre.prompt("build-it", text, wait=False, images=shown) for text in SAID]
    assert [each.status for each in answers] == ["waiting"] * 3
    return [str(each.prompt_id) for each in answers]


def heard(theatre: Theatre) -> list[tuple[str, str, int]]:
    """What the agent itself got of it: as which prompt, in which words, with how many pictures."""
    entries = [entry for entry in theatre.diary("prompt") if "tabs" in entry["text"] or "spaces" in entry["text"]]
    return [(entry["prompt_id"], entry["text"], entry.details.get("images", 0)) for entry in entries]


async def moves(theatre: Theatre, ids: list[str]) -> list[tuple[str, str]]:
    kinds = (e.PromptSent, e.PromptAcknowledged, e.PromptNotSent)
    workflow_id = (await theatre.orchestrator.workflow("build-it")).id
    events = [record.event for record in await theatre.services.journal.records(workflow_id, limit=10_000)]
    return [(each.kind, each.prompt_id) for each in events if isinstance(each, kinds) and each.prompt_id in ids]


async def test_what_was_said_meanwhile_is_one_turn_and_each_message_has_its_own_way(opened: Theatre) -> None:
    ids = await said_meanwhile(opened, SCRIPT, Shown(name="sketch.png", data=PNG))
    view = await opened.go_until("build-it", "completed")
    way = ("prompt.sent", "prompt.acknowledged")
    assert await moves(opened, ids) == [(kind, each) for kind in way for each in ids]
    sent = [each for each in await opened.events("build-it", e.PromptSent) if each.prompt_id in ids]
    assert [each.part_of for each in sent] == [ids[-1], ids[-1], None]
    ended = [each.prompt_id for each in await opened.events("build-it", e.TurnEnded)]
    assert [each in ids for each in ended] == [False, True, False]
    assert (view.waiting_messages, view.undelivered) == (0, ())
    together = "\n\n".join(f"{each}\n\n[Picture: sketch.png]" for each in SAID)
    assert heard(opened) == [(ids[-1], together, 3)]


async def test_each_message_has_a_turn_of_its_own_where_that_is_wanted(theatre: Theatre) -> None:
    async with theatre.open(merge_messages=False):
        ids = await said_meanwhile(theatre)
        await theatre.go_until("build-it", "completed")
        assert [each.part_of for each in await theatre.events("build-it", e.PromptSent)] == [None] * 5
    assert heard(theatre) == [(prompt_id, text, 0) for prompt_id, text in zip(ids, SAID, strict=True)]


async def test_what_went_out_together_and_was_never_answered_is_shown_and_not_sent_again(opened: Theatre) -> None:
    ids = await said_meanwhile(opened, FATAL)
    (worktree_of(opened) / "go").touch()
    await opened.until_prompted(2)
    kill((await opened.first("build-it", e.AgentStarted)).pid, signal.SIGKILL)
    view = await opened.until("build-it", "paused")
    assert [each.prompt_id for each in view.undelivered] == ids
    view = await opened.resume_until("build-it", "completed")
    assert [each.prompt_id for each in view.undelivered] == ids
    assert await moves(opened, ids) == [("prompt.sent", each) for each in ids]
    assert [each for each, *_ in heard(opened)] == [ids[-1]]


async def test_what_did_not_go_out_yet_waits_for_the_next_run_all_of_it(theatre: Theatre) -> None:
    async with theatre.open():
        ids = await said_meanwhile(theatre)
    async with theatre.open():
        assert (await theatre.orchestrator.workflow("build-it")).waiting_messages == 3
        (worktree_of(theatre) / "go").touch()
        view = await theatre.resume_until("build-it", "completed")
        assert (view.waiting_messages, view.undelivered) == (0, ())
    assert [(each, text.endswith("\n\n".join(SAID))) for each, text, _ in heard(theatre)] == [(ids[-1], True)]


async def test_what_was_taken_and_did_not_go_out_waits_again_all_of_it(opened: Theatre) -> None:
    def tear_away(point: str) -> None:
        if point == "turn.start.after":
            crash.arm(None)
            raise torn("the server was stopped in the middle of the work")

    ids = await said_meanwhile(opened)
    crash.arm(tear_away)
    try:
        view = await opened.go_until("build-it", "paused")
    finally:
        crash.arm(None)
    assert (view.tasks_done, view.waiting_messages) == (1, 3)
    assert (view.undelivered, await moves(opened, ids), heard(opened)) == ((), [], [])
    view = await opened.resume_until("build-it", "completed")
    assert (view.waiting_messages, view.undelivered) == (0, ())
    assert heard(opened) == [(ids[-1], "\n\n".join(SAID), 0)]
