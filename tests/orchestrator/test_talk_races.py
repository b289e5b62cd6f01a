"""A talk, and what else happens at the same time; what a conversation knows that begins with one."""

import json
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from segue.model import events as e
from segue.model.agents import Choices, McpServer
from segue.model.errors import BadInput
from segue.model.status import Carrying, Way, WorkflowStatus
from tests.drivers.literally import LiteralAgent, answer, update
from tests.orchestrator.races import Held, noticed
from tests.orchestrator.test_resuming import standing_still
from tests.orchestrator.theatre import WITHIN, Theatre

pytestmark = pytest.mark.anyio

SCRIPT = """
turns:
  - match: Do A
    do: [{say: I DECIDED ON LALR.}, {crash: true, once: true}, {say: A is there.}]
  - match: Hello
    do: [{say: Hi.}]
  - match: Slowly
    do: [{wait_for: go}, {say: Hi.}]
"""
REJECTING = "on_load: {reject: true}\n" + SCRIPT


async def crashed(theatre: Theatre, script: str = SCRIPT) -> None:
    await theatre.begin(script)
    await theatre.until("build-it", "paused")


async def say(theatre: Theatre, text: str, *, wait: bool = True) -> str:
    with anyio.fail_after(30):
        return (await theatre.prompt("build-it", text, wait=wait)).status


def go(theatre: Theatre) -> None:
    (theatre.root / "worktrees" / "build-it" / "go").touch()


async def test_a_resume_at_the_end_of_a_talk_starts_the_work(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    leaving = Held(monkeypatch, "finish", when=lambda _, end: end.talked)
    waits = noticed(monkeypatch, "wait until the agent is gone")
    async with theatre.open(talk_linger=5.0):
        await crashed(theatre)
        await say(theatre, "Hello")
        await standing_still(theatre)
        with anyio.fail_after(WITHIN):
            async with theatre.time_going_by(6):
                await leaving.there.wait()
        async with anyio.create_task_group() as both:
            both.start_soon(theatre.resume, "build-it")
            await waits.wait()
            leaving.go.set()
        view = await theatre.until("build-it", "completed")
    assert view.runs == 3


async def test_two_words_at_once_leave_the_agent_awake(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=60.0):
        await crashed(theatre)
        async with anyio.create_task_group() as both:
            both.start_soon(say, theatre, "Hello")
            both.start_soon(say, theatre, "Hello again")
        await standing_still(theatre)
        assert await say(theatre, "Hello at last") == "sent"
        await standing_still(theatre)
        assert (await theatre.orchestrator.workflow("build-it")).runs == 2


async def test_a_workflow_in_review_can_be_paused_while_its_agent_is_awake(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=60.0):
        await crashed(theatre, REJECTING)
        await theatre.resume_until("build-it", "review")
        await say(theatre, "Hello")
        with anyio.fail_after(30):
            while (view := await theatre.orchestrator.workflow("build-it")).status is not WorkflowStatus.REVIEW:
                await theatre.services.journal.wait(view.id, view.head)
        assert (await theatre.pause("build-it", wait=True)).status == "paused"
        view = await theatre.until("build-it", "paused")
        assert not view.pause_requested
        theatre.script.write_text(SCRIPT)
        assert await say(theatre, "Hello") == "sent"


async def test_a_resume_takes_back_a_pause_that_was_asked_for_during_a_talk(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=60.0):
        await crashed(theatre)
        await say(theatre, "Slowly")
        await theatre.pause("build-it")
        await theatre.resume("build-it")
        go(theatre)
        view = await theatre.until("build-it", "paused", "completed")
    assert view.status is WorkflowStatus.COMPLETED


async def test_whoever_says_something_waits_for_its_delivery_by_the_clock_of_the_house(theatre: Theatre) -> None:
    async with theatre.open(delivery_wait=90.0, silence_watchdog=1e6):
        await theatre.begin_until(
            e.PromptSent, "turns: [{match: Do it, do: [{wait_for: go}]}]", plan="[{id: a, title: Do it}]"
        )
        async with theatre.time_going_by(30):
            assert await say(theatre, "Hello") == "waiting"
        go(theatre)
        await theatre.until("build-it", "completed")


async def test_words_that_wait_when_a_pause_falls_into_the_last_task_are_kept(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=60.0):
        await theatre.begin_until(
            e.PromptSent, "turns: [{match: Do it, do: [{wait_for: go}]}]", plan="[{id: a, title: Do it}]"
        )
        assert await say(theatre, "Hello", wait=False) == "waiting"
        await theatre.pause("build-it", "lunch")
        go(theatre)
        view = await theatre.until("build-it", "paused", "completed")
        assert (view.status, view.waiting_messages) == (WorkflowStatus.PAUSED, 1)
        view = await theatre.resume_until("build-it", "completed")
    assert view.waiting_messages == 0
    assert theatre.diary("prompt")[-1]["text"] == "Hello"


async def test_a_sent_prompt_that_nobody_answered_is_shown_after_the_crash(opened: Theatre) -> None:
    await opened.begin("turns: [{do: [{crash: true}]}]")
    assert len((await opened.until("build-it", "paused")).undelivered) == 1


# ── what a conversation knows ───────────────────────────────────────────────────────────────────────


async def test_a_history_whose_prompt_failed_is_told_again(opened: Theatre) -> None:
    await crashed(opened)
    opened.script.write_text("turns:\n  - do: [{fail: {kind: login}, once: true}, {say: ok}]\n")
    await opened.resume("build-it", way=Way.HISTORY)
    await opened.until("build-it", "paused")
    assert (await opened.orchestrator.sessions("build-it"))[-1].carrying is Carrying.NEEDED
    await opened.resume_until("build-it", "completed")
    assert ["I DECIDED ON LALR" in entry["text"] for entry in opened.diary("prompt")] == [False, True, True, False]


async def test_a_talk_in_a_new_conversation_begins_with_what_it_is_about(opened: Theatre) -> None:
    await crashed(opened)
    mute = replace(opened.services.agents["rehearsal"], native_resume=False)
    opened.services.agents = {**opened.services.agents, "rehearsal": mute}
    await say(opened, "Hello, what is left?")
    await standing_still(opened)
    await say(opened, "Hello again")
    await standing_still(opened)
    first, second = (entry["text"] for entry in opened.diary("prompt")[1:])
    assert first.startswith("## Session Resume Context") and first.endswith("Hello, what is left?")
    assert "Build it" in first
    assert second == "Hello again"


async def test_what_a_talk_begins_with_is_written_down_and_told_once(theatre: Theatre) -> None:
    async with theatre.open(talk_linger=60.0):
        await theatre.begin("on_new: {login: true}")
        await theatre.until("build-it", "failed")
        theatre.script.write_text(SCRIPT)
        await say(theatre, "Hello")
        await theatre.event("build-it", e.TurnEnded)
        await theatre.as_time_goes_by("build-it", "failed")
        await say(theatre, "Hello again")
        await theatre.event("build-it", e.PromptAcknowledged, after=(await theatre.event("build-it", e.RunEnded)).seq)
        (carried,) = await theatre.events("build-it", e.ContextCarried)
        await theatre.cancel("build-it")
    assert "# Build it" in carried.text
    assert [entry["text"] for entry in theatre.diary("prompt")][1] == "Hello again"


async def test_what_an_agent_says_and_asks_while_nobody_speaks_is_written_down(theatre: Theatre) -> None:
    able = {
        "initialize": [answer(protocolVersion=1, agentCapabilities={"loadSession": True})],
        "session_load": [answer()],
    }
    literal = LiteralAgent(theatre.root)
    theatre.commands["literal"] = literal.launch(**able, session_prompt=[answer(stopReason="refusal")]).command
    chunk = update("agent_message_chunk", content={"type": "text", "text": "One more thing."})
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    asked = {"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "May I?"}, "options": options}
    question = {"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": asked}
    async with theatre.open(talk_linger=60.0):
        await theatre.begin(SCRIPT, agent="literal")
        await theatre.until("build-it", "failed")
        literal.launch(**able, session_prompt=[answer(stopReason="end_turn"), chunk, question])
        await say(theatre, "Hello")
        answered = (await theatre.event("build-it", e.PermissionAnswered)).event
        await theatre.cancel("build-it")
        said = [event.text for event in await theatre.events("build-it", e.AgentMessage)]
    assert isinstance(answered, e.PermissionAnswered) and (answered.outcome, answered.by) == ("allowed", "policy")
    assert said == ["One more thing."]


# ── files and secrets ───────────────────────────────────────────────────────────────────────────────


async def test_sessions_that_ended_without_a_run_of_their_own_have_their_files(theatre: Theatre) -> None:
    async with theatre.open():
        await crashed(theatre)
        await theatre.resume("build-it", way=Way.FRESH)
        await theatre.event("build-it", e.TaskCompleted)
        await theatre.cancel("build-it")
        sessions = await theatre.orchestrator.sessions("build-it")
    assert len(sessions) == 2
    assert all((theatre.root / "agent-sessions" / session.id / "session.json").exists() for session in sessions)


async def test_words_stand_in_the_file_of_the_session_that_got_them(opened: Theatre) -> None:
    await crashed(opened, REJECTING)
    assert await say(opened, "Hello") == "not_delivered"
    await opened.until("build-it", "review")
    await opened.resume_until("build-it", "completed")
    files = [
        await opened.orchestrator.session_files(session.id)
        for session in await opened.orchestrator.sessions("build-it")
    ]
    said = [[json.loads(line).get("content") for line in Path(file.history).read_text().splitlines()] for file in files]
    assert ["Hello" in each for each in said] == [False, True]


@pytest.mark.parametrize(
    "server",
    [
        McpServer(name="x", command=("serve", "--password=hunter2hunter2")),
        McpServer(name="x", command=("serve", "--token", "ghp_" + "a1B2" * 9)),
        McpServer(name="x", transport="http", url="https://host/mcp?api_key=0123456789abcdef"),
        McpServer(name="x", transport="http", url="https://host", variables={"X-Custom-Auth": "s3cr3tvalue1234"}),
        McpServer(name="x", command=("serve",), variables={"password": "hunter2hunter2"}),
    ],
)
async def test_a_secret_anywhere_in_a_server_of_tools_is_refused(opened: Theatre, server: McpServer) -> None:
    opened.choices = Choices(mcp_servers=(server,))
    with pytest.raises(BadInput, match="looks like a secret"):
        await opened.begin(SCRIPT)


async def test_a_name_in_place_of_a_secret_reads_back_as_it_was_written(opened: Theatre) -> None:
    server = McpServer(name="gh", command=("cat",), variables={"GITHUB_TOKEN": "${GITHUB_TOKEN}"})
    opened.choices = Choices(mcp_servers=(server,))
    await opened.begin(SCRIPT)
    await opened.until("build-it", "failed")
    (created,) = await opened.events("build-it", e.WorkflowCreated)
    assert created.choices.mcp_servers == (server,)


async def test_half_a_secret_from_an_agents_last_words_is_not_kept(theatre: Theatre) -> None:
    key, padding = "sk-ant-api03-" + "Q" * 40, "z " * 985
    theatre.commands["loud"] = ("/bin/sh", "-c", f"printf '%s' 'KEY {key} {padding}' >&2; exit 3")
    async with theatre.open():
        await theatre.begin(SCRIPT, agent="loud")
        await theatre.until("build-it", "failed")
    assert b"Q" * 12 not in b"".join(file.read_bytes() for file in theatre.root.glob("segue.db*"))
