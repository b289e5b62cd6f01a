"""Augment: `/chat-stream`, in lines of JSON.

It is no model's API but that of the server between Auggie and one, as far as Auggie was seen to use it.
"""

from collections.abc import Iterator

from segue.testing.model.dialects.parts import arguments, chunks, in_json, objects, table
from segue.testing.model.exchange import JsonObject, Message, ModelError, ModelReply, ModelRequest, ToolCall, ToolResult

# Types of nodes, in a request and in an answer.
_TEXT, _RESULT = 0, 1
_SAID, _CALL = 0, 5
# Stop reasons.
_DONE, _CALLS = 1, 3


def read(body: JsonObject, path: str) -> ModelRequest:
    """Parse a request of Augment's chat API, with the earlier exchanges that it carries."""
    guidelines = str(body.get("user_guidelines") or "")
    messages = [Message(role="system", text=guidelines)] if guidelines else []
    for exchange in objects(body.get("chat_history")):
        messages += _given(exchange.get("request_nodes"), exchange.get("request_message"))
        messages.append(_answered(exchange))
    return ModelRequest(
        messages=(*messages, *_given(body.get("nodes"), body.get("message"))),
        tools={str(each.get("name")): _schema(each) for each in objects(body.get("tool_definitions"))},
        model=str(body.get("model") or "scripted"),
        stream=True,
    )


def _schema(tool: JsonObject) -> JsonObject:
    """Return the schema of a tool's parameters; empty if it is unreadable."""
    return table(arguments(str(tool.get("input_schema_json") or "")))


def _given(nodes: object, text: object) -> Iterator[Message]:
    """Yield the messages of one request: tool results, or the user's text."""
    results = tuple(
        ToolResult(id=str(result.get("tool_use_id")), text=str(result.get("content")))
        for node in objects(nodes)
        if node.get("type") == _RESULT and (result := table(node.get("tool_result_node")))
    )
    if results:
        yield Message(role="tool", results=results)
    said = [str(table(node.get("text_node")).get("content")) for node in objects(nodes) if node.get("type") == _TEXT]
    if words := "\n".join([*([str(text)] if text else []), *said]):
        yield Message(role="user", text=words)


def _answered(exchange: JsonObject) -> Message:
    """Return the model's message in an earlier exchange."""
    nodes = objects(exchange.get("response_nodes"))
    said = "".join(str(node.get("content")) for node in nodes if node.get("type") == _SAID)
    calls = tuple(
        ToolCall(
            id=str(call.get("tool_use_id")),
            name=str(call.get("tool_name")),
            arguments=arguments(str(call.get("input_json"))),
        )
        for node in nodes
        if node.get("type") == _CALL and (call := table(node.get("tool_use")))
    )
    return Message(role="assistant", text=said or str(exchange.get("response_text") or ""), calls=calls)


def whole(reply: ModelReply) -> JsonObject:
    """Return an answer as one document."""
    return {"text": reply.text, "nodes": list(_nodes(reply)), "stop_reason": _CALLS if reply.calls else _DONE}


def pieces(reply: ModelReply) -> Iterator[JsonObject]:
    """Yield an answer as the lines of a stream."""
    for each in chunks(reply.text):
        yield {"text": each}
    for node in _nodes(reply):
        yield {"text": "", "nodes": [node]}
    yield {"text": "", "nodes": [], "stop_reason": _CALLS if reply.calls else _DONE}


def _nodes(reply: ModelReply) -> Iterator[JsonObject]:
    """Yield the text and the calls of an answer as nodes."""
    if reply.text:
        yield {"id": 0, "type": _SAID, "content": reply.text}
    for number, call in enumerate(reply.calls, 1):
        use = {"tool_use_id": call.id, "tool_name": call.name, "input_json": in_json(call.arguments)}
        yield {"id": number, "type": _CALL, "content": "", "tool_use": use}


def trouble(trouble: ModelError) -> tuple[int, JsonObject, dict[str, str]]:
    """Return the status, body and headers of an error."""
    return trouble.status, {"error": trouble.message}, {}


def counted(tokens: int) -> JsonObject:
    """Return the answer to a request to count tokens."""
    return {"tokens": tokens}
