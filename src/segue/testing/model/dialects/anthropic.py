"""Anthropic Messages: `/v1/messages` and `/v1/messages/count_tokens`."""

from collections.abc import Iterator
from datetime import datetime

from segue.testing.model.dialects.parts import as_text, chunks, in_json, new_id, objects, table, text_of
from segue.testing.model.exchange import JsonObject, Message, ModelError, ModelReply, ModelRequest, ToolCall, ToolResult


def read(body: JsonObject, path: str) -> ModelRequest:
    """Parse a request of Anthropic's messages API."""
    system = text_of(body.get("system"))
    messages = [Message(role="system", text=system)] if system else []
    wanted = table(table(body.get("output_config")).get("format") or body.get("output_format"))
    return ModelRequest(
        messages=(*messages, *(part for each in objects(body.get("messages")) for part in _messages(each))),
        tools={str(tool.get("name")): table(tool.get("input_schema")) for tool in objects(body.get("tools"))},
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        wanted=wanted.get("schema"),
    )


def _messages(message: JsonObject) -> Iterator[Message]:
    """Yield a message, split in two if it contains tool results and a new prompt, as after an interrupted tool."""
    parts = objects(message.get("content"))
    texts = [part for part in parts if part.get("type") == "text" and not str(part.get("text")).startswith(_REMINDER)]
    if texts and any(part.get("type") == "tool_result" for part in parts):
        yield _message({**message, "content": [part for part in parts if part not in texts]})
        yield _message({**message, "content": texts})
    else:
        yield _message(message)


def _message(message: JsonObject) -> Message:
    """Return one message with its calls and results."""
    content, parts = message.get("content"), objects(message.get("content"))
    results = tuple(
        ToolResult(id=str(part.get("tool_use_id")), text=as_text(part.get("content") or ""))
        for part in parts
        if part.get("type") == "tool_result"
    )
    calls = tuple(
        ToolCall(id=str(part.get("id")), name=str(part.get("name")), arguments=table(part.get("input")))
        for part in parts
        if part.get("type") == "tool_use"
    )
    role = "tool" if results else message.get("role", "user")
    return Message(role=role, text=text_of(content), calls=calls, results=results)


def whole(reply: ModelReply) -> JsonObject:
    """Return an answer as one document."""
    return {**_head(reply), "content": _blocks(reply), "stop_reason": _stop(reply), "usage": _usage(reply)}


def pieces(reply: ModelReply) -> Iterator[JsonObject]:
    """Yield an answer as the events of a stream."""
    yield {"type": "message_start", "message": _head(reply)}
    for index, block in enumerate(_blocks(reply)):
        yield from _block(index, block)
    ending = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": _usage(reply)}
    yield {"type": "message_stop"}


def _block(index: int, block: JsonObject) -> Iterator[JsonObject]:
    """Yield the events of one content block."""
    empty: JsonObject
    if block["type"] == "text":
        empty = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": each} for each in chunks(block["text"])]
    else:
        empty = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": each} for each in chunks(in_json(block["input"]))]
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _head(reply: ModelReply) -> JsonObject:
    """Return an answer without its content."""
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(reply) | {"output_tokens": 1},
    }


def _blocks(reply: ModelReply) -> list[JsonObject]:
    """Return the text and the calls of an answer as content blocks."""
    text: list[JsonObject] = [{"type": "text", "text": reply.text}] if reply.text else []
    return text + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in reply.calls
    ]


def _stop(reply: ModelReply) -> str:
    """Return the stop reason of an answer."""
    return "tool_use" if reply.calls else "end_turn"


def _usage(reply: ModelReply) -> JsonObject:
    """Return the tokens of an answer; cached ones are counted apart from input."""
    return {
        "input_tokens": reply.input_tokens - reply.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.cached_tokens,
        "output_tokens": reply.output_tokens,
    }


# Start of a text that agents add to a tool result.
_REMINDER = "<system-reminder>"
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}


def trouble(trouble: ModelError) -> tuple[int, JsonObject, dict[str, str]]:
    """Return the status, body and headers of an error."""
    status = 529 if trouble.kind == "overloaded" else trouble.status
    headers: dict[str, str] = {}
    if trouble.reset:
        moment = datetime.fromisoformat(trouble.reset)
        headers["anthropic-ratelimit-unified-reset"] = str(int(moment.timestamp()))
    error = {"type": _TYPES.get(status, "api_error"), "message": trouble.message}
    return status, {"type": "error", "error": error, "request_id": new_id("req_")}, headers


def counted(tokens: int) -> JsonObject:
    """Return the answer to a request to count tokens."""
    return {"input_tokens": tokens}
