"""Amp's turns: what its lines become, what it is started with, and what it says when it will not."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from candidates import AmpCandidate

from segue.drivers import Agent, Image
from segue.drivers.amp.settings import refuse_what_allows_all
from segue.drivers.skeleton.jsonrpc import RequestError
from segue.model import errors
from segue.model import events as e
from segue.model.agents import McpServer
from segue.model.ids import PromptId
from segue.model.status import Failure
from segue.testing.rehearsal.launch import rest_of_turn, turn

pytestmark = pytest.mark.anyio

PROMPT = PromptId("prompt-1")
DOT = bytes.fromhex("89504e470d0a1a0a")
SHOW = {"": ("Environment", [])}


@pytest.fixture
def amp(tmp_path: Path) -> AmpCandidate:
    return AmpCandidate(tmp_path)


@asynccontextmanager
async def started(amp: AmpCandidate, *act: Any, **variables: str) -> AsyncGenerator[Agent]:
    name, *words = act
    async with amp.driver.start(amp.launch({"": (name, words)}, **variables)) as agent:
        yield agent


def said(events: list[e.AgentEvent]) -> str:
    return "".join(each.text for each in events if isinstance(each, e.TextDelta) and each.role == "message")


async def test_thoughts_and_messages_come_out_apart(amp: AmpCandidate) -> None:
    async with started(amp, "Think", "Hm.", "I have it.") as agent:
        events = await turn(agent, "go")
    assert events == [
        e.TextDelta(role="thought", text="Hm."),
        e.TextDelta(role="message", text="I have it."),
        e.TextDelta(role="message", text="\n\nAnd then I spoke again."),
        e.TurnEnded(prompt_id=events[-1].prompt_id, reason="end_turn"),  # pyright: ignore[reportAttributeAccessIssue]
    ]


async def test_each_prompt_continues_the_thread_and_archives_nothing(amp: AmpCandidate) -> None:
    async with amp.driver.start(replace(amp.launch(SHOW), model="high")) as agent:
        words = json.loads(said(await turn(agent, "go")))["words"]
        token = agent.token
    assert words[:3] == ["threads", "continue", token]
    assert {"--execute", "--stream-json", "--stream-json-input", "--no-archive-after-execute"} < set(words)
    assert words[words.index("--mode") + 1] == "high"
    assert not [word for word in words if "dangerously" in word]


async def test_every_tool_that_does_more_than_look_is_asked_for(amp: AmpCandidate) -> None:
    async with started(amp, "Environment") as agent:
        *free, last = json.loads(said(await turn(agent, "go")))["rules"]
    assert {rule["action"] for rule in free} == {"allow"}
    assert not {"create_file", "edit_file", "Bash", "shell_command", "Task"} & {rule["tool"] for rule in free}
    assert (last["tool"], last["action"]) == ("*", "delegate")


async def test_a_look_at_a_file_is_not_asked_for(amp: AmpCandidate) -> None:
    async with started(amp, "Read", "notes.md") as agent:
        events = await turn(agent, "go")
    assert [type(each) for each in events] == [e.ToolCalled, e.ToolFinished, e.TextDelta, e.TurnEnded]


async def test_an_amp_that_does_not_ask_is_stopped(amp: AmpCandidate) -> None:
    async with started(amp, "Overdo", "a.txt", "content") as agent:
        await agent.prompt(PROMPT, "go")
        events = await rest_of_turn(agent)
    assert [each.status for each in events if isinstance(each, e.ToolFinished)] == ["completed"]
    message = "Amp used create_file without asking, so its turn was stopped."
    assert events[-1] == e.TurnFailed(prompt_id=PROMPT, failure=Failure.OTHER, message=message)


async def test_what_a_subagent_wants_is_asked_for_and_leaves_no_open_call(amp: AmpCandidate) -> None:
    async with started(amp, "Subagent", "deep.txt") as agent:
        await agent.prompt(PROMPT, "go")
        asked = await anext(aiter(agent.events()))
        assert isinstance(asked, e.PermissionRequested) and (asked.title, asked.tool) == (
            "create_file deep.txt",
            "edit",
        )
        await agent.answer(asked.request_id, "allow")
        events = await rest_of_turn(agent)
    told = [type(each) for each in events if isinstance(each, e.ToolCalled | e.ToolFinished)]
    assert (told, said(events)) == ([e.ToolCalled, e.ToolFinished], "It may.")


@pytest.mark.parametrize("path", [".amp/settings.json", ".git/config"])
async def test_a_change_of_amps_own_settings_or_of_gits_is_no_edit_like_others(amp: AmpCandidate, path: str) -> None:
    async with started(amp, "Write", path, "{}") as agent:
        await agent.prompt(PROMPT, "go")
        asked = [each async for each in _until_asked(agent)][-1]
    assert isinstance(asked, e.PermissionRequested) and asked.tool == "other"


async def _until_asked(agent: Agent) -> AsyncGenerator[e.AgentEvent]:
    async for event in agent.events():
        yield event
        if isinstance(event, e.PermissionRequested):
            return


async def test_images_go_along(amp: AmpCandidate) -> None:
    async with amp.driver.start(amp.launch({})) as agent:
        await agent.prompt(PROMPT, "look at it", [Image(media_type="image/png", data=DOT)])
        await rest_of_turn(agent)
        assert said(await turn(agent, "and?")) == "I remember: [image]\nlook at it\n"


async def test_servers_of_tools_are_handed_over_in_a_file(amp: AmpCandidate) -> None:
    server = McpServer(name="docs", command=(sys.executable, "-c", "pass"), variables={"KEY": "not-for-ps"})
    async with amp.driver.start(replace(amp.launch(SHOW), mcp_servers=(server,))) as agent:
        shown = json.loads(said(await turn(agent, "go")))
    assert [each["name"] for each in shown["servers"]] == ["docs"]
    assert not [word for word in shown["words"] if "not-for-ps" in word]


@pytest.mark.parametrize("name", ["tmp", "a" * 120])
async def test_nothing_of_a_turn_is_left_on_disk(amp: AmpCandidate, tmp_path: Path, name: str) -> None:
    """No socket may have a path as long as a temporary directory may."""
    (place := tmp_path / name).mkdir()
    async with started(amp, "Environment", TMPDIR=str(place)) as agent:
        rule = json.loads(said(await turn(agent, "go")))["rules"][-1]
        assert place in Path(rule["to"]).parents
        assert not list(place.iterdir())


async def test_what_a_killed_turn_left_on_disk_is_taken_away_by_the_next(amp: AmpCandidate, tmp_path: Path) -> None:
    (place := tmp_path / "tmp").mkdir()
    server = McpServer(name="docs", command=(sys.executable, "-c", "pass"), variables={"KEY": "a-secret"})
    launch = replace(amp.launch({"go": ("Hang", [])}, TMPDIR=str(place)), mcp_servers=(server,))
    async with amp.driver.start(launch) as agent:
        await agent.prompt(PROMPT, "go")
        await anext(agent.events())
        os.kill(agent.pid, signal.SIGKILL)
        await rest_of_turn(agent)
    assert len(list(place.glob("*/servers.json"))) == 1
    async with amp.driver.start(launch) as agent:
        await turn(agent, "something else")
    assert not list(place.iterdir())


# ── what it says when it will not ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("problem", "error", "message"),
    [
        (
            "Not logged in. Run 'amp login' to authenticate.",
            errors.LoginRequired,
            "The agent wants you to log in first: Not logged in. Run 'amp login' to authenticate.",
        ),
        (
            "Cannot reach Amp servers. Are you offline?",
            errors.HandshakeFailed,
            "The agent answered session/new with an error: Cannot reach Amp servers. Are you offline?",
        ),
    ],
)
async def test_refusals_say_why(amp: AmpCandidate, problem: str, error: type[errors.AgentError], message: str) -> None:
    with pytest.raises(error) as raised:
        async with started(amp, "Say", "Never.", AMP_STANDIN_PROBLEM=problem):
            pass
    assert raised.value.message == message


async def test_a_server_that_cannot_be_reached_takes_no_token_away(amp: AmpCandidate) -> None:
    async with started(amp, "Say", "Hello.") as agent:
        token = agent.token
    offline = amp.launch({}, AMP_STANDIN_PROBLEM="Cannot reach Amp servers. Are you offline?")
    with pytest.raises(errors.HandshakeFailed):
        async with amp.driver.resume(offline, token):
            pass
    async with amp.driver.resume(amp.launch({}), token) as agent:
        assert agent.token == token


async def test_a_thread_that_is_gone_is_rejected_and_none_is_begun(amp: AmpCandidate) -> None:
    launch, gone = amp.launch({}), "T-00000000-0000-0000-0000-000000000000"
    with pytest.raises(errors.TokenRejected, match=f"{gone} does not exist"):
        async with amp.driver.resume(launch, gone):
            pass
    assert not list(amp.home.glob("*.thread"))


@pytest.mark.parametrize(
    ("act", "failure", "message"),
    [
        (("AskForKey",), Failure.LOGIN_REQUIRED, "Not logged in. Run 'amp login' to authenticate."),
        (("Crash", "Unexpected error inside Amp CLI."), Failure.OTHER, "Unexpected error inside Amp CLI."),
        (("Fail", "429 Too Many Requests"), Failure.QUOTA, "429 Too Many Requests"),
    ],
)
async def test_a_failed_turn_says_why(amp: AmpCandidate, act: tuple[str, ...], failure: Failure, message: str) -> None:
    async with started(amp, *act) as agent:
        await agent.prompt(PROMPT, "go")
        ended = (await rest_of_turn(agent))[-1]
    assert ended == e.TurnFailed(prompt_id=PROMPT, failure=failure, message=message)


async def test_words_of_another_thread_are_not_taken_for_this_one(amp: AmpCandidate) -> None:
    async with started(amp, "OtherThread") as agent:
        await agent.prompt(PROMPT, "go")
        events = await rest_of_turn(agent)
    failed = events[-1]
    assert isinstance(failed, e.TurnFailed) and failed.failure is Failure.OTHER_CONVERSATION
    assert "answered for thread T-0000" in failed.message
    assert not said(events)


async def test_a_program_that_is_not_there_is_named(amp: AmpCandidate) -> None:
    launch = amp.launch({})
    nowhere = replace(launch, command=(*launch.command[:4], "segue-has-no-such-amp"))
    with pytest.raises(errors.HandshakeFailed, match="The program segue-has-no-such-amp cannot be started"):
        await amp.driver.introduce(nowhere)


# ── settings ────────────────────────────────────────────────────────────────────────────────────────


def own(amp: AmpCandidate, text: str) -> None:
    file = amp.home / ".config" / "amp" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)


async def test_of_the_users_rules_those_stay_that_refuse(amp: AmpCandidate) -> None:
    refuse, allow = {"tool": "Bash", "action": "reject"}, {"tool": "*", "action": "allow"}
    own(amp, json.dumps({"amp.permissions": [allow, refuse], "amp.dangerouslyAllowAll": True}))
    async with started(amp, "Environment") as agent:
        rules = json.loads(said(await turn(agent, "go")))["rules"]
    assert rules[0] == refuse and allow not in rules


async def test_settings_that_cannot_be_read_are_not_passed_over(amp: AmpCandidate) -> None:
    own(amp, "{} // everything as it is")
    async with started(amp, "Say", "Never.") as agent:
        await agent.prompt(PROMPT, "go")
        ended = (await rest_of_turn(agent))[-1]
    assert isinstance(ended, e.TurnFailed) and "not plain JSON" in ended.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"amp.dangerouslyAllowAll": true}', "says amp.dangerouslyAllowAll"),
        ('{"amp.dangerouslyAllowAll": /* yes */ true,} // all', "says amp.dangerouslyAllowAll"),
        ('{"amp\\u002edangerouslyAllowAll": true}', "says amp.dangerouslyAllowAll"),
        ('{"amp.dangerouslyAllowAll": ', "cannot be read as JSON"),
    ],
)
def test_every_spelling_of_asking_for_nothing_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / ".amp").mkdir()
    (tmp_path / ".amp" / "settings.jsonc").write_text(text)
    with pytest.raises(RequestError, match=words):
        refuse_what_allows_all(tmp_path)


@pytest.mark.parametrize(
    "text",
    ['// "amp.dangerouslyAllowAll": true\n{}', '{"a": "//, \\"/*", "amp.dangerouslyAllowAll": false,}', "[true,]"],
)
def test_what_a_repository_says_of_it_in_a_comment_is_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / ".amp").mkdir()
    (tmp_path / ".amp" / "settings.json").write_text(text)
    refuse_what_allows_all(tmp_path)


async def test_a_repository_that_lets_amp_do_everything_is_refused(amp: AmpCandidate) -> None:
    async with started(amp, "Say", "Never.") as agent:
        (amp.worktree / ".amp").mkdir()
        (amp.worktree / ".amp" / "settings.json").write_text('{"amp.dangerouslyAllowAll": true}')
        await agent.prompt(PROMPT, "go")
        events = await rest_of_turn(agent)
    assert isinstance(events[-1], e.TurnFailed) and "amp.dangerouslyAllowAll" in events[-1].message
    assert not said(events)
