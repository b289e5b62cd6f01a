"""Streamed text is written in whole words, in order, and never with half a secret."""

import pytest

from segue.journal import open_journal
from segue.model.events import AgentMessage, AgentThought, TextDelta, ToolCalled
from segue.model.ids import new_attempt_id
from segue.orchestrator.run.recorder import LONGEST_PIECE, Recorder
from tests.journal.workflows import BOOT, TickingClock, begun

pytestmark = pytest.mark.anyio


@pytest.fixture
async def recorder(tmp_path):
    async with open_journal(f"sqlite:///{tmp_path}/segue.db", TickingClock()) as journal:
        workflow_id, session_id = await begun(journal)
        attempt = new_attempt_id()
        await journal.transact(workflow_id, lambda t: t.runs.claim(session_id, 1, attempt, BOOT))
        yield Recorder(journal=journal, workflow_id=workflow_id, session_id=session_id, run=1, attempt=attempt)


async def written(recorder: Recorder) -> list[object]:
    return [record.event for record in (await recorder.journal.records(recorder.workflow_id))[4:]]


def said(text: str) -> TextDelta:
    return TextDelta(role="message", text=text)


async def test_pieces_of_one_message_become_one_event(recorder: Recorder) -> None:
    for piece in ("Hel", "lo ", "there"):
        await recorder.add_text(said(piece))
    assert await written(recorder) == []
    await recorder.flush()
    assert await written(recorder) == [AgentMessage(text="Hello there")]


async def test_an_event_comes_after_the_text_before_it_and_a_thought_is_not_a_message(recorder: Recorder) -> None:
    called = ToolCalled(call_id="c", title="Write", tool="edit")
    await recorder.add_text(TextDelta(role="thought", text="Hm."))
    await recorder.add_text(said("I write."))
    await recorder.record(called)
    await recorder.add_text(said("Done."))
    await recorder.flush()
    assert await written(recorder) == [
        AgentThought(text="Hm."),
        AgentMessage(text="I write."),
        called,
        AgentMessage(text="Done."),
    ]


async def test_a_secret_in_two_pieces_is_still_recognised(recorder: Recorder) -> None:
    token = "ghp_" + "a1B2" * 9
    await recorder.add_text(said(f"The token is {token[:20]}"))
    await recorder.flush_whole_words()
    await recorder.add_text(said(f"{token[20:]} and that is it"))
    await recorder.flush()
    text = "".join(event.text for event in await written(recorder))
    assert text == "The token is [redacted:github-token] and that is it"


async def test_a_secret_of_several_words_is_still_recognised(recorder: Recorder) -> None:
    for piece in ("Send it so:\n", "Authorization: ", "Bearer ", "0123456789abcdefABCDEF", " and no more"):
        await recorder.add_text(said(piece))
        await recorder.flush_whole_words()
    await recorder.flush()
    text = "".join(event.text for event in await written(recorder))
    assert text == "Send it so:\nAuthorization: Bearer [redacted:authorization] and no more"


async def test_a_private_key_in_many_pieces_is_still_recognised(recorder: Recorder) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIE\nvQIB\n-----END PRIVATE KEY-----"
    await recorder.add_text(said("Look: "))
    for line in key.splitlines(keepends=True):
        await recorder.add_text(said(line))
        await recorder.flush_whole_words()
    await recorder.flush()
    assert "".join(event.text for event in await written(recorder)) == "Look: [redacted:private-key]"


async def test_text_without_end_is_written_before_it_fills_the_memory(recorder: Recorder) -> None:
    await recorder.add_text(said("word " * (LONGEST_PIECE // 5 + 1)))
    (event,) = await written(recorder)
    assert len(event.text) >= LONGEST_PIECE - 5


async def test_a_word_without_end_is_written_too(recorder: Recorder) -> None:
    await recorder.add_text(said("x" * (LONGEST_PIECE + 1)))
    (event,) = await written(recorder)
    assert len(event.text) == LONGEST_PIECE + 1
