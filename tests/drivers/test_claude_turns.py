"""The claude agent: a real process on the real SDK, and a stand-in for Claude Code itself."""

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from client import Client, prompt
from stand_in import OVER, TOKEN, StandIn, assistant, said, streamed, words

from segue.drivers import Agent, Image, load
from segue.drivers.claude.agent import ClaudeAgent
from segue.drivers.claude.register import Register
from segue.drivers.claude.setup import Setup
from segue.drivers.claude.stop_reasons import GO_ON
from segue.model import errors
from segue.model import events as e
from segue.model.agents import McpServer
from segue.model.ids import PromptId
from segue.model.status import Failure
from segue.testing.rehearsal.launch import rest_of_turn, turn
from tests.equipment.waiting import until

pytestmark = pytest.mark.anyio

PROMPT = PromptId("prompt-1")


@pytest.fixture
def claude(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


def requests(claude: StandIn) -> list[str]:
    return [each["request"]["subtype"] for each in claude.heard() if "request" in each]


async def _until_asked(agent: Agent) -> list[e.AgentEvent]:
    before: list[e.AgentEvent] = []
    with anyio.fail_after(30):
        async for event in agent.events():
            before.append(event)
            if isinstance(event, e.PermissionRequested):
                break
    return before


# ── conversations ───────────────────────────────────────────────────────────────────────────────────


async def test_a_new_conversation_says_nothing_of_resuming(claude: StandIn) -> None:
    async with load("claude").start(claude.launch({})) as agent:
        (arguments,) = claude.arguments()
        assert f"--session-id={agent.token}" in arguments
    assert not any("resume" in word for word in arguments)


async def test_a_conversation_is_gone_back_to_by_its_name(claude: StandIn) -> None:
    claude.remember({"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello."})
    async with load("claude").resume(claude.launch({}, knows=(TOKEN,)), TOKEN) as agent:
        assert agent.token == TOKEN
    (arguments,) = claude.arguments()
    assert f"--resume={TOKEN}" in arguments and not any(word.startswith("--session-id") for word in arguments)
    assert claude.metadata(TOKEN)["message_count"] == 2


async def test_a_conversation_that_claude_code_has_lost_is_rejected_and_not_begun_anew(claude: StandIn) -> None:
    launch = claude.launch({"hello": [[said("Hello."), OVER]]})
    async with load("claude").start(launch) as agent:
        token = agent.token
        await turn(agent, "hello")
    log = claude.home / "log"
    launch = replace(launch, command=("/bin/sh", "-c", f'exec "$0" "$@" 2>"{log}"', *launch.command))
    with pytest.raises(errors.TokenRejected, match=f"Session not found: {token}"):
        async with load("claude").resume(launch, token):
            pass
    assert f"Session {token} not found\n" in log.read_text()


async def test_a_conversation_in_which_nothing_was_said_is_begun_under_its_name(claude: StandIn) -> None:
    launch = claude.launch({"hello": [[said("Hello."), OVER]]})
    async with load("claude").start(launch) as agent:
        token = agent.token
    async with load("claude").resume(launch, token) as agent:
        assert words(await turn(agent, "hello")) == "Hello."
    assert [f"--session-id={token}" in each for each in claude.arguments()] == [True, True]


async def test_what_was_interrupted_is_told_when_the_conversation_goes_on(claude: StandIn) -> None:
    call = {"type": "tool_use", "id": "call-1", "name": "Bash", "input": {"command": "make all"}}
    claude.remember({"role": "user", "content": "build it"}, {"role": "assistant", "content": [call]})
    launch = claude.launch({"go on": [[said("Done."), OVER]]}, knows=(TOKEN,))
    async with load("claude").resume(launch, TOKEN) as agent:
        events = await turn(agent, "go on")
        again = await turn(agent, "go on")
    told = words(events, "thought")
    assert "I was interrupted in Bash(make all)." in told
    assert "My conversation has gaps: Bash(make all) has no result." in told
    assert words(again, "thought") == ""


async def test_what_is_found_in_a_conversation_is_told_and_its_file_stays_as_it_is(claude: StandIn) -> None:
    result = {"type": "tool_result", "tool_use_id": "call-0", "content": "made"}
    claude.remember({"role": "user", "content": [result]}, {"role": "assistant", "content": "Hello."})
    (file,) = claude.home.glob(f".claude/projects/*/{TOKEN}.jsonl")
    before = file.read_bytes()
    launch = claude.launch({"go on": [[said("Done."), OVER]]}, knows=(TOKEN,))
    async with load("claude").resume(launch, TOKEN) as agent:
        assert words(await turn(agent, "go on"), "thought") == "My conversation has gaps: a result has no call.\n"
    assert file.read_bytes() == before


async def test_what_came_after_the_bookmark_is_not_told(claude: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"type": "tool_use", "id": "call-1", "name": "Bash", "input": {"command": "make all"}}
    _, bookmark, *_ = claude.remember(
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "build it"},
        {"role": "assistant", "content": [call]},
    )
    launch = claude.launch({"go on": [[said("Done."), OVER]]}, knows=(TOKEN,))
    for name, value in launch.environment.items():
        monkeypatch.setenv(name, value)
    client = Client()
    agent = ClaudeAgent(client, Setup.of(launch.environment), Register(claude.home))
    conversation = await agent.resume(TOKEN, str(launch.directory), (), bookmark)
    await conversation.play(prompt("go on"))
    await conversation.close()
    assert [each["sessionUpdate"] for each in client.heard] == ["agent_message_chunk"]


async def test_a_copy_has_its_own_name_and_is_on_disk_before_anything_is_said(claude: StandIn) -> None:
    claude.remember({"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello."})
    launch = claude.launch({}, knows=("*",))
    elsewhere = replace(launch, directory=claude.home)
    async with load("claude").fork(elsewhere, TOKEN) as copy:
        assert copy.token != TOKEN
    assert f"--resume={copy.token}" in claude.arguments()[-1]
    assert [each.token for each in await load("claude").conversations(elsewhere)] == [copy.token]
    assert [each.token for each in await load("claude").conversations(launch)] == [TOKEN]


async def test_a_turn_that_ended_by_itself_says_where_and_a_copy_may_end_there(claude: StandIn) -> None:
    answers = [[[said("Alpha."), OVER]], [[said("Beta."), {"result": {"subtype": "error_max_turns"}}]]]
    plays = {"ALPHA": answers[0], "BETA": answers[1], "recall": [[{"recall": True}, OVER]]}
    launch = claude.launch(plays, remembers=True)
    async with load("claude").start(launch) as agent:
        ends = [(await turn(agent, prompt))[-1] for prompt in ("ALPHA", "BETA")]
    first, stopped = [each.bookmark for each in ends if isinstance(each, e.TurnEnded)]
    assert first is not None and stopped is None
    async with load("claude").fork(launch, agent.token, first) as copy:
        assert words(await turn(copy, "recall")) == "ALPHA recall"
    with pytest.raises(errors.TokenRejected):
        async with load("claude").fork(launch, agent.token, str(uuid.uuid4())):
            pass


@pytest.mark.parametrize(
    "frames",
    [
        [{"type": "system", "subtype": "init", "session_id": "another"}, said("Never heard."), {"hang": True}],
        [{"result": {"stop_reason": "end_turn", "session_id": "another"}}],
    ],
    ids=["at its beginning", "at its end"],
)
async def test_a_turn_in_another_conversation_is_broken_off(claude: StandIn, frames: list[Any]) -> None:
    async with load("claude").start(claude.launch({"hello": [frames]})) as agent:
        events = await turn(agent, "hello")
        again = (await turn(agent, "hello"))[-1]
        # The process is ended with the agent, and may not have read yet what it was sent.
        await until(lambda: requests(claude)[-1] == "interrupt")
    assert not words(events)
    for failed in (events[-1], again):
        assert isinstance(failed, e.TurnFailed) and failed.failure is Failure.OTHER_CONVERSATION
        assert "answered for conversation another" in failed.message
    assert claude.prompts() == ["hello"]


async def test_claude_code_is_ended_in_another_conversation_even_where_it_refuses_to_stop(claude: StandIn) -> None:
    frames = [{"type": "system", "subtype": "init", "session_id": "another"}, {"hang": True}]
    async with load("claude").start(claude.launch({"hello": [frames]}, refuses=("interrupt",))) as agent:
        await turn(agent, "hello")
        await until(lambda: {"ended": True} in claude.heard())


async def test_what_was_chosen_for_it_reaches_claude_code_each_time(claude: StandIn) -> None:
    launch = claude.launch({"hello": [[said("Hello."), OVER]]}, knows=("*",))
    launch = replace(launch, mode="acceptEdits", model="haiku")
    async with load("claude").start(launch) as agent:
        await turn(agent, "hello")
    async with load("claude").resume(launch, agent.token):
        pass
    asked = [each["request"] for each in claude.heard() if each.get("type") == "control_request"]
    assert [each["mode"] for each in asked if each["subtype"] == "set_permission_mode"] == ["acceptEdits"] * 2
    assert [each["model"] for each in asked if each["subtype"] == "set_model"] == ["haiku"]
    assert "--model" not in claude.arguments()[0] and _option(claude.arguments()[1], "--model") == "haiku"


async def test_servers_of_tools_are_handed_over_in_a_file_of_a_moment(claude: StandIn, tmp_path: Path) -> None:
    (place := tmp_path / "tmp").mkdir()
    server = McpServer(name="tickets", command=("tickets", "serve"), variables={"KEY": "not-for-ps"})
    async with load("claude").start(replace(claude.launch({}, TMPDIR=str(place)), mcp_servers=(server,))):
        assert not list(place.iterdir())
    (begun,) = [each for each in claude.heard() if "arguments" in each]
    told = begun["servers"]["mcpServers"]["tickets"]
    assert (begun["servers"]["rights"], told["args"], told["env"]) == (0o600, ["serve"], {"KEY": "not-for-ps"})
    assert not [word for word in begun["arguments"] if "not-for-ps" in word]


async def test_a_mode_that_it_does_not_have_is_refused_with_those_it_has(claude: StandIn) -> None:
    with pytest.raises(errors.AgentError, match=r"no mode 'yolo'\. It has: default, acceptEdits"):
        async with load("claude").start(replace(claude.launch({}), mode="yolo")):
            pass


def _option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


# ── turns ───────────────────────────────────────────────────────────────────────────────────────────


async def test_pictures_come_before_the_words(claude: StandIn) -> None:
    async with load("claude").start(claude.launch({"look": [[said("A cat."), OVER]]})) as agent:
        await agent.prompt(PROMPT, "look", [Image(media_type="image/png", data=b"cat")])
        await rest_of_turn(agent)
    (content,) = [each["message"]["content"] for each in claude.heard() if each.get("type") == "user"]
    picture = {"type": "base64", "media_type": "image/png", "data": "Y2F0"}
    assert content == [{"type": "image", "source": picture}, {"type": "text", "text": "look"}]


@pytest.mark.parametrize("reason", ["max_tokens", "tool_use", "pause_turn"])
async def test_claude_is_asked_to_go_on_where_it_stopped_in_the_middle(claude: StandIn, reason: str) -> None:
    cut = [said("One, "), {"result": {"stop_reason": reason}}]
    launch = claude.launch({"count": [cut], GO_ON: [[said("two, "), cut[1]], [said("three."), OVER]]})
    async with load("claude").start(launch) as agent:
        events = await turn(agent, "count")
    assert words(events) == "One, two, three."
    assert isinstance(events[-1], e.TurnEnded) and events[-1].reason == "end_turn"
    assert claude.prompts() == ["count", GO_ON, GO_ON]


@pytest.mark.parametrize(("stop", "reason"), [("tool_use", "max_turn_requests"), ("max_tokens", "max_tokens")])
async def test_it_is_not_asked_for_ever(claude: StandIn, stop: str, reason: str) -> None:
    never = [[{"result": {"stop_reason": stop}}]]
    launch = claude.launch({"count": never, GO_ON: never}, SEGUE_CLAUDE_MAX_TURNS="3")
    async with load("claude").start(launch) as agent:
        ended = (await turn(agent, "count"))[-1]
    assert isinstance(ended, e.TurnEnded) and ended.reason == reason
    assert claude.prompts() == ["count", GO_ON, GO_ON]


async def test_a_cancelled_turn_is_not_asked_to_go_on(claude: StandIn) -> None:
    asked = {"ask": {"tool_name": "Bash", "input": {"command": "make"}, "tool_use_id": "call-1"}}
    launch = claude.launch({"build": [[asked, {"result": {"stop_reason": "tool_use"}}]]})
    async with load("claude").start(launch) as agent:
        await agent.prompt(PROMPT, "build")
        await _until_asked(agent)
        await agent.cancel()
        ended = (await rest_of_turn(agent))[-1]
    assert ended == e.TurnEnded(prompt_id=PROMPT, reason="cancelled")
    assert claude.prompts() == ["build"]
    assert "interrupt" in [
        each["request"]["subtype"] for each in claude.heard() if each.get("type") == "control_request"
    ]


async def test_an_error_of_the_vendor_is_told_with_its_words(claude: StandIn) -> None:
    error = {"is_error": True, "result": "API Error: 429 rate limit", "api_error_status": 429}
    async with load("claude").start(claude.launch({"hello": [[{"result": error}]]})) as agent:
        failed = (await turn(agent, "hello"))[-1]
    assert isinstance(failed, e.TurnFailed) and failed.failure == "quota" and "429 rate limit" in failed.message


async def test_the_end_of_claude_code_is_told_and_stays(claude: StandIn) -> None:
    async with load("claude").start(claude.launch({"hello": [[said("Hel"), "die"]]})) as agent:
        ends = [(await turn(agent, "hello"))[-1] for _ in range(2)]
    assert all(isinstance(each, e.TurnFailed) and "Claude Code has ended" in each.message for each in ends)


async def test_a_turn_that_nobody_asked_for_does_not_end_ours(claude: StandIn) -> None:
    foreign = {"result": {"stop_reason": "end_turn", "origin": {"kind": "task-notification"}}}
    launch = claude.launch({"hello": [[said("A job ended. "), foreign, said("Hello."), OVER]]})
    async with load("claude").start(launch) as agent:
        assert words(await turn(agent, "hello")) == "A job ended. Hello."


async def test_what_was_streamed_is_not_said_twice(claude: StandIn) -> None:
    whole = said("Hello.")
    start = streamed("message_start", message={"id": whole["message"]["id"], "model": "opus", "usage": {}})
    delta = streamed("content_block_delta", delta={"type": "text_delta", "text": "Hello."})
    async with load("claude").start(claude.launch({"hello": [[start, delta, whole, OVER]]})) as agent:
        assert words(await turn(agent, "hello")) == "Hello."


async def test_the_figures_are_kept_and_the_window_is_the_models_own(claude: StandIn) -> None:
    tokens = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 3}
    start = streamed("message_start", message={"id": "m", "model": "opus", "usage": tokens})
    windows = {"opus": {"contextWindow": 500_000}, "haiku": {"contextWindow": 200_000}}
    end = {"stop_reason": "end_turn", "usage": tokens, "modelUsage": windows, "total_cost_usd": 0.5}
    launch = claude.launch({"hello": [[start, said("Hello.", uuid="message-1"), {"result": end}]]})
    async with load("claude").start(launch) as agent:
        events = await turn(agent, "hello")
    reports = [each for each in events if isinstance(each, e.UsageReported)]
    assert reports == [
        e.UsageReported(context_tokens=123, window=500_000, cost_usd=0.5, model="opus"),
        e.UsageReported(input_tokens=100, output_tokens=3, cached_tokens=20, model="opus"),
    ]
    kept = claude.metadata(agent.token)
    assert (kept["message_count"], kept["turn_count"], kept["last_stop_reason"]) == (2, 1, "end_turn")
    assert (kept["total_input_tokens"], kept["total_output_tokens"]) == (100, 3)
    assert (kept["window"], kept["last_message"]) == (500_000, "message-1")


async def test_a_model_whose_window_is_not_told_is_no_hindrance(claude: StandIn) -> None:
    start = streamed("message_start", message={"id": "m", "model": "opus", "usage": {"input_tokens": 7}})
    end = {"result": {"stop_reason": "end_turn", "modelUsage": {"opus": {"costUSD": 0.5}, "haiku": {}}}}
    async with load("claude").start(claude.launch({"hello": [[start, said("Hello."), end]]})) as agent:
        turns = [await turn(agent, "hello") for _ in range(2)]
    assert all(words(events) == "Hello." and isinstance(events[-1], e.TurnEnded) for events in turns)


NO_MESSAGE = {"type": "assistant", "parent_tool_use_id": None}
NO_TEXT = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": 5}]}}


@pytest.mark.parametrize("strange", [NO_MESSAGE, NO_TEXT], ids=["the SDK", "nobody of ours"])
async def test_what_cannot_be_read_is_said_and_the_turn_goes_on(claude: StandIn, strange: dict[str, Any]) -> None:
    launch = claude.launch({"hello": [[said("Hel"), strange, said("lo."), OVER]]})
    async with load("claude").start(launch) as agent:
        turns = [await turn(agent, "hello") for _ in range(2)]
    for events in turns:
        assert words(events) == "Hello." and isinstance(events[-1], e.TurnEnded)
        assert words(events, "thought").startswith("A message of Claude Code's could not be read: ")


async def test_an_end_that_cannot_be_read_is_the_end_of_its_turn_alone(claude: StandIn) -> None:
    strange = {"type": "result", "subtype": "success"}
    async with load("claude").start(claude.launch({"hello": [[strange], [said("Hello."), OVER]]})) as agent:
        failed, ended = [(await turn(agent, "hello"))[-1] for _ in range(2)]
    assert isinstance(failed, e.TurnFailed) and "The end of Claude Code's turn could not be read" in failed.message
    assert isinstance(ended, e.TurnEnded)


# ── what Claude Code asks ───────────────────────────────────────────────────────────────────────────


CALLS = {
    "look": ("Bash", {"command": "ls"}),
    "run": ("Bash", {"command": "make all"}),
    "read": ("Read", {"file_path": "a.txt"}),
    "write": ("Write", {"file_path": "a.txt", "content": ""}),
    "another": ("mcp__tickets__close", {"number": 1}),
}


@pytest.mark.parametrize(
    ("mode", "asked"), [("default", ["run", "write", "another"]), ("acceptEdits", ["run", "another"])]
)
async def test_claude_code_has_to_ask_despite_its_own_settings(claude: StandIn, mode: str, asked: list[str]) -> None:
    calls = [
        {"hook": "PreToolUse", "tool_name": tool, "tool_input": given, "tool_use_id": name}
        for name, (tool, given) in CALLS.items()
    ]
    async with load("claude").start(replace(claude.launch({"work": [[*calls, OVER]]}), mode=mode)) as agent:
        await turn(agent, "work")
    told = [each.get("hookSpecificOutput", {}).get("permissionDecision") for each in claude.answers()]
    assert [name for name, decision in zip(CALLS, told, strict=True) if decision == "ask"] == asked
    assert set(told) == {None, "ask"}
    assert _option(claude.arguments()[0], "--permission-mode") == "default"


async def test_names_in_a_prompt_stay_words_and_nobody_is_asked_at_a_screen(claude: StandIn) -> None:
    async with load("claude").start(claude.launch({"": [[said("Hello."), OVER]]})) as agent:
        await turn(agent, "look at @README.md")
    (prompt,) = [each for each in claude.heard() if each.get("type") == "user"]
    assert prompt["client_composed"] is True
    (arguments,) = claude.arguments()
    assert arguments[arguments.index("--disallowedTools") + 1] == "AskUserQuestion"


async def test_a_call_that_could_not_be_judged_is_not_made(claude: StandIn) -> None:
    async with load("claude").start(claude.launch({})):
        hooks = next(each["request"]["hooks"] for each in claude.heard() if "request" in each)
    assert [each["onFailure"] for each in hooks["PreToolUse"]] == ["block"]


async def test_a_claude_code_that_cannot_keep_to_that_is_refused_at_its_start(claude: StandIn) -> None:
    with pytest.raises(errors.AgentError, match="does not honor on_failure"):
        async with load("claude").start(claude.launch({}, supports=False)):
            pass
    assert claude.prompts() == []


@pytest.mark.parametrize(("kind", "behavior"), [("allow", "allow"), ("reject", "deny")])
async def test_a_permission_is_asked_of_the_user(claude: StandIn, kind: str, behavior: str) -> None:
    given = {"command": "make all"}
    call = assistant({"type": "tool_use", "id": "call-1", "name": "Bash", "input": given})
    result = {"type": "tool_result", "tool_use_id": "call-1", "content": "built"}
    done = {"type": "user", "message": {"role": "user", "content": [result]}}
    asked = {"ask": {"tool_name": "Bash", "input": given, "tool_use_id": "call-1"}}
    async with load("claude").start(claude.launch({"build": [[call, asked, done, OVER]]})) as agent:
        await agent.prompt(PROMPT, "build")
        before = await _until_asked(agent)
        question = before[-1]
        assert isinstance(question, e.PermissionRequested) and question.title == "make all"
        await agent.answer(question.request_id, kind)
        after = await rest_of_turn(agent)
    assert [each["behavior"] for each in claude.answers()] == [behavior]
    told = [each for each in (*before, *after) if isinstance(each, e.ToolCalled | e.ToolFinished)]
    assert [type(each) for each in told] == [e.ToolCalled, e.ToolFinished]


async def test_a_compaction_is_told_with_its_tokens(claude: StandIn) -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"pre_tokens": 9, "post_tokens": 2},
    }
    hook = {"hook": "PreCompact", "trigger": "auto", "custom_instructions": None}
    launch = claude.launch({"hello": [[hook, boundary, said("Hello."), OVER]]})
    async with load("claude").start(launch) as agent:
        events = await turn(agent, "hello")
    assert [each for each in events if isinstance(each, e.Compacted)] == [e.Compacted(tokens_before=9, tokens_after=2)]


async def test_what_still_runs_when_claude_stops_is_told(claude: StandIn) -> None:
    hook = {"hook": "Stop", "stop_hook_active": False, "background_tasks": [{"description": "make serve"}]}
    async with load("claude").start(claude.launch({"hello": [[hook, said("Hello."), OVER]]})) as agent:
        events = await turn(agent, "hello")
    assert words(events, "thought") == "Still running in the background: make serve.\n"
