"""Asks a scripted model over HTTP, in each vendor's own words."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import anyio

from segue.testing.model import ScriptedModel
from segue.testing.model.answers import DialectName

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}, "description": {"type": "string"}}}
COMMAND = "Bash"
Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def events(self) -> list[Any]:
        """What came as server-sent events."""
        lines = [line[6:] for line in self.text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


async def post(model: ScriptedModel, path: str, body: Any) -> Answer:
    return await anyio.to_thread.run_sync(_post, model.url, path, body)


def _post(url: str, path: str, body: Any) -> Answer:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, content, {"content-type": "application/json"})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, headers, answer.read().decode())
    finally:
        connection.close()


@dataclass(frozen=True)
class Vendor:
    """How one vendor's client asks, and how it reads the answer."""

    name: DialectName
    path: str
    streaming_path: str
    ask: Callable[[str], Body]
    go_on: Callable[[Body, Body], Body]
    """The request with the answer's tool call, and its result, added."""
    text: Callable[[Body], str]
    call: Callable[[Body], tuple[str, Body]]
    usage: Callable[[Body], tuple[int, int, int]]
    """Tokens read, of these from the cache, and written."""
    streamed: Callable[[list[Body]], str]
    streamed_call: Callable[[list[Body]], tuple[str, Body]]


def _of_type(events: list[Body], kind: str) -> list[Body]:
    return [event for event in events if event.get("type") == kind]


def _anthropic_result(body: Body, answer: Body) -> Body:
    [call] = answer["content"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "42 files"}]}
    added = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return {**body, "messages": [*body["messages"], *added]}


def _responses_result(body: Body, answer: Body) -> Body:
    [call] = answer["output"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "42 files"}
    return {**body, "input": [*body["input"], call, result]}


def _chat_result(body: Body, answer: Body) -> Body:
    message = answer["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "42 files"}
    return {**body, "messages": [*body["messages"], message, result]}


def _gemini_result(body: Body, answer: Body) -> Body:
    content = answer["candidates"][0]["content"]
    call = content["parts"][0]["functionCall"]
    response = {"id": call["id"], "name": call["name"], "response": {"output": "42 files"}}
    result = {"role": "user", "parts": [{"functionResponse": response}]}
    return {**body, "contents": [*body["contents"], content, result]}


def _parts(answer: Body) -> list[Body]:
    return answer["candidates"][0]["content"]["parts"]


def _message(answer: Body) -> Body:
    return answer["choices"][0]["message"]


def _anthropic_usage(answer: Body) -> tuple[int, int, int]:
    usage = answer["usage"]
    cached = usage["cache_read_input_tokens"]
    return usage["input_tokens"] + cached, cached, usage["output_tokens"]


def _anthropic_streamed_call(events: list[Body]) -> tuple[str, Body]:
    [start] = _of_type(events, "content_block_start")
    pieces = (each["delta"]["partial_json"] for each in _of_type(events, "content_block_delta"))
    return start["content_block"]["name"], json.loads("".join(pieces))


def _responses_streamed_call(events: list[Body]) -> tuple[str, Body]:
    [done] = _of_type(events, "response.output_item.done")
    pieces = (each["delta"] for each in _of_type(events, "response.function_call_arguments.delta"))
    return done["item"]["name"], json.loads("".join(pieces))


def _deltas(events: list[Body]) -> list[Body]:
    return [event["choices"][0]["delta"] for event in events if event["choices"]]


def _chat_streamed_call(events: list[Body]) -> tuple[str, Body]:
    functions = [delta["tool_calls"][0]["function"] for delta in _deltas(events) if "tool_calls" in delta]
    return functions[0]["name"], json.loads("".join(each["arguments"] for each in functions))


VENDORS = (
    Vendor(
        name="anthropic",
        path="/v1/messages",
        streaming_path="/v1/messages?beta=true",
        ask=lambda text: {
            "model": "claude-x",
            "max_tokens": 10,
            "system": [{"type": "text", "text": "Be kind."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
            "tools": [{"name": COMMAND, "input_schema": SCHEMA}],
        },
        go_on=_anthropic_result,
        text=lambda answer: answer["content"][0]["text"],
        call=lambda answer: (answer["content"][0]["name"], answer["content"][0]["input"]),
        usage=_anthropic_usage,
        streamed=lambda events: "".join(each["delta"]["text"] for each in _of_type(events, "content_block_delta")),
        streamed_call=_anthropic_streamed_call,
    ),
    Vendor(
        name="responses",
        path="/v1/responses",
        streaming_path="/v1/responses",
        ask=lambda text: {
            "model": "gpt-x",
            "instructions": "Be kind.",
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}],
            "tools": [{"type": "function", "name": COMMAND, "parameters": SCHEMA}],
        },
        go_on=_responses_result,
        text=lambda answer: answer["output"][0]["content"][0]["text"],
        call=lambda answer: (answer["output"][0]["name"], json.loads(answer["output"][0]["arguments"])),
        usage=lambda answer: (
            answer["usage"]["input_tokens"],
            answer["usage"]["input_tokens_details"]["cached_tokens"],
            answer["usage"]["output_tokens"],
        ),
        streamed=lambda events: "".join(each["delta"] for each in _of_type(events, "response.output_text.delta")),
        streamed_call=_responses_streamed_call,
    ),
    Vendor(
        name="chat",
        path="/v1/chat/completions",
        streaming_path="/v1/chat/completions",
        ask=lambda text: {
            "model": "gpt-x",
            "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}],
            "tools": [{"type": "function", "function": {"name": COMMAND, "parameters": SCHEMA}}],
        },
        go_on=_chat_result,
        text=lambda answer: _message(answer)["content"],
        call=lambda answer: (
            _message(answer)["tool_calls"][0]["function"]["name"],
            json.loads(_message(answer)["tool_calls"][0]["function"]["arguments"]),
        ),
        usage=lambda answer: (
            answer["usage"]["prompt_tokens"],
            answer["usage"]["prompt_tokens_details"]["cached_tokens"],
            answer["usage"]["completion_tokens"],
        ),
        streamed=lambda events: "".join(delta.get("content", "") for delta in _deltas(events)),
        streamed_call=_chat_streamed_call,
    ),
    Vendor(
        name="gemini",
        path="/v1beta/models/gemini-x:generateContent",
        streaming_path="/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
        ask=lambda text: {
            "systemInstruction": {"parts": [{"text": "Be kind."}]},
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "tools": [{"functionDeclarations": [{"name": COMMAND, "parametersJsonSchema": SCHEMA}]}],
        },
        go_on=_gemini_result,
        text=lambda answer: _parts(answer)[0]["text"],
        call=lambda answer: (_parts(answer)[0]["functionCall"]["name"], _parts(answer)[0]["functionCall"]["args"]),
        usage=lambda answer: (
            answer["usageMetadata"]["promptTokenCount"],
            answer["usageMetadata"]["cachedContentTokenCount"],
            answer["usageMetadata"]["candidatesTokenCount"],
        ),
        streamed=lambda events: "".join(_parts(event)[0].get("text", "") for event in events),
        streamed_call=lambda events: (
            _parts(events[-1])[0]["functionCall"]["name"],
            _parts(events[-1])[0]["functionCall"]["args"],
        ),
    ),
)
