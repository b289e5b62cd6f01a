"""The files that are written from the journal, and written again when they are not right."""

import json
from pathlib import Path
from typing import Any

import pytest

from segue.model.agents import Choices
from segue.model.views import SessionFiles
from tests.orchestrator.test_resuming import session_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def rebuilt(theatre: Theatre) -> SessionFiles:
    return await theatre.orchestrator.session_files(await session_of(theatre))


async def test_what_was_said_is_there_to_read_when_a_run_is_over(between: Theatre) -> None:
    file = between.root / "sessions" / f"{await session_of(between)}.jsonl"
    first = [entry["type"] for entry in lines(file)]
    assert first == ["user_message", "tool_call", "tool_result", "agent_message", "turn_end"]
    await between.resume_until("build-it", "completed")
    assert [entry["type"] for entry in lines(file)][len(first) :][:1] == ["user_message"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert (await rebuilt(between)).were_right


async def test_the_whole_conversation_pairs_calls_and_results(between: Theatre) -> None:
    document = json.loads(Path((await rebuilt(between)).session).read_text())
    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "user", "assistant"]
    call, result = document["messages"][1]["content"][0], document["messages"][2]["content"][0]
    assert call["tool_use"]["id"] == result["tool_result"]["tool_use_id"]
    assert document["messages"][3]["content"] == [{"type": "text", "text": "A is done."}]
    metadata = document["metadata"]
    assert (metadata["status"], metadata["turnCount"], metadata["lastStopReason"]) == ("paused", 1, "end_turn")


async def test_the_document_names_the_model_as_the_agent_called_it(opened: Theatre) -> None:
    opened.choices = Choices(model="large")
    counted = "turns: [{match: Do A, do: [{usage: {used: 10, size: 100}}, {say: A is done.}]}]"
    await opened.begin(f"models: [small, large]\n{counted}")
    await opened.until("build-it", "completed")
    document = json.loads(Path((files := await rebuilt(opened)).session).read_text())
    assert files.were_right and document["metadata"]["model"] == "large"


@pytest.mark.parametrize("damage", [b"", b"{torn", b"\0\0\0\0", b'{"seq": "nonsense"}\n'])
async def test_a_damaged_file_is_noticed_and_written_again(between: Theatre, damage: bytes) -> None:
    files = await rebuilt(between)
    before = Path(files.history).read_bytes()
    Path(files.history).write_bytes(before[:-20] + damage if damage else b"")
    assert not (await rebuilt(between)).were_right
    assert Path(files.history).read_bytes() == before
    assert (await rebuilt(between)).were_right


async def test_a_torn_last_line_costs_nothing_at_the_next_run(between: Theatre) -> None:
    file = Path((await rebuilt(between)).history)
    file.write_bytes(file.read_bytes()[:-7])
    await between.resume_until("build-it", "completed")
    assert (await rebuilt(between)).were_right
