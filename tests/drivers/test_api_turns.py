"""Turns of the api agent: a real process, and the scripted model in place of a vendor's."""

import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from candidates import ApiCandidate
from client import Client, prompt
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from segue.drivers import Agent, Image, Launch
from segue.drivers.api import turns
from segue.drivers.api.conversation_files import CANCELLED, INTERRUPTED, ConversationFiles
from segue.drivers.api.file_root import FileRoot
from segue.drivers.api.models import Models
from segue.drivers.skeleton.agent_program import Channel
from segue.model import errors
from segue.model import events as e
from segue.model.agents import McpServer
from segue.model.ids import PromptId
from segue.model.status import Failure
from segue.testing.model import Call, Say, Script, Shell, Step, Usage, Write, rule
from segue.testing.model import Failure as Trouble
from segue.testing.rehearsal.launch import rest_of_turn, turn
from tests.equipment.waiting import until

pytestmark = pytest.mark.anyio

WITHIN = 60.0
DOORS = [("openai-chat", "/v1"), ("openai", "/v1"), ("anthropic", ""), ("google", "")]


@pytest.fixture
def api(tmp_path: Path) -> ApiCandidate:
    return ApiCandidate(tmp_path)


@asynccontextmanager
async def started(api: ApiCandidate, *rules: object, **variables: str) -> AsyncGenerator[tuple[Agent, Launch]]:
    async with (
        api.launch(Script(rules=rules), **variables) as launch,  # type: ignore[arg-type]
        api.driver.start(launch) as agent,
    ):
        yield agent, launch


async def allowed(agent: Agent, prompt: str, option: str = "allow") -> list[e.AgentEvent]:
    """A turn in which every question is answered so."""
    events: list[e.AgentEvent] = []
    await agent.prompt(PromptId("prompt-1"), prompt)
    with anyio.fail_after(WITHIN):
        async for event in agent.events():
            events.append(event)
            if isinstance(event, e.PermissionRequested):
                await agent.answer(event.request_id, option)
            if isinstance(event, e.TurnEnded | e.TurnFailed):
                break
    return events


def said(events: list[e.AgentEvent], role: str = "message") -> str:
    return "".join(event.text for event in events if isinstance(event, e.TextDelta) and event.role == role)


def last_results(api: ApiCandidate) -> list[str]:
    """As the model got them; some vendors want them packed in JSON."""
    assert api.model is not None
    results = [result.text for message in api.model.requests[-1].messages for result in message.results]
    return [next(iter(json.loads(text).values())) if text.startswith('{"') else text for text in results]


@pytest.mark.parametrize(("provider", "path"), DOORS, ids=[name for name, _ in DOORS])
async def test_every_vendors_model_works_and_remembers_after_a_kill(tmp_path: Path, provider: str, path: str) -> None:
    api = ApiCandidate(tmp_path, provider, path)
    script = Script(
        rules=(
            rule("FIRST", Write("note.txt", "from the model"), Say("WRITTEN")),
            rule("SECOND", Shell("touch begun; tail -f /dev/null"), Say("NEVER")),
            rule("THIRD", Say("STILL-THERE")),
        )
    )
    async with api.launch(script) as launch:
        async with api.driver.start(launch) as agent:
            token = agent.token
            assert said(await allowed(agent, "FIRST")) == "WRITTEN"
            assert (api.worktree / "note.txt").read_text() == "from the model"
            await agent.prompt(PromptId("prompt-2"), "SECOND")
            await kill_in_the_command(agent, api.worktree / "begun")
        async with api.driver.resume(launch, token) as agent:
            events = await turn(agent, "THIRD", WITHIN)
    assert said(events) == "STILL-THERE"
    assert "I was interrupted in shell(" in said(events, "thought")
    assert api.model is not None
    request = api.model.requests[-1]
    assert request.remembers("FIRST", "user") and request.remembers("WRITTEN", "assistant")
    assert request.remembers("from the model", "assistant") and request.remembers("touch begun", "assistant")
    assert last_results(api) == ["Wrote note.txt.", INTERRUPTED]


async def kill_in_the_command(agent: Agent, begun: Path) -> None:
    with anyio.fail_after(WITHIN):
        async for event in agent.events():
            if isinstance(event, e.PermissionRequested):
                await agent.answer(event.request_id, "allow")
                break
    await until(begun.exists)
    os.kill(agent.pid, signal.SIGKILL)
    await rest_of_turn(agent, WITHIN)


async def test_a_call_is_told_with_its_kind_its_input_and_its_file(api: ApiCandidate) -> None:
    async with started(api, rule("", Write("a/note.txt", "x"), Say("Done."))) as (agent, _):
        events = await allowed(agent, "write")
    [called] = [event for event in events if isinstance(event, e.ToolCalled)]
    assert (called.title, called.tool) == ("Write a/note.txt", "edit")
    assert called.input == {"path": "a/note.txt", "content": "x"}
    assert called.paths == (str(api.worktree / "a/note.txt"),)
    [question] = [event for event in events if isinstance(event, e.PermissionRequested)]
    assert (question.title, question.tool, question.call_id) == ("Write a/note.txt", "edit", called.call_id)


async def test_reading_is_not_asked_for(api: ApiCandidate) -> None:
    calls = (Call("list_files"), Call("read_file", {"path": "notes.txt"}), Call("search_files", {"expression": "not"}))
    async with started(api, rule("", *calls, Say("Done."))) as (agent, _):
        (api.worktree / "notes.txt").write_text("a note\n")
        events = await turn(agent, "look around", WITHIN)
    assert not any(isinstance(event, e.PermissionRequested) for event in events)
    assert last_results(api) == ["notes.txt", "a note\n", "notes.txt:1:a note\n"]


async def test_a_refused_call_is_told_to_the_model_and_the_turn_goes_on(api: ApiCandidate) -> None:
    async with started(api, rule("", Shell("touch done"), Say("Then not."))) as (agent, _):
        events = await allowed(agent, "do it", "reject")
    assert said(events) == "Then not."
    assert last_results(api) == ["The user refused this."]
    assert not (api.worktree / "done").exists()


async def test_what_a_model_asks_for_in_vain_is_told_to_it(api: ApiCandidate) -> None:
    wrong = (Call("read_file", {"path": "../../etc/passwd"}), Call("read_file", {"file": "x"}), Call("shell", "{]"))
    async with started(api, rule("", *wrong, Say("I see."))) as (agent, _):
        events = await turn(agent, "go", WITHIN)
    assert said(events) == "I see."
    assert [event.status for event in events if isinstance(event, e.ToolFinished)] == ["failed"] * 3
    outside, missing, broken = last_results(api)
    assert "is outside of the worktree" in outside
    assert "read_file cannot be called so: path" in missing
    assert "shell" in broken


async def test_a_cancelled_command_is_ended_and_the_model_hears_of_it(api: ApiCandidate) -> None:
    rules = (rule("hang", Shell("touch begun; tail -f /dev/null"), Say("NEVER")), rule("go on", Say("Going on.")))
    async with started(api, *rules) as (agent, _):
        await agent.prompt(PromptId("prompt-1"), "hang")
        with anyio.fail_after(WITHIN):
            async for event in agent.events():
                if isinstance(event, e.PermissionRequested):
                    await agent.answer(event.request_id, "allow")
                    break
        await until((api.worktree / "begun").exists)
        await agent.cancel()
        events = await rest_of_turn(agent, WITHIN)
        # The prompt, the call, and the result that says it was cancelled.
        assert events[-1] == e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="cancelled", bookmark="3")
        assert [event.output for event in events if isinstance(event, e.ToolFinished)] == [CANCELLED]
        assert said(await turn(agent, "go on", WITHIN)) == "Going on."
    assert last_results(api) == [CANCELLED]


async def test_what_was_read_from_the_cache_fills_the_context_and_is_no_input(api: ApiCandidate) -> None:
    steps = (Call("list_files"), Step(answer=Say("Done."), usage=Usage(input=90_000, output=12, cached=80_000)))
    async with started(api, rule("", *steps), SEGUE_API_WINDOW="131072") as (agent, _):
        events = await turn(agent, "go", WITHIN)
    reports = [event for event in events if isinstance(event, e.UsageReported)]
    assert [(each.context_tokens, each.window, each.cost_usd) for each in reports[:-1]][-1] == (90_012, 131_072, None)
    first = reports[0].context_tokens
    assert first is not None
    assert (reports[-1].input_tokens, reports[-1].output_tokens) == (10_000 + first - 7, 12 + 7)


async def test_a_window_that_nobody_named_is_left_open(api: ApiCandidate) -> None:
    async with started(api, rule("", Say("Done."))) as (agent, _):
        events = await turn(agent, "go", WITHIN)
    assert [event.window for event in events if isinstance(event, e.UsageReported)] == [None, None]


async def test_a_picture_reaches_the_model(api: ApiCandidate) -> None:
    async with started(api, rule("", Say("A dot."))) as (agent, _):
        assert agent.capabilities.images
        await agent.prompt(PromptId("prompt-1"), "what is this?", [Image(media_type="image/png", data=b"\x89PNG-dot")])
        assert said(await rest_of_turn(agent, WITHIN)) == "A dot."
    assert api.model is not None
    [content] = [each["content"] for each in api.model.requests[0].body["messages"] if each["role"] == "user"]
    assert content[0] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORy1kb3Q="}}
    assert content[1]["text"] == "what is this?"


@pytest.mark.parametrize(
    ("trouble", "failure"),
    [
        (Trouble(kind="unauthorized"), Failure.LOGIN_REQUIRED),
        (Trouble(kind="rate_limited"), Failure.QUOTA),
        (Trouble(kind="overloaded"), Failure.OTHER),
    ],
)
async def test_a_refusal_of_a_vendor_is_not_retried(api: ApiCandidate, trouble: Trouble, failure: Failure) -> None:
    async with started(api, rule("", trouble)) as (agent, _):
        failed = (await turn(agent, "go", WITHIN))[-1]
    assert isinstance(failed, e.TurnFailed) and failed.failure is failure
    assert api.model is not None and len(api.model.requests) == 1


async def test_a_vendor_that_says_when_to_come_again_is_heard(api: ApiCandidate) -> None:
    before = datetime.now(UTC)
    async with started(api, rule("", Trouble(kind="rate_limited", retry_after=3600))) as (agent, _):
        failed = (await turn(agent, "go", WITHIN))[-1]
    assert isinstance(failed, e.TurnFailed) and failed.reset_at is not None
    assert failed.reset_at >= before + timedelta(seconds=3600)


async def test_a_conversation_that_does_not_fit_any_more_ends_the_turn_as_a_full_window(api: ApiCandidate) -> None:
    async with started(api, rule("", Trouble(kind="too_long"))) as (agent, _):
        await agent.prompt(PromptId("prompt-1"), "go")
        assert await rest_of_turn(agent, WITHIN) == [e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="max_tokens")]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt-5", "provider:name"),
        ("nobody:gpt-5", "nobody"),
        ("groq:llama", "groq"),
    ],
)
async def test_a_model_that_cannot_be_used_is_refused_at_the_start(api: ApiCandidate, model: str, words: str) -> None:
    async with api.launch(Script()) as launch:
        with pytest.raises(errors.AgentError, match=words):
            async with api.driver.start(replace(launch, model=model)):
                pass


@pytest.mark.parametrize(
    ("model", "key"), [("anthropic:claude-opus-5", "ANTHROPIC_API_KEY"), ("openai:gpt-5", "OPENAI_API_KEY")]
)
async def test_a_key_that_is_missing_is_named(api: ApiCandidate, model: str, key: str) -> None:
    async with api.launch(Script(), SEGUE_API_BASE_URL="", **{key: ""}) as launch:
        with pytest.raises(errors.AgentError, match=key):
            async with api.driver.start(replace(launch, model=model)):
                pass


async def test_without_a_model_the_first_prompt_says_how_to_choose_one(api: ApiCandidate) -> None:
    async with api.launch(Script()) as launch, api.driver.start(replace(launch, model=None)) as agent:
        failed = (await turn(agent, "go", WITHIN))[-1]
    assert isinstance(failed, e.TurnFailed)
    assert "--model provider:name" in failed.message and "SEGUE_API_MODEL" in failed.message


async def test_a_model_from_the_environment_will_do_and_the_chosen_one_comes_back(api: ApiCandidate) -> None:
    async with api.launch(Script(), SEGUE_API_MODEL="openai-chat:from-the-environment") as launch:
        async with api.driver.start(replace(launch, model=None)) as agent:
            await turn(agent, "go", WITHIN)
        async with api.driver.start(replace(launch, model="openai-chat:chosen")) as agent:
            token = agent.token
        async with api.driver.resume(replace(launch, model=None), token) as agent:
            await turn(agent, "go", WITHIN)
    assert api.model is not None
    assert [request.body["model"] for request in api.model.requests] == ["from-the-environment", "chosen"]


async def test_servers_of_tools_are_refused_and_not_left_out(api: ApiCandidate) -> None:
    async with api.launch(Script()) as launch:
        with pytest.raises(errors.AgentError, match="takes no MCP servers"):
            async with api.driver.start(replace(launch, mcp_servers=(McpServer(name="docs", command=("true",)),))):
                pass


async def test_a_damaged_conversation_is_told_as_such(api: ApiCandidate) -> None:
    async with api.launch(Script()) as launch:
        async with api.driver.start(launch) as agent:
            token = agent.token
        [file] = (api.home / "conversations").iterdir()
        file.write_text("{]\n" + file.read_text())
        with pytest.raises(errors.TranscriptCorrupt):
            async with api.driver.resume(launch, token):
                pass


async def test_a_conversation_is_open_in_one_process_at_a_time(api: ApiCandidate) -> None:
    async with started(api, rule("", Say("Mine."))) as (agent, launch):
        await turn(agent, "ALPHA", WITHIN)
        other = replace(launch, execution=f"{launch.execution}-other")
        with pytest.raises(errors.AgentError, match=f"{agent.token} is open in another process") as refused:
            async with api.driver.resume(other, agent.token):
                pass
        assert not isinstance(refused.value, errors.TokenRejected)
        assert [each.token for each in await api.driver.conversations(other)] == [agent.token]
        async with api.driver.fork(other, agent.token) as copy:
            assert await api.remembers(copy, "ALPHA")
        await turn(agent, "BETA", WITHIN)
        os.kill(agent.pid, signal.SIGKILL)
        await rest_of_turn(agent, WITHIN)
        async with api.driver.resume(other, agent.token) as again:
            assert await api.remembers(again, "ALPHA")
            assert await api.remembers(again, "BETA")


async def test_modules_of_the_worktree_do_not_come_into_the_agent(api: ApiCandidate) -> None:
    api.worktree.mkdir(parents=True)
    (api.worktree / "pydantic_ai.py").write_text("raise SystemExit('taken over')\n")
    async with started(api, rule("", Say("Mine."))) as (agent, _):
        assert said(await turn(agent, "go", WITHIN)) == "Mine."


async def test_a_call_done_before_the_cancel_is_told_as_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def calls(*_: object) -> AsyncGenerator[dict[int, DeltaToolCall]]:
        yield {0: DeltaToolCall(name="list_files", json_args="{}", tool_call_id="c")}

    async def done(*_: object) -> str:
        await cancelled.cancel()
        return "nothing"

    client = Client()
    history = ConversationFiles(tmp_path / "home").begin(str(tmp_path))
    setting = turns.ApiConversation(
        history=history, place=FileRoot(tmp_path), channel=Channel(client, history.token), models=Models({})
    )
    cancelled = turns.ApiTurn(setting, FunctionModel(stream_function=calls))
    monkeypatch.setattr(turns, "use", done)
    assert (await cancelled.play(prompt("go")))["stopReason"] == "cancelled"
    history.close()
    assert [each["status"] for each in client.updates("tool_call_update")] == ["completed"]
