"""The rehearsal agent as a process: what it does, what it swears to, and how it comes back."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from wired import wired

from segue.drivers import Agent, load
from segue.model import events as e
from segue.model.ids import PromptId
from segue.testing.rehearsal.launch import COMMAND, Rehearsal, rest_of_turn, turn
from segue.workspace.processes import identity

DRIVER = load("acp")


def said(events: Sequence[e.AgentEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, e.TextDelta))


def finished(events: Sequence[e.AgentEvent]) -> list[tuple[str, str]]:
    return [(event.status, event.output) for event in events if isinstance(event, e.ToolFinished)]


async def until_exists(path: Path) -> None:
    with anyio.fail_after(30):
        while not path.exists():
            await anyio.lowlevel.checkpoint()


@pytest.mark.anyio
async def test_the_first_turn_that_matches_is_played(rehearsal: Rehearsal) -> None:
    script = """
turns:
  - {match: parser, once: true, do: [{say: first}]}
  - {match: /PARSER|parser/, do: [{say: second}]}
"""
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        answers = [said(await turn(agent, prompt)) for prompt in ("the parser", "the parser", "the lexer")]
    assert answers == ["first", "second", "Done."]


@pytest.mark.anyio
async def test_a_crash_that_happens_once_does_not_happen_to_the_next_process(rehearsal: Rehearsal) -> None:
    script = """
turns:
  - do:
      - {say: "Once. ", once: true}
      - {crash: {when: after, of: {write: {path: a, content: x}}}, once: true}
      - {crash: true, once: true}
      - say: Through.
"""
    launch = rehearsal.launch(script)
    async with DRIVER.start(launch) as agent:
        assert isinstance((await turn(agent, "go"))[-1], e.AgentExited)
    async with DRIVER.resume(launch, agent.token) as agent:
        assert isinstance((await turn(agent, "go on"))[-1], e.AgentExited)
    async with DRIVER.resume(launch, agent.token) as agent:
        assert said(await turn(agent, "go on")) == "Through."
    assert [entry.kind for entry in rehearsal.diary()] == [
        *("started", "prompt", "effect"),
        *("resumed", "prompt", "effect"),
        *("resumed", "prompt", "effect", "ended"),
    ]


@pytest.mark.anyio
async def test_files_hold_a_turn_open_and_signal_outwards(rehearsal: Rehearsal) -> None:
    go, ready = rehearsal.root / "go", rehearsal.root / "ready"
    script = f"turns: [{{do: [{{touch: {ready}}}, {{wait_for: {go}}}, {{say: On.}}]}}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        await until_exists(ready)
        go.touch()
        assert said(await rest_of_turn(agent)) == "On."


@pytest.mark.anyio
async def test_a_turn_that_waits_for_a_file_can_be_cancelled(rehearsal: Rehearsal) -> None:
    script = "turns: [{do: [{touch: ready}, {wait_for: never}]}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        await until_exists(rehearsal.directory / "ready")
        await agent.cancel()
        assert (await rest_of_turn(agent))[-1] == e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="cancelled")


@pytest.mark.anyio
async def test_cancelling_kills_the_running_command_and_reports_it(rehearsal: Rehearsal) -> None:
    script = "turns: [{do: [{run: 'echo $$ > pid.new; mv pid.new pid; sleep 1000'}]}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        await until_exists(rehearsal.directory / "pid")
        await agent.cancel()
        events = await rest_of_turn(agent)
        assert finished(events) == [("failed", "Cancelled.")]
        assert identity(int((rehearsal.directory / "pid").read_text())) is None
    assert rehearsal.diary("effect") == []


@pytest.mark.anyio
@pytest.mark.parametrize(("option", "outcome", "written"), [("allow", "Wrote a.", True), ("reject", "Refused.", False)])
async def test_a_tool_call_can_ask_first(rehearsal: Rehearsal, option: str, outcome: str, written: bool) -> None:
    script = "turns: [{do: [{write: {path: a, content: x}, ask: true}]}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        called, question = await anext(agent.events()), await anext(agent.events())
        assert isinstance(called, e.ToolCalled) and isinstance(question, e.PermissionRequested)
        assert (question.call_id, question.title, question.tool) == (called.call_id, "Write a", "edit")
        assert not (rehearsal.directory / "a").exists()
        await agent.answer(question.request_id, option)
        assert [output for _, output in finished(await rest_of_turn(agent))] == [outcome]
    assert (rehearsal.directory / "a").exists() is written


@pytest.mark.anyio
async def test_an_edit_that_does_not_fit_fails_and_has_no_effect(rehearsal: Rehearsal) -> None:
    script = """
turns:
  - do:
      - write: {path: a, content: "x x"}
      - edit: {path: a, find: x, replace: y}
      - edit: {path: missing, find: x, replace: y}
"""
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        outcomes = finished(await turn(agent, "go"))
    assert [status for status, _ in outcomes] == ["completed", "failed", "failed"]
    assert outcomes[1][1] == "'x' stands 2 times in a; it must stand there once."
    assert [entry["what"] for entry in rehearsal.diary("effect")] == ["write"]


@pytest.mark.anyio
async def test_the_diary_has_every_prompt_effect_answer_and_end_in_order(rehearsal: Rehearsal) -> None:
    script = """
turns:
  - do:
      - write: {path: a, content: x}
      - edit: {path: a, find: x, replace: y}
      - run: "false"
      - ask: {title: "Sure?"}
"""
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await play(agent)
    entries = rehearsal.diary()
    assert {entry["session"] for entry in entries} == {agent.token}
    details = [{key: value for key, value in entry.details.items() if key != "session"} for entry in entries]
    assert details[-2].pop("call_id")
    assert [(entry.kind, rest) for entry, rest in zip(entries, details, strict=True)] == [
        ("started", {}),
        ("prompt", {"prompt_id": "prompt-1", "text": "go"}),
        ("effect", {"what": "write", "path": "a"}),
        ("effect", {"what": "edit", "path": "a"}),
        ("effect", {"what": "run", "command": "false", "exit_code": 1}),
        ("answer", {"title": "Sure?", "outcome": "selected", "option": "allow"}),
        ("ended", {"reason": "end_turn"}),
    ]


async def play(agent: Agent) -> None:
    """One turn in which every question is answered with yes."""
    await agent.prompt(PromptId("prompt-1"), "go")
    with anyio.fail_after(30):
        async for event in agent.events():
            if isinstance(event, e.PermissionRequested):
                await agent.answer(event.request_id, "allow")
            if isinstance(event, e.TurnEnded):
                return


def test_a_deaf_agent_does_not_hear_that_it_is_cancelled(rehearsal: Rehearsal) -> None:
    with wired(rehearsal, "turns: [{do: [{say: Deaf.}, {hang: true, deaf: true}]}]") as wire:
        token = wire.open(rehearsal.directory)
        wire.prompt(token)
        assert wire.receive()["method"] == "session/update"
        wire.notify("session/cancel", sessionId=token)
        second = wire.prompt(token)
        refusal = wire.receive()
    assert refusal["id"] == second
    assert refusal["error"]["data"]["details"] == "Unknown session, or one that is in its turn."


def test_the_agent_exits_when_its_input_ends(rehearsal: Rehearsal) -> None:
    with wired(rehearsal, "{}") as wire:
        wire.open(rehearsal.directory)
        assert wire.close() == 0


def test_the_agent_takes_its_running_command_along_when_its_input_ends(rehearsal: Rehearsal) -> None:
    with wired(rehearsal, "turns: [{do: [{run: 'echo $$ > pid; touch ready; sleep 1000'}]}]") as wire:
        wire.prompt(wire.open(rehearsal.directory))
        anyio.run(until_exists, rehearsal.directory / "ready")
        assert wire.close() == 0
    assert identity(int((rehearsal.directory / "pid").read_text())) is None


def test_a_loaded_conversation_is_replayed_line_by_line(rehearsal: Rehearsal) -> None:
    script = "turns: [{do: [{think: Well.}, {write: {path: a, content: x}}, {say: Done.}]}]"
    with wired(rehearsal, script) as wire:
        token = wire.open(rehearsal.directory)
        number = wire.prompt(token)
        while wire.receive().get("id") != number:
            pass
    with wired(rehearsal, script) as wire:
        number = wire.request("session/load", sessionId=token, cwd=str(rehearsal.directory), mcpServers=[])
        kinds: list[str] = []
        while (message := wire.receive()).get("id") != number:
            kinds.append(message["params"]["update"]["sessionUpdate"])
    assert kinds == [
        "user_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "rehearsal: give --home DIR, or set SEGUE_REHEARSAL_HOME\n"),
        (["--home", "{tmp}", "--script", "{tmp}/none.yaml"], "rehearsal: The script {tmp}/none.yaml cannot be read"),
    ],
)
def test_a_wrong_call_is_explained(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    given = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    done = subprocess.run([*COMMAND, *given], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(complaint.replace("{tmp}", str(tmp_path)))


def test_paths_may_come_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("on_new: {error: From the script.}")
    environment = {
        "SEGUE_REHEARSAL_SCRIPT": str(tmp_path / "script.yaml"),
        "SEGUE_REHEARSAL_HOME": str(tmp_path / "home"),
        "SEGUE_REHEARSAL_DIARY": str(tmp_path / "elsewhere.jsonl"),
    }
    new = {"jsonrpc": "2.0", "id": 0, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
    done = subprocess.run(
        [sys.executable, "-m", "segue.testing.rehearsal"],
        input=f"{json.dumps(new)}\n",
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "From the script." in done.stdout
    assert (tmp_path / "elsewhere.jsonl").exists()


@pytest.mark.anyio
async def test_a_conversation_remembers_what_was_chosen_for_it(rehearsal: Rehearsal) -> None:
    launch = replace(rehearsal.launch("modes: [ask, edits]\nmodels: [small, large]"), mode="edits", model="large")
    async with DRIVER.start(launch) as agent:
        pass
    async with DRIVER.fork(launch, agent.token):
        pass
    async with DRIVER.resume(launch, agent.token):
        pass
    assert [entry.kind for entry in rehearsal.diary()] == ["started", "mode", "model", "forked", "resumed"]


@pytest.mark.anyio
async def test_a_conversation_that_was_closed_can_be_opened_again(rehearsal: Rehearsal) -> None:
    launch = rehearsal.launch("turns: [{do: [{recall: true}]}]")
    async with DRIVER.start(launch) as agent:
        await turn(agent, "first")
        await agent.close()
    async with DRIVER.resume(launch, agent.token) as agent:
        assert said(await turn(agent, "second")) == "I remember:\nfirst"


@pytest.mark.anyio
async def test_what_the_client_did_is_sworn_to(rehearsal: Rehearsal) -> None:
    script = "turns: [{do: [{client_write: {path: a, content: x}}, {client_read: {path: a}}, {client_run: cat a}]}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        events: list[e.AgentEvent] = []
        with anyio.fail_after(30):
            async for event in agent.events():
                events.append(event)
                if isinstance(event, e.PermissionRequested):
                    await agent.answer(event.request_id, "allow")
                if isinstance(event, e.TurnEnded):
                    break
    assert finished(events) == [("completed", "Wrote a."), ("completed", "x"), ("completed", "x")]
    assert [entry["what"] for entry in rehearsal.diary("effect")] == ["client_write", "client_read", "client_run"]
