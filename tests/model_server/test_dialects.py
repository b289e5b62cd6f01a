"""What every vendor's client must be able to do with the scripted model."""

from datetime import UTC, datetime

import pytest

from segue.testing.model import Failure, Say, Script, Shell, Step, Usage, rule, scripted_model
from tests.model_server.knocking import COMMAND, VENDORS, Vendor, post

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("vendor", VENDORS, ids=[vendor.name for vendor in VENDORS]),
]

LONG = "This answer is long enough to come in several pieces."
LIST = {"command": "ls | wc -l", "description": "Run it"}
SCRIPT = Script(
    rules=(
        rule("weather", Step(answer=Say(LONG), usage=Usage(input=900, cached=100, output=11))),
        rule("count the files", Shell("ls | wc -l"), Say("There are 42.")),
        rule("be limited", Failure(kind="rate_limited", retry_after=30)),
        rule("be unknown", Failure(kind="unauthorized")),
        rule("be spoiled", Failure(kind="thinking_blocks")),
        rule("be busy", Failure(kind="overloaded")),
    )
)


async def test_a_rule_answers_the_last_words_of_the_user(vendor: Vendor) -> None:
    async with scripted_model(SCRIPT) as model:
        answer = await post(model, vendor.path, vendor.ask("How is the weather?"))
    assert (answer.status, vendor.text(answer.json)) == (200, LONG)
    assert vendor.usage(answer.json) == (900, 100, 11)


async def test_an_answer_is_streamed_in_pieces(vendor: Vendor) -> None:
    async with scripted_model(SCRIPT) as model:
        answer = await post(model, vendor.streaming_path, {**vendor.ask("How is the weather?"), "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert len(answer.events) > 2
    assert vendor.streamed(answer.events) == LONG


async def test_a_tool_is_called_and_its_result_answered(vendor: Vendor) -> None:
    async with scripted_model(SCRIPT) as model:
        question = vendor.ask("Please count the files.")
        called = await post(model, vendor.path, question)
        answered = await post(model, vendor.path, vendor.go_on(question, called.json))
    assert vendor.call(called.json) == (COMMAND, LIST)
    assert vendor.text(answered.json) == "There are 42."


async def test_a_tool_call_is_streamed_too(vendor: Vendor) -> None:
    async with scripted_model(SCRIPT) as model:
        answer = await post(model, vendor.streaming_path, {**vendor.ask("count the files"), "stream": True})
    assert vendor.streamed_call(answer.events) == (COMMAND, LIST)


async def test_the_log_knows_what_was_said_before(vendor: Vendor) -> None:
    async with scripted_model(SCRIPT) as model:
        question = vendor.ask("Please count the files.")
        called = await post(model, vendor.path, question)
        await post(model, vendor.path, vendor.go_on(question, called.json))
        first, second = model.requests
    assert (first.dialect, first.tools, first.prompt) == (vendor.name, (COMMAND,), "Please count the files.")
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert [call.arguments for message in second.messages for call in message.calls] == [LIST]
    assert [result.text for message in second.messages for result in message.results] == ["42 files"]
    assert all(second.contains(words) for words in ("Be kind.", "count the files", "ls | wc -l", "42 files"))
    assert not first.contains("42 files")
    assert not second.remembers("count the files", "user")
    assert first.body == question


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("be limited", 429, "rate limit"),
        ("be unknown", 401, "key"),
        ("be spoiled", 400, "cannot be modified"),
        ("be busy", 503, "Overloaded"),
    ],
)
async def test_an_error_is_the_vendors_own(vendor: Vendor, words: str, status: int, sentence: str) -> None:
    async with scripted_model(SCRIPT) as model:
        answer = await post(model, vendor.path, vendor.ask(f"Please {words}."))
    expected = 529 if (vendor.name, status) == ("anthropic", 503) else status
    assert (answer.status, sentence in answer.json["error"]["message"]) == (expected, True)
    assert answer.headers.get("retry-after") == ("30" if status == 429 else None)


async def test_a_limit_says_when_it_ends(vendor: Vendor) -> None:
    reset = datetime(2030, 1, 1, tzinfo=UTC)
    failure = Failure(kind="quota", reset=reset.isoformat(), retry_after=60)
    async with scripted_model(Script(rules=(rule("", failure),))) as model:
        answer = await post(model, vendor.path, vendor.ask("Anything?"))
    told = {
        "anthropic": ("anthropic-ratelimit-unified-reset", str(int(reset.timestamp()))),
        "responses": ("x-ratelimit-reset-requests", "60s"),
        "chat": ("x-ratelimit-reset-requests", "60s"),
        "gemini": ("retry-after", "60"),
    }
    name, value = told[vendor.name]
    assert answer.headers[name] == value
