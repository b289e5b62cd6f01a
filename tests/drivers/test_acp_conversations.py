"""Copies of conversations, lists of them, and their end."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from literally import LiteralAgent, answer, update

from segue.drivers import Capabilities, Launch, load
from segue.model import errors
from segue.model.events import TextDelta, TurnEnded, UsageReported
from segue.testing.rehearsal.launch import Rehearsal, turn
from segue.workspace.processes import marked

pytestmark = pytest.mark.anyio

DRIVER = load("acp")
RECALL = "turns: [{match: recall, do: [{recall: true}]}, {do: [{say: Done.}]}]\n"


async def a_conversation(rehearsal: Rehearsal, *prompts: str) -> str:
    async with DRIVER.start(rehearsal.launch(RECALL)) as agent:
        for prompt in prompts:
            await turn(agent, prompt)
        return agent.token


async def recalled(launch: Launch, token: str) -> str:
    async with DRIVER.resume(launch, token) as agent:
        event = (await turn(agent, "recall"))[0]
    assert isinstance(event, TextDelta)
    return event.text


async def test_a_copy_knows_what_was_said_and_leaves_the_original_alone(rehearsal: Rehearsal) -> None:
    token = await a_conversation(rehearsal, "Write the parser")
    launch = rehearsal.launch(RECALL)
    async with DRIVER.fork(launch, token) as copy:
        assert copy.token != token
        await turn(copy, "Test it")
        events = await turn(copy, "recall")
    assert events[0] == TextDelta(role="message", text="I remember:\nWrite the parser\nTest it")
    assert await recalled(launch, token) == "I remember:\nWrite the parser"


async def test_a_copy_that_remembers_aloud_tells_nothing_twice(literal: LiteralAgent) -> None:
    capable = answer(protocolVersion=1, agentCapabilities={"sessionCapabilities": {"fork": {}}})
    old = update("agent_message_chunk", session="copy", content={"type": "text", "text": "old"})
    launch = literal.launch(
        initialize=[capable],
        session_fork=[old, answer(sessionId="copy"), old, update("usage_update", session="copy", used=5, size=10)],
        session_prompt=[answer(stopReason="end_turn")],
    )
    async with DRIVER.fork(launch, "t") as agent:
        assert agent.token == "copy"
        with anyio.fail_after(30):
            assert await anext(agent.events()) == UsageReported(context_tokens=5, window=10)
        assert len(await turn(agent, "go")) == 1


async def test_a_copy_that_is_the_original_is_none(literal: LiteralAgent) -> None:
    capable = answer(protocolVersion=1, agentCapabilities={"sessionCapabilities": {"fork": {}}})
    with pytest.raises(errors.ConversationMismatch, match="the conversation itself"):
        async with DRIVER.fork(literal.launch(initialize=[capable], session_fork=[answer(sessionId="t")]), "t"):
            pass


FORKS = answer(protocolVersion=1, agentCapabilities={"sessionCapabilities": {"fork": {}}})
AT = {"segue": {"at": "mark-7"}}


async def test_an_agent_that_reports_bookmarks_is_asked_for_a_copy_up_to_one(literal: LiteralAgent) -> None:
    launch = literal.launch(
        initialize=[FORKS],
        session_fork=[answer(sessionId="copy", _meta=AT)],
        session_prompt=[{"one of": [answer(stopReason="end_turn", _meta=AT), answer(stopReason="end_turn")]}],
    )
    async with DRIVER.fork(launch, "t", "mark-7") as agent:
        events = [*await turn(agent, "go"), *await turn(agent, "go on")]
    assert [each.bookmark for each in events if isinstance(each, TurnEnded)] == ["mark-7", None]
    (asked,) = [each["params"] for each in literal.heard() if each.get("method") == "session/fork"]
    assert (asked["sessionId"], asked["_meta"]) == ("t", AT)


@pytest.mark.parametrize("meta", [{}, {"_meta": {"segue": {"at": "mark-8"}}}, {"_meta": None}])
async def test_a_copy_that_does_not_name_its_end_is_not_accepted(literal: LiteralAgent, meta: dict[str, Any]) -> None:
    launch = literal.launch(initialize=[FORKS], session_fork=[answer(sessionId="copy", **meta)])
    with pytest.raises(errors.ConversationMismatch, match="up to mark-7, and does not say that it is one"):
        async with DRIVER.fork(launch, "t", "mark-7"):
            pass


async def test_what_cannot_be_copied_is_said(rehearsal: Rehearsal) -> None:
    with pytest.raises(errors.TokenRejected, match="Session not found: unknown"):
        async with DRIVER.fork(rehearsal.launch(RECALL), "unknown"):
            pass
    with pytest.raises(errors.AgentError, match="cannot copy a conversation"):
        async with DRIVER.fork(rehearsal.launch("capabilities: {fork: false}"), "x"):
            pass


async def test_an_agent_introduces_itself_without_a_conversation(rehearsal: Rehearsal) -> None:
    introduction = await DRIVER.introduce(rehearsal.launch("capabilities: {fork: false}", execution="introduced"))
    assert (introduction.name, introduction.logins) == ("rehearsal", ())
    assert introduction.capabilities == Capabilities(
        load=True, resume=True, list=True, close=True, images=True, mcp_http=True
    )
    assert (rehearsal.diary(), marked("introduced")) == ([], [])


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("on_initialize: {hang: true}", errors.HandshakeTimeout),
        ("on_initialize: {exit: 3}", errors.AgentExited),
        ("on_initialize: {login: true}", errors.LoginRequired),
    ],
)
async def test_an_introduction_can_fail_too(rehearsal: Rehearsal, script: str, kind: type[errors.AgentError]) -> None:
    timeout = 1.0 if "hang" in script else 30.0
    with anyio.fail_after(30), pytest.raises(kind):
        await DRIVER.introduce(rehearsal.launch(script, handshake_timeout=timeout))


async def test_the_ways_to_log_in_are_named(literal: LiteralAgent) -> None:
    methods = [{"id": "key", "name": "API key"}, {"id": "web", "name": "Browser"}]
    launch = literal.launch(initialize=[answer(protocolVersion=1, authMethods=methods)])
    assert (await DRIVER.introduce(launch)).logins == ("API key", "Browser")


async def test_the_conversations_of_a_directory_are_listed(rehearsal: Rehearsal, tmp_path: Path) -> None:
    tokens = [await a_conversation(rehearsal, "First things"), await a_conversation(rehearsal, "Second things")]
    found = await DRIVER.conversations(rehearsal.launch(RECALL))
    assert [(each.token, each.title) for each in found] == list(
        zip(tokens, ["First things", "Second things"], strict=True)
    )
    assert all(each.updated_at for each in found)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert await DRIVER.conversations(replace(rehearsal.launch(RECALL), directory=elsewhere)) == []


async def test_every_page_of_a_list_is_read_and_other_places_are_skipped(literal: LiteralAgent, tmp_path: Path) -> None:
    capable = answer(protocolVersion=1, agentCapabilities={"sessionCapabilities": {"list": {}}})
    here, there = ({"sessionId": name, "cwd": cwd} for name, cwd in (("a", str(tmp_path)), ("b", "/elsewhere")))
    pages = [answer(sessions=[here, there], nextCursor="2"), answer(sessions=[{**here, "sessionId": "c"}])]
    launch = literal.launch(initialize=[capable], session_list=[{"one of": pages}])
    assert [each.token for each in await DRIVER.conversations(launch)] == ["a", "c"]
    assert [message["params"].get("cursor") for message in literal.heard()[1:]] == [None, "2"]


async def test_an_agent_that_lists_nothing_says_so(rehearsal: Rehearsal) -> None:
    with pytest.raises(errors.AgentError, match="does not tell which conversations"):
        await DRIVER.conversations(rehearsal.launch("capabilities: {list: false}"))


async def test_an_agent_is_told_that_its_conversation_is_over(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(RECALL)) as agent:
        await agent.close()
    assert [entry.kind for entry in rehearsal.diary()] == ["started", "closed"]


async def test_closing_never_fails(rehearsal: Rehearsal, literal: LiteralAgent) -> None:
    async with DRIVER.start(rehearsal.launch("capabilities: {close: false}")) as agent:
        await agent.close()
    assert [entry.kind for entry in rehearsal.diary()] == ["started"]
    capable = answer(protocolVersion=1, agentCapabilities={"sessionCapabilities": {"close": {}}})
    error = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32603, "message": "no"}}
    async with DRIVER.start(literal.launch(initialize=[capable], session_close=[error])) as agent:
        await agent.close()
        os.kill(agent.pid, 9)
        with anyio.fail_after(30):
            await agent.close()


async def test_closing_does_not_wait_for_a_silent_agent(literal: LiteralAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.drivers.acp.handle._CLOSE_WITHIN", 0.1)
    capable = answer(protocolVersion=1, agentCapabilities={"sessionCapabilities": {"close": {}}})
    async with DRIVER.start(literal.launch(initialize=[capable])) as agent:
        with anyio.fail_after(30):
            await agent.close()
