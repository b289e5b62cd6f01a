"""How conversations open, come back, and fail to."""

import os
import signal
from dataclasses import replace
from datetime import UTC, datetime

import anyio
import pytest

from segue.drivers import load
from segue.model import errors
from segue.model.events import AgentExited, TextDelta
from segue.model.ids import PromptId
from segue.testing.rehearsal.launch import Rehearsal, rest_of_turn, turn

pytestmark = pytest.mark.anyio

DRIVER = load("acp")
WORK = """
turns:
  - match: hang
    do: [{write: {path: half, content: ""}}, {hang: true}]
  - match: recall
    do: [{recall: true}]
  - do: [{think: Well.}, {say: Done.}, {write: {path: done, content: ""}}, {usage: {used: 1, size: 2}}]
"""
ONLY_LOAD = "capabilities: {load: true, resume: false}\n"


async def a_killed_conversation(rehearsal: Rehearsal, script: str = WORK) -> str:
    """The token of a conversation whose agent was killed in its second turn."""
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await turn(agent, "Write the parser")
        await agent.prompt(PromptId("prompt-2"), "hang on")
        await anext(agent.events())
        os.kill(agent.pid, signal.SIGKILL)
        assert isinstance((await rest_of_turn(agent))[-1], AgentExited)
        return agent.token


@pytest.mark.parametrize("script", [WORK, ONLY_LOAD + WORK], ids=["resume", "load"])
async def test_after_a_kill_the_conversation_returns_without_old_events(rehearsal: Rehearsal, script: str) -> None:
    token = await a_killed_conversation(rehearsal)
    async with DRIVER.resume(rehearsal.launch(script), token) as agent:
        assert agent.token == token
        first = await turn(agent, "recall")
    assert first[0] == TextDelta(role="message", text="I remember:\nWrite the parser\nhang on")
    assert len(first) == 2
    [resumed] = rehearsal.diary("resumed")
    assert (resumed["session"], resumed["prompts"]) == (token, 2)


async def test_a_history_that_is_not_replayed_is_no_worse(rehearsal: Rehearsal) -> None:
    token = await a_killed_conversation(rehearsal)
    script = ONLY_LOAD + "on_load: {replay: false}\n" + WORK
    async with DRIVER.resume(rehearsal.launch(script), token) as agent:
        assert len(await turn(agent, "recall")) == 2


@pytest.mark.parametrize(
    ("script", "token", "sentence"),
    [
        (WORK, "rehearsal-unknown", "Session not found: rehearsal-unknown"),
        (ONLY_LOAD + WORK, "rehearsal-unknown", "Session not found: rehearsal-unknown"),
        ("on_load: {error: No previous sessions found for this project.}", "x", "No previous sessions found"),
        ("on_load: {error: no rollout found for thread id x}", "x", "no rollout found"),
        ("on_load: {error: 'Internal error: Session x does not exist'}", "x", "does not exist"),
        ("capabilities: {load: false, resume: false}", "x", "cannot go back to a conversation"),
    ],
)
async def test_a_refused_token_names_the_reason(rehearsal: Rehearsal, script: str, token: str, sentence: str) -> None:
    with pytest.raises(errors.TokenRejected, match=sentence):
        await opened(rehearsal, script, token)


async def test_a_known_token_can_be_rejected_too(rehearsal: Rehearsal) -> None:
    token = await a_killed_conversation(rehearsal)
    with pytest.raises(errors.TokenRejected, match=f"Session not found: {token}"):
        await opened(rehearsal, "on_load: {reject: true}", token)


@pytest.mark.parametrize("where", ["answer", "updates"])
async def test_another_conversation_than_the_one_asked_for_is_not_taken(rehearsal: Rehearsal, where: str) -> None:
    token = await a_killed_conversation(rehearsal)
    with pytest.raises(errors.ConversationMismatch, match=f"asked for conversation {token} .* {token}-other"):
        await opened(rehearsal, f"{ONLY_LOAD}on_load: {{other_id: {where}}}", token)


@pytest.mark.parametrize("trouble", ["The disk is full.", "Model not found."])
async def test_trouble_that_says_nothing_about_the_token_does_not_reject_it(rehearsal: Rehearsal, trouble: str) -> None:
    with pytest.raises(errors.HandshakeFailed, match=f"answered session/resume with an error: {trouble}"):
        await opened(rehearsal, f"on_load: {{error: {trouble}}}", "x")


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ("Your credentials have expired.", errors.LoginRequired),
        ("You've hit your usage limit.", errors.QuotaExceeded),
        ("The session file is damaged.", errors.TranscriptCorrupt),
        ("messages.1: `tool_use` ids were found without `tool_result` blocks", errors.TranscriptCorrupt),
    ],
)
async def test_known_trouble_has_a_name(rehearsal: Rehearsal, trouble: str, kind: type[errors.AgentError]) -> None:
    with pytest.raises(kind, match=trouble.split("`")[0]):
        await opened(rehearsal, f'on_load: {{error: "{trouble}"}}', "x")


async def test_a_quota_that_is_used_up_says_when_it_is_full_again(rehearsal: Rehearsal) -> None:
    with pytest.raises(errors.QuotaExceeded) as caught:
        await opened(rehearsal, 'on_new: {error: "usage limit, resets at 2031-01-01T00:00:00Z"}')
    assert caught.value.reset_at == datetime(2031, 1, 1, tzinfo=UTC)


async def opened(rehearsal: Rehearsal, script: str, token: str | None = None, timeout: float = 30.0) -> None:
    launch = rehearsal.launch(script, handshake_timeout=timeout)
    async with DRIVER.start(launch) if token is None else DRIVER.resume(launch, token):
        pass


@pytest.mark.parametrize("where", ["on_initialize", "on_new"])
async def test_an_exit_before_the_agent_is_ready_says_how_and_why(rehearsal: Rehearsal, where: str) -> None:
    with pytest.raises(errors.AgentExited, match="before it was ready with exit code 4: rehearsal: exit 4"):
        await opened(rehearsal, f"{where}: {{exit: 4}}")


async def test_an_exit_while_the_conversation_comes_back_keeps_the_token(rehearsal: Rehearsal) -> None:
    with pytest.raises(errors.AgentExited, match="exit code 4"):
        await opened(rehearsal, "on_load: {exit: 4}", "x")


async def test_an_agent_that_never_answers_is_given_up(rehearsal: Rehearsal) -> None:
    with anyio.fail_after(30), pytest.raises(errors.HandshakeTimeout, match=r"did not answer within 2.5 seconds\."):
        await opened(rehearsal, "on_new: {hang: true}", timeout=2.5)


async def test_garbage_before_the_first_answer_is_left_out(rehearsal: Rehearsal) -> None:
    await opened(rehearsal, "on_initialize: {garbage: 'Welcome to the agent!'}")


async def test_a_program_that_is_no_agent_is_quoted(rehearsal: Rehearsal) -> None:
    launch = rehearsal.launch("{}", handshake_timeout=5)
    with pytest.raises(errors.HandshakeFailed, match=r"within 5 seconds\. It printed: usage: agent"):
        async with DRIVER.start(replace(launch, command=("sh", "-c", "echo usage: agent; cat >&2"))):
            pass


async def test_an_agent_that_wants_a_login_says_so(rehearsal: Rehearsal) -> None:
    with pytest.raises(errors.LoginRequired, match="Authentication required") as caught:
        await opened(rehearsal, "on_new: {login: true}")
    assert "Log in with the agent's own program" in caught.value.hint


async def test_an_error_in_place_of_a_conversation_is_quoted(rehearsal: Rehearsal) -> None:
    with pytest.raises(errors.HandshakeFailed, match=r"answered session/new with an error: Out of luck\."):
        await opened(rehearsal, "on_new: {error: Out of luck.}")


async def test_a_missing_program_is_named(rehearsal: Rehearsal) -> None:
    launch = replace(rehearsal.launch("{}"), command=("no-such-agent", "--acp"))
    with pytest.raises(errors.AgentMissing, match="no-such-agent"):
        async with DRIVER.start(launch):
            pass
