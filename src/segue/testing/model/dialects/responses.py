"""OpenAI Responses: `/v1/responses`."""

from collections.abc import Iterator
from itertools import count

from segue.testing.model.dialects.openai import trouble
from segue.testing.model.dialects.parts import arguments, as_text, chunks, in_json, new_id, objects, table, text_of
from segue.testing.model.exchange import JsonObject, Message, ModelReply, ModelRequest, ToolCall, ToolResult

__all__ = ["counted", "pieces", "read", "trouble", "whole"]


def read(body: JsonObject, path: str) -> ModelRequest:
    """Parse a request of OpenAI's responses API."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    instructions = [Message(role="system", text=str(body["instructions"]))] if body.get("instructions") else []
    messages = (_message(item) for item in items)
    wanted = table(table(body.get("text")).get("format"))
    return ModelRequest(
        messages=(*instructions, *(message for message in messages if message is not None)),
        tools=dict(_tool(tool) for tool in objects(body.get("tools"))),
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        wanted=wanted.get("schema"),
    )


def _tool(tool: JsonObject) -> tuple[str, JsonObject]:
    """Return the name and the schema of a tool; one without a name has its type as name."""
    return str(tool.get("name") or tool.get("type")), table(tool.get("parameters"))


def _message(item: JsonObject) -> Message | None:
    """Return the message that an item is; None for other kinds of items."""
    match item.get("type", "message"):
        case "message":
            role = item.get("role", "user")
            return Message(role="system" if role == "developer" else role, text=text_of(item.get("content")))
        case "function_call":
            return _calling(item, arguments(str(item.get("arguments") or "")))
        case "custom_tool_call":
            return _calling(item, str(item.get("input") or ""))
        case "function_call_output" | "custom_tool_call_output":
            result = ToolResult(id=str(item.get("call_id")), text=as_text(item.get("output") or ""))
            return Message(role="tool", results=(result,))
        case _:
            return None


def _calling(item: JsonObject, given: JsonObject | str) -> Message:
    """Return the message that contains one call."""
    call = ToolCall(id=str(item.get("call_id")), name=str(item.get("name")), arguments=given)
    return Message(role="assistant", calls=(call,))


def whole(reply: ModelReply) -> JsonObject:
    """Return an answer as one document."""
    return _response(reply, new_id("resp_"), _items(reply))


def pieces(reply: ModelReply) -> Iterator[JsonObject]:
    """Yield an answer as the events of a stream."""
    number = count()
    identity, items = new_id("resp_"), _items(reply)
    begun = _response(reply, identity, []) | {"status": "in_progress", "usage": None}
    yield {"type": "response.created", "sequence_number": next(number), "response": begun}
    for index, item in enumerate(items):
        for event in _item(item):
            yield {**event, "sequence_number": next(number), "output_index": index}
    ended = _response(reply, identity, items)
    yield {"type": "response.completed", "sequence_number": next(number), "response": ended}


def _item(item: JsonObject) -> Iterator[JsonObject]:
    """Yield the events of one output item."""
    place = {"item_id": item["id"]}
    match item["type"]:
        case "message":
            yield {"type": "response.output_item.added", "item": {**item, "status": "in_progress", "content": []}}
            yield from _text(place | {"content_index": 0}, item["content"][0])
        case "function_call":
            yield {"type": "response.output_item.added", "item": {**item, "status": "in_progress", "arguments": ""}}
            for each in chunks(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": each}
            yield {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
        case _:
            yield {"type": "response.output_item.added", "item": {**item, "status": "in_progress", "input": ""}}
            yield {"type": "response.custom_tool_call_input.done", **place, "input": item["input"]}
    yield {"type": "response.output_item.done", "item": item}


def _text(place: JsonObject, part: JsonObject) -> Iterator[JsonObject]:
    """Yield the events of one text."""
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for each in chunks(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": each}
    yield {"type": "response.output_text.done", **place, "text": part["text"]}
    yield {"type": "response.content_part.done", **place, "part": part}


def _items(reply: ModelReply) -> list[JsonObject]:
    """Return the text and the calls of an answer as output items."""
    items: list[JsonObject] = []
    if reply.text:
        part: JsonObject = {"type": "output_text", "text": reply.text, "annotations": []}
        items.append(
            {
                "type": "message",
                "id": new_id("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    return items + [_called(call) for call in reply.calls]


def _called(call: ToolCall) -> JsonObject:
    """Return a call as an output item; text arguments make it a custom call."""
    common = {"call_id": call.id, "name": call.name, "status": "completed"}
    if isinstance(call.arguments, str):
        return {"type": "custom_tool_call", "id": new_id("ctc_"), **common, "input": call.arguments}
    return {"type": "function_call", "id": new_id("fc_"), **common, "arguments": in_json(call.arguments)}


def _response(reply: ModelReply, identity: str, items: list[JsonObject]) -> JsonObject:
    """Return the document of an answer with these items."""
    return {
        "id": identity,
        "object": "response",
        "created_at": 0,
        "model": reply.model,
        "status": "completed",
        "output": items,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": reply.input_tokens,
            "input_tokens_details": {"cached_tokens": reply.cached_tokens},
            "output_tokens": reply.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.input_tokens + reply.output_tokens,
        },
    }


def counted(tokens: int) -> JsonObject:
    """Return the answer to a request to count tokens."""
    return {"object": "response.input_tokens", "input_tokens": tokens}
