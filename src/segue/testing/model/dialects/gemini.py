"""Gemini: `…:generateContent`, `…:streamGenerateContent` and `…:countTokens`."""

from collections.abc import Iterator

from segue.testing.model.dialects.parts import as_text, chunks, new_id, objects, table, text_of
from segue.testing.model.exchange import JsonObject, Message, ModelError, ModelReply, ModelRequest, ToolCall, ToolResult


def read(body: JsonObject, path: str) -> ModelRequest:
    """Parse a request of Gemini's API; the path names the model."""
    system = text_of(table(body.get("systemInstruction")).get("parts"))
    messages = [Message(role="system", text=system)] if system else []
    configuration = table(body.get("generationConfig"))
    functions = [each for tool in objects(body.get("tools")) for each in objects(tool.get("functionDeclarations"))]
    as_json = configuration.get("responseMimeType") == "application/json"
    schema = table(configuration.get("responseJsonSchema") or configuration.get("responseSchema"))
    return ModelRequest(
        messages=(*messages, *(_message(each) for each in objects(body.get("contents")))),
        tools={str(each.get("name")): _schema(each) for each in functions},
        model=path.rpartition("/")[2].partition(":")[0],
        stream=":stream" in path,
        wanted=schema if as_json else None,
    )


def _schema(function: JsonObject) -> JsonObject:
    """Return the schema of a function's parameters, whose name is in camel or snake case; empty if there is none."""
    keys = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    return table(next((function[key] for key in keys if function.get(key)), None))


def _message(content: JsonObject) -> Message:
    """Return one content with its calls and results."""
    parts = objects(content.get("parts"))
    results = tuple(
        ToolResult(
            id=str(response.get("id") or response.get("name")),
            text=as_text(table(response.get("response")).get("output") or response.get("response") or ""),
        )
        for part in parts
        if (response := table(part.get("functionResponse")))
    )
    calls = tuple(
        ToolCall(
            id=str(call.get("id") or call.get("name")), name=str(call.get("name")), arguments=table(call.get("args"))
        )
        for part in parts
        if (call := table(part.get("functionCall")))
    )
    role = "tool" if results else "assistant" if content.get("role") == "model" else "user"
    return Message(role=role, text=text_of(parts), calls=calls, results=results)


def whole(reply: ModelReply) -> JsonObject:
    """Return an answer as one document."""
    said: list[JsonObject] = [{"text": reply.text}] if reply.text else []
    return _answer(reply, said + _calls(reply), ended=True, identity=new_id(""))


def pieces(reply: ModelReply) -> Iterator[JsonObject]:
    """Yield an answer as the documents of a stream."""
    identity = new_id("")
    parts: list[list[JsonObject]] = [[{"text": each}] for each in chunks(reply.text)]
    if calls := _calls(reply):
        parts.append(calls)
    for index, each in enumerate(parts):
        yield _answer(reply, each, ended=index == len(parts) - 1, identity=identity)


def _calls(reply: ModelReply) -> list[JsonObject]:
    """Return the calls of an answer in the dialect's form."""
    return [{"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in reply.calls]


def _answer(reply: ModelReply, parts: list[JsonObject], *, ended: bool, identity: str) -> JsonObject:
    """Return a document with these parts; the last one (`ended`) has finish reason and tokens."""
    candidate: JsonObject = {"content": {"role": "model", "parts": parts}, "index": 0}
    answer: JsonObject = {"candidates": [candidate], "modelVersion": reply.model, "responseId": identity}
    if ended:
        candidate["finishReason"] = "STOP"
        answer["usageMetadata"] = {
            "promptTokenCount": reply.input_tokens,
            "cachedContentTokenCount": reply.cached_tokens,
            "candidatesTokenCount": reply.output_tokens,
            "totalTokenCount": reply.input_tokens + reply.output_tokens,
        }
    return answer


_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


def trouble(trouble: ModelError) -> tuple[int, JsonObject, dict[str, str]]:
    """Return the status, body and headers of an error; a delay is in its details."""
    details: list[JsonObject] = []
    if trouble.retry_after is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        details.append({"@type": kind, "retryDelay": f"{trouble.retry_after}s"})
    status = _STATUSES.get(trouble.status, "INTERNAL")
    error = {"code": trouble.status, "message": trouble.message, "status": status, "details": details}
    return trouble.status, {"error": error}, {}


def counted(tokens: int) -> JsonObject:
    """Return the answer to a request to count tokens."""
    return {"totalTokens": tokens}
