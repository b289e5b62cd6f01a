"""Files and terminals that the driver serves, and only when the caller allows it."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from literally import LiteralAgent, answer

from segue.drivers import Agent, load
from segue.model.events import AgentEvent, PermissionRequested, ToolFinished, TurnEnded
from segue.model.ids import PromptId
from segue.testing.rehearsal.launch import Rehearsal, rest_of_turn
from segue.workspace.processes import marked

pytestmark = pytest.mark.anyio

DRIVER = load("acp")


@asynccontextmanager
async def prompted(rehearsal: Rehearsal, step: str) -> AsyncGenerator[Agent]:
    async with DRIVER.start(rehearsal.launch(f"turns: [{{do: [{step}]}}]", execution=_mark(rehearsal))) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        yield agent


def _mark(rehearsal: Rehearsal) -> str:
    """Tests run side by side."""
    return f"served-{rehearsal.root}"


async def question(agent: Agent) -> PermissionRequested:
    with anyio.fail_after(30):
        async for event in agent.events():
            if isinstance(event, PermissionRequested):
                return event
    raise AssertionError("nothing was asked")


def outcome(events: list[AgentEvent]) -> tuple[str, str]:
    [finished] = [event for event in events if isinstance(event, ToolFinished)]
    return finished.status, finished.output


async def played(rehearsal: Rehearsal, step: str, option: str | None = "allow") -> tuple[str, str]:
    """What came of the step whose one question was answered so."""
    async with prompted(rehearsal, step) as agent:
        await agent.answer((await question(agent)).request_id, option)
        return outcome(await rest_of_turn(agent))


async def unasked(rehearsal: Rehearsal, step: str) -> tuple[str, str]:
    """What came of the step about which nothing was asked."""
    async with prompted(rehearsal, step) as agent:
        events = await rest_of_turn(agent)
    assert not any(isinstance(event, PermissionRequested) for event in events)
    return outcome(events)


async def test_a_file_within_the_directory_is_read_without_a_question(rehearsal: Rehearsal) -> None:
    rehearsal.launch("{}")
    (rehearsal.directory / "poem").write_text("one\ntwo\nthree\nfour\n")
    assert await unasked(rehearsal, "{client_read: {path: poem}}") == ("completed", "one\ntwo\nthree\nfour\n")
    assert await unasked(rehearsal, "{client_read: {path: poem, line: 2, limit: 2}}") == ("completed", "two\nthree\n")
    assert await unasked(rehearsal, "{client_read: {path: poem, line: 4}}") == ("completed", "four\n")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("../secret", "outside the directory"),
        ("link", "outside the directory"),
        ("missing", "Resource not found"),
        ("picture", "not text"),
        (".", "Is a directory"),
        ("loop", "Too many levels of symbolic links"),
        # Python 3.13 looks behind such a loop, and says what lies there.
        ("loop/../link", ("Too many levels of symbolic links", "outside the directory")[sys.version_info >= (3, 13)]),
    ],
)
async def test_what_cannot_be_read_is_refused_in_a_sentence(rehearsal: Rehearsal, path: str, sentence: str) -> None:
    rehearsal.launch("{}")
    (rehearsal.root / "secret").write_text("s")
    (rehearsal.directory / "link").symlink_to(rehearsal.root / "secret")
    (rehearsal.directory / "loop").symlink_to("loop")
    (rehearsal.directory / "picture").write_bytes(b"\xff\xfe\xfd")
    status, output = await unasked(rehearsal, f"{{client_read: {{path: {path}}}}}")
    assert status == "failed" and sentence in output


async def test_a_file_is_written_when_that_is_allowed(rehearsal: Rehearsal) -> None:
    async with prompted(rehearsal, "{client_write: {path: src/a.py, content: x}}") as agent:
        asked = await question(agent)
        assert (asked.title, asked.tool) == ("Write src/a.py", "edit")
        assert [(each.id, each.kind) for each in asked.options] == [("allow", "allow_once"), ("reject", "reject_once")]
        assert not (rehearsal.directory / "src").exists()
        await agent.answer(asked.request_id, "allow")
        assert outcome(await rest_of_turn(agent)) == ("completed", "Wrote src/a.py.")
    assert [path.name for path in (rehearsal.directory / "src").iterdir()] == ["a.py"]
    assert (rehearsal.directory / "src/a.py").read_text() == "x"


async def test_a_file_keeps_its_rights(rehearsal: Rehearsal) -> None:
    rehearsal.launch("{}")
    script = rehearsal.directory / "run"
    script.write_text("old")
    script.chmod(0o750)
    await played(rehearsal, "{client_write: {path: run, content: new}}")
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("new", 0o750)


@pytest.mark.parametrize("option", ["reject", None])
async def test_what_is_not_allowed_is_not_done(rehearsal: Rehearsal, option: str | None) -> None:
    assert await played(rehearsal, "{client_write: {path: a, content: x}}", option) == (
        "failed",
        "Not allowed: Write a",
    )
    assert await played(rehearsal, "{client_run: touch b}", option) == ("failed", "Not allowed: touch b")
    assert list(rehearsal.directory.iterdir()) == []


async def test_nothing_outside_the_directory_is_written_and_nobody_is_asked(rehearsal: Rehearsal) -> None:
    rehearsal.launch("{}")
    (rehearsal.directory / "out").symlink_to(rehearsal.root)
    for path in ("../a", "out/a", "/a"):
        status, output = await unasked(rehearsal, f"{{client_write: {{path: {path}, content: x}}}}")
        assert status == "failed" and "outside the directory" in output
    assert not (rehearsal.root / "a").exists()


async def test_nothing_is_written_that_decides_what_git_runs_and_nobody_is_asked(rehearsal: Rehearsal) -> None:
    rehearsal.launch("{}")
    (rehearsal.directory / ".git").mkdir()
    (rehearsal.directory / "link").symlink_to(".git")
    for path in (".git/config", "link/config", "below/.git"):
        status, output = await unasked(rehearsal, f"{{client_write: {{path: {path}, content: x}}}}")
        assert status == "failed" and "belongs to git" in output
    assert list((rehearsal.directory / ".git").iterdir()) == []


async def test_a_cancelled_turn_refuses_what_is_open(rehearsal: Rehearsal) -> None:
    async with prompted(rehearsal, "{client_write: {path: a, content: x}}") as agent:
        await question(agent)
        await agent.cancel()
        assert (await rest_of_turn(agent))[-1] == TurnEnded(prompt_id=PromptId("prompt-1"), reason="cancelled")
    assert list(rehearsal.directory.iterdir()) == []


async def test_a_command_runs_when_that_is_allowed(rehearsal: Rehearsal) -> None:
    async with prompted(rehearsal, "{client_run: 'echo $PWD; echo no >&2; exit 3'}") as agent:
        asked = await question(agent)
        assert (asked.title, asked.tool) == ("echo $PWD; echo no >&2; exit 3", "execute")
        await agent.answer(asked.request_id, "allow")
        assert outcome(await rest_of_turn(agent)) == ("failed", f"{os.path.realpath(rehearsal.directory)}\nno\n")
    [effect] = rehearsal.diary("effect")
    assert effect["exit_code"] == 3


async def test_a_terminal_ends_with_its_conversation(rehearsal: Rehearsal) -> None:
    async with prompted(rehearsal, "{client_run: 'touch started; sleep 1000'}") as agent:
        await agent.answer((await question(agent)).request_id, "allow")
        with anyio.fail_after(30):
            while not (rehearsal.directory / "started").exists():
                await anyio.lowlevel.checkpoint()
        assert len(marked(_mark(rehearsal))) > 1
    assert marked(_mark(rehearsal)) == []


# ── one request at a time ───────────────────────────────────────────────────────────────────────────


def request(method: str, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 90, "method": method, "params": {"sessionId": "s", **parameters}}


async def served(literal: LiteralAgent, *requests: dict[str, Any]) -> list[Any]:
    """The answers to requests that the agent makes one after the other, with every question allowed."""
    numbered = [{**each, "id": 90 + number} for number, each in enumerate(requests)]
    answers: dict[str, list[Any]] = {"session_prompt": [numbered[0]], "responses": [[each] for each in numbered[1:]]}
    answers["responses"].append([{**answer(stopReason="end_turn"), "id": 2}])
    async with DRIVER.start(literal.launch(**answers)) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        with anyio.fail_after(30):
            async for event in agent.events():
                if isinstance(event, PermissionRequested):
                    await agent.answer(event.request_id, "allow")
                if isinstance(event, TurnEnded):
                    break
    return [m.get("result", m.get("error")) for m in literal.heard() if isinstance(m.get("id"), int) and m["id"] >= 90]


async def test_a_terminal_gives_the_end_of_its_output_within_its_limit(literal: LiteralAgent) -> None:
    created, ended, output, released, gone = await served(
        literal,
        request("terminal/create", command="printf", args=["%s", "aé" * 3], outputByteLimit=4),
        request("terminal/wait_for_exit", terminalId="terminal-1"),
        request("terminal/output", terminalId="terminal-1"),
        request("terminal/release", terminalId="terminal-1"),
        request("terminal/output", terminalId="terminal-1"),
    )
    assert created == {"terminalId": "terminal-1"}
    assert ended == {"exitCode": 0, "signal": None}
    assert output == {"output": "aé", "truncated": True, "exitStatus": {"exitCode": 0, "signal": None}}
    assert released == {}
    assert gone["code"] == -32002


async def test_a_terminal_can_be_killed_and_asked_afterwards(literal: LiteralAgent) -> None:
    _, running, killed, output = await served(
        literal,
        request("terminal/create", command="sleep", args=["1000"]),
        request("terminal/output", terminalId="terminal-1"),
        request("terminal/kill", terminalId="terminal-1"),
        request("terminal/output", terminalId="terminal-1"),
    )
    assert running == {"output": "", "truncated": False}
    assert killed == {}
    assert output["exitStatus"] == {"exitCode": None, "signal": "SIGTERM"}


async def test_a_terminal_has_the_requested_variables_and_directory(literal: LiteralAgent, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    command = {
        "command": "echo $WORD; pwd",
        "env": [{"name": "WORD", "value": "hello"}],
        "cwd": str(tmp_path / "below"),
    }
    _, _, output, outside, missing = await served(
        literal,
        request("terminal/create", **command),
        request("terminal/wait_for_exit", terminalId="terminal-1"),
        request("terminal/output", terminalId="terminal-1"),
        request("terminal/create", command="ls", cwd="/"),
        request("terminal/create", command="no-such-program", args=["x"]),
    )
    assert output["output"] == f"hello\n{os.path.realpath(tmp_path / 'below')}\n"
    assert "outside the directory" in outside["message"]
    assert "no-such-program was not found" in missing["message"]


async def test_an_edit_that_was_allowed_is_not_asked_about_again(literal: LiteralAgent, tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    call = {"toolCallId": "c", "title": "Edit a", "kind": "edit", "locations": [{"path": path}]}
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    permission = request("session/request_permission", toolCall=call, options=options)
    write = {**request("fs/write_text_file", path=path, content="x"), "id": 91}
    end = {**answer(stopReason="end_turn"), "id": 2}
    launch = literal.launch(session_prompt=[permission], responses=[[write], [end]])
    async with DRIVER.start(launch) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        await agent.answer((await question(agent)).request_id, "yes")
        events = await rest_of_turn(agent)
    assert not any(isinstance(event, PermissionRequested) for event in events)
    assert Path(path).read_text() == "x"


@pytest.mark.parametrize(
    ("path", "tool"),
    [
        pytest.param("a", "edit", id="a file of the worktree"),
        pytest.param("{root}/below/a", "edit", id="the same, by its whole path"),
        pytest.param("inner/a", "edit", id="a link to a file of the worktree"),
        pytest.param(".git/config", "other", id="git's settings"),
        pytest.param("below/.git", "other", id="a worktree further down"),
        pytest.param("{root}/hooks/pre-commit", "other", id="a link into git's folder"),
        pytest.param("below/../.GIT/config", "other", id="another way to write it"),
        pytest.param(".claude/settings.json", "other", id="an agent's hooks"),
        pytest.param("docs/claude/settings.json", "other", id="where a link in their name leads"),
        pytest.param("below/.claude/settings.json", "other", id="an agent's hooks further down"),
        pytest.param(".vscode/tasks.json", "other", id="an editor's tasks"),
        pytest.param("segue.toml", "other", id="what segue runs"),
        pytest.param("/etc/profile", "other", id="a file of the machine"),
        pytest.param("../a", "other", id="beside the worktree"),
        pytest.param("~/.bashrc", "other", id="a file of the user's"),
        pytest.param("file:///etc/profile", "other", id="an address"),
        pytest.param("outer/a", "other", id="a link out of the worktree"),
        pytest.param("loop", "other", id="a link to itself"),
        pytest.param("loop/../outer/a", "other", id="a link out behind a link to itself"),
        pytest.param("{root}", "other", id="the worktree as a whole"),
        pytest.param("a\0b", "other", id="no path at all"),
    ],
)
async def test_only_worktree_changes_are_edits(literal: LiteralAgent, tmp_path: Path, path: str, tool: str) -> None:
    for name, place in (("hooks", ".git/hooks"), ("inner", "below"), ("outer", ".."), ("loop", "loop")):
        (tmp_path / name).symlink_to(place)
    (tmp_path / ".claude").symlink_to("docs/claude")
    call = {"toolCallId": "c", "title": "Edit", "kind": "edit"}
    places = [{"path": path.format(root=tmp_path)}, {"path": "b"}]
    assert await judged(literal, call | {"locations": places}) == tool


async def test_an_edit_of_nobody_knows_what_is_no_edit_like_others(literal: LiteralAgent) -> None:
    assert await judged(literal, {"toolCallId": "c", "title": "Edit", "kind": "edit"}) == "other"


async def test_a_worktree_below_such_a_name_is_edited_like_others(tmp_path: Path) -> None:
    (below := tmp_path / ".claude" / "worktrees" / "one").mkdir(parents=True)
    call = {"toolCallId": "c", "title": "Edit", "kind": "edit", "locations": [{"path": f"{below}/a"}]}
    assert await judged(LiteralAgent(below), call) == "edit"


async def judged(literal: LiteralAgent, call: dict[str, Any]) -> str:
    """What the call is when somebody must allow it."""
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    permission = request("session/request_permission", toolCall=call, options=options)
    end = {**answer(stopReason="end_turn"), "id": 2}
    async with DRIVER.start(literal.launch(session_prompt=[permission], responses=[[end]])) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        asked = await question(agent)
        await agent.answer(asked.request_id, "yes")
        assert isinstance((await rest_of_turn(agent))[-1], TurnEnded)
        return asked.tool


@pytest.mark.parametrize(("path", "tool"), [("a", "edit"), (".mcp.json", "other")])
async def test_what_is_written_for_the_agent_is_judged_the_same_way(rehearsal: Rehearsal, path: str, tool: str) -> None:
    async with prompted(rehearsal, f"{{client_write: {{path: {path}, content: x}}}}") as agent:
        assert (await question(agent)).tool == tool


async def test_what_is_served_is_announced_and_nothing_else(literal: LiteralAgent) -> None:
    async with DRIVER.start(replace(literal.launch(), serves=frozenset({"files", "terminals"}))):
        pass
    offered = literal.heard()[0]["params"]["clientCapabilities"]
    assert offered == {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
