"""OpenAI Chat Completions: `/v1/chat/completions`."""

from collections.abc import Iterator

from segue.testing.model.dialects.openai import trouble
from segue.testing.model.dialects.parts import arguments, as_text, chunks, in_json, new_id, objects, table, text_of
from segue.testing.model.exchange import JsonObject, Message, ModelReply, ModelRequest, Role, ToolCall, ToolResult

__all__ = ["counted", "pieces", "read", "trouble", "whole"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}


def read(body: JsonObject, path: str) -> ModelRequest:
    """Parse a request of OpenAI's chat completions API."""
    wanted = table(table(body.get("response_format")).get("json_schema"))
    functions = [table(tool.get("function")) or tool for tool in objects(body.get("tools"))]
    return ModelRequest(
        messages=tuple(_message(each) for each in objects(body.get("messages"))),
        tools={str(each.get("name")): table(each.get("parameters")) for each in functions},
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        wanted=wanted.get("schema"),
    )


def _message(message: JsonObject) -> Message:
    """Return one message with its calls or its result."""
    role = str(message.get("role", "user"))
    content = message.get("content")
    if role == "tool":
        result = ToolResult(id=str(message.get("tool_call_id")), text=as_text(content or ""))
        return Message(role="tool", results=(result,))
    calls = tuple(
        ToolCall(
            id=str(call.get("id")),
            name=str(table(call.get("function")).get("name")),
            arguments=arguments(str(table(call.get("function")).get("arguments") or "")),
        )
        for call in objects(message.get("tool_calls"))
    )
    return Message(role=_ROLES.get(role, "user"), text=text_of(content), calls=calls)


def whole(reply: ModelReply) -> JsonObject:
    """Return an answer as one document."""
    message: JsonObject = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_call(index, call) for index, call in enumerate(reply.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def pieces(reply: ModelReply) -> Iterator[JsonObject | str]:
    """Encode an answer as a stream of chunks."""
    head = _head(reply, "chat.completion.chunk")
    deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": each} for each in chunks(reply.text)]
    for index, call in enumerate(reply.calls):
        first = _call(index, call)
        text, first["function"]["arguments"] = first["function"]["arguments"], ""
        deltas.append({"tool_calls": [first]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": each}}]} for each in chunks(text)]
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]}
    yield {**head, "choices": [], "usage": _usage(reply)}
    yield "[DONE]"


def _head(reply: ModelReply, kind: str) -> JsonObject:
    """Return the common fields of an answer or a chunk."""
    return {"id": new_id("chatcmpl-"), "object": kind, "created": 0, "model": reply.model}


def _call(index: int, call: ToolCall) -> JsonObject:
    """Return a call in the dialect's form."""
    function = {"name": call.name, "arguments": in_json(call.arguments)}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def _finish(reply: ModelReply) -> str:
    """Return the finish reason of an answer."""
    return "tool_calls" if reply.calls else "stop"


def _usage(reply: ModelReply) -> JsonObject:
    """Return the tokens of an answer; cached ones are part of the prompt's."""
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }


def counted(tokens: int) -> JsonObject:
    """Return the answer to a request to count tokens."""
    return {"tokens": tokens}
