"""What is kept while a conversation grows."""

import logging
from dataclasses import replace

import pytest

from segue.model import events as e
from segue.model.checkpoint import CheckpointType
from segue.model.findings import Findings
from segue.model.ids import CheckpointId
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "a1B2" * 9


def growing(
    *used: int,
    size: int | None = 1_000_000,
    say: str = "I decided to use tabs instead of spaces, because the linter wants them.",
) -> str:
    reports = ", ".join(f"{{usage: {{used: {each}, size: {size}}}}}" for each in used)
    work = f"{{write: {{path: a.txt, content: A}}}}, {{say: '{say}'}}, {reports}"
    return f"turns: [{{match: Task 1 of 2, do: [{work}, {{say: Done.}}]}}]"


async def checkpoints(theatre: Theatre, kind: CheckpointType) -> list[e.CheckpointCreated]:
    return [each for each in await theatre.events("build-it", e.CheckpointCreated) if each.type is kind]


async def test_every_fifty_thousand_new_tokens_are_kept(theatre: Theatre, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "segue")
    async with theatre.open():
        await theatre.begin(growing(30_000, 55_000, 60_000, 120_000))
        view = await theatre.until("build-it", "completed")
        told = await theatre.events("build-it", e.ContextRefreshed)
        assert [each.new_tokens for each in told] == [55_000, 65_000]
        kept = await checkpoints(theatre, CheckpointType.CONTEXT_REFRESH)
        assert [each.checkpoint_id for each in kept] == [each.checkpoint_id for each in told]
        assert all(each.commit for each in kept)
        entry = await theatre.orchestrator.memory.get_memory_by_id(told[0].memory_id or "")
        assert "use tabs instead of spaces" in entry.content and "created a.txt" in entry.content
        assert told[0].checkpoint_id in entry.content and entry.provenance.workflow_id == view.id
        (session,) = await theatre.orchestrator.sessions("build-it")
        assert session.context_tokens_new == 0
    assert "[segue] Context refresh complete (tokens_flushed=55000)" in caplog.messages


async def test_what_is_new_in_the_context_since_the_last_refresh_can_be_seen(opened: Theatre) -> None:
    await opened.begin(growing(30_000, 55_000, 60_000, 20_000, 27_000, 25_000))
    await opened.until("build-it", "completed")
    (session,) = await opened.orchestrator.sessions("build-it")
    assert (session.usage.context_tokens, session.context_tokens_new) == (25_000, 12_000)


async def test_what_is_remembered_holds_no_secret(opened: Theatre) -> None:
    await opened.begin(growing(55_000, say=f"We use the key {SECRET} instead of a password."))
    await opened.until("build-it", "completed")
    (told,) = await opened.events("build-it", e.ContextRefreshed)
    assert SECRET not in (await opened.orchestrator.memory.get_memory_by_id(told.memory_id)).content


async def test_the_same_checkpoint_is_memorized_once(opened: Theatre) -> None:
    await opened.begin(growing(55_000))
    view = await opened.until("build-it", "completed")
    (told,) = await opened.events("build-it", e.ContextRefreshed)
    checkpoint = await opened.services.journal.checkpoints.get(view.id, told.checkpoint_id)
    assert (checkpoint.current_task, checkpoint.clean_boundary) == ("a", False)
    found = Findings(checkpoint_id=checkpoint.id)
    other = replace(checkpoint, id=CheckpointId("ckpt-of-this-test"))
    once, twice = [await opened.orchestrator.memory.memorize_checkpoint(other, found) for _ in range(2)]
    assert (once.status, twice.status, once.memory.id) == ("stored", "unchanged", twice.memory.id)


async def test_a_reached_budget_is_in_the_log(theatre: Theatre, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "segue")
    async with theatre.open():
        await theatre.begin(growing(33_000, size=40_000))
        await theatre.until("build-it", "completed")
    assert caplog.messages.count("[segue] Context budget reached") == 1


async def test_a_snapshot_is_taken_before_an_agent_compacts_by_itself(opened: Theatre) -> None:
    agent = replace(opened.services.agents["rehearsal"], compacts=True)
    opened.services.agents = {**opened.services.agents, "rehearsal": agent}
    await opened.begin(growing(28_500, 29_000, 8_000, size=40_000))
    await opened.until("build-it", "completed")
    (kept,) = await checkpoints(opened, CheckpointType.BEFORE_COMPACTION)
    assert (kept.snapshot, kept.clean_boundary) == (True, False)
    assert len(await opened.events("build-it", e.Compacted)) == 1


async def test_that_nobody_knows_the_window_is_said_once(opened: Theatre) -> None:
    await opened.begin(growing(1_000, 2_000, size=0))
    await opened.until("build-it", "completed")
    warned = [each.code for each in await opened.events("build-it", e.Warned)]
    assert warned == ["window_unknown"]
