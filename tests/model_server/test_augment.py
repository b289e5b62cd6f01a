"""Augment's server answers in lines, and gets the whole conversation with every request."""

import json
from typing import Any

import pytest

from segue.testing.model import Failure, Say, Script, Shell, Write, rule, scripted_model
from tests.model_server.knocking import Answer, post

pytestmark = pytest.mark.anyio

TOOLS = {
    "save-file": {"properties": {"path": {}, "file_content": {}}},
    "launch-process": {"properties": {"command": {}, "wait": {}, "max_wait_seconds": {}}},
}


def body(*nodes: dict[str, Any], history: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    tools = [{"name": name, "input_schema_json": json.dumps(schema)} for name, schema in TOOLS.items()]
    return {"message": "", "nodes": nodes, "chat_history": history, "tool_definitions": tools}


def text(words: str) -> dict[str, Any]:
    return {"id": 1, "type": 0, "text_node": {"content": words}}


def lines(answer: Answer) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines()]


def nodes(answer: Answer) -> list[dict[str, Any]]:
    return [node for line in lines(answer) for node in line.get("nodes", ())]


async def test_words_come_in_pieces_and_once_whole() -> None:
    said = "This answer is long enough to come in several pieces."
    async with scripted_model(Script(rules=(rule("hello", Say(said)),))) as model:
        answer = await post(model, "/chat-stream", body(text("hello")))
    assert "".join(line["text"] for line in lines(answer)) == said
    assert [node["content"] for node in nodes(answer)] == [said]
    assert lines(answer)[-1]["stop_reason"] == 1


@pytest.mark.parametrize(
    ("does", "name", "given"),
    [
        (Write("a.txt", "content"), "save-file", {"path": "a.txt", "file_content": "content"}),
        (Shell("ls"), "launch-process", {"command": "ls", "wait": True, "max_wait_seconds": 600}),
    ],
)
async def test_its_own_tools_are_found(does: Any, name: str, given: dict[str, Any]) -> None:
    async with scripted_model(Script(rules=(rule("go", does),))) as model:
        answer = await post(model, "/chat-stream", body(text("go")))
    [node] = nodes(answer)
    assert (node["tool_use"]["tool_name"], json.loads(node["tool_use"]["input_json"])) == (name, given)
    assert lines(answer)[-1]["stop_reason"] == 3


async def test_the_log_knows_what_was_said_before() -> None:
    use = {"tool_use_id": "1", "tool_name": "save-file", "input_json": '{"path": "a.txt"}'}
    exchange = {
        "request_nodes": [text("write it")],
        "response_nodes": [{"type": 0, "content": "Gladly."}, {"type": 5, "tool_use": use}],
    }
    result = {"type": 1, "tool_result_node": {"tool_use_id": "1", "content": "saved"}}
    async with scripted_model() as model:
        await post(model, "/chat-stream", body(result, history=(exchange,)))
        [request] = model.requests
    assert request.dialect == "augment"
    assert [message.role for message in request.messages] == ["user", "assistant", "tool"]
    assert [call.arguments for message in request.messages for call in message.calls] == [{"path": "a.txt"}]
    assert all(request.contains(words) for words in ("write it", "Gladly.", "saved"))


async def test_an_error_has_its_number() -> None:
    async with scripted_model(Script(rules=(rule("go", Failure(kind="unauthorized")),))) as model:
        assert (await post(model, "/chat-stream", body(text("go")))).status == 401
