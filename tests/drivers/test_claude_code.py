"""What only Claude Code itself can show; `make certify AGENTS=claude-sdk` brings it, and runs this."""

import json
import os
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from candidates import ClaudeCandidate
from client import Client, prompt
from desk import desk_in

from segue.drivers.claude.agent import ClaudeAgent
from segue.drivers.claude.register import Register
from segue.drivers.claude.setup import Setup
from segue.model.events import AgentEvent, PermissionRequested, TurnEnded
from segue.model.ids import PromptId
from segue.testing.model import Call, Say, Script, Step, rule
from segue.testing.rehearsal.launch import turn
from tests.equipment.waiting import until

pytestmark = pytest.mark.anyio

SCRIPT = Script(rules=(rule("ALPHA", Say("Alpha.")), rule("BETA", Say("Beta."))))


async def test_a_copy_remembers_in_another_directory(tmp_path: Path) -> None:
    claude = ClaudeCandidate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    async with claude.launch(SCRIPT) as launch:
        async with claude.driver.start(launch) as agent:
            await turn(agent, "REMEMBER-ALPHA", 60)
        async with claude.driver.fork(replace(launch, directory=other), agent.token) as copy:
            assert await claude.remembers(copy, "REMEMBER-ALPHA")
        async with claude.driver.resume(replace(launch, directory=other), copy.token) as again:
            assert await claude.remembers(again, "REMEMBER-ALPHA")


@pytest.mark.parametrize("way", ["resume", "fork"])
async def test_a_conversation_whose_files_are_gone_goes_on_from_segues_copy(way: str, tmp_path: Path) -> None:
    claude = ClaudeCandidate(tmp_path)
    secret = "sk-ant-" + "a1b2c3d4" * 4
    async with desk_in(tmp_path) as desk, claude.launch(SCRIPT) as launch:
        launch = replace(launch, keeper=desk.keeper)
        async with claude.driver.start(launch) as agent:
            await turn(agent, f"REMEMBER-ALPHA, not {secret}", 60)
            await turn(agent, "BETA", 60)
        shutil.rmtree(claude.home)
        claude.home.mkdir()
        async with getattr(claude.driver, way)(launch, agent.token) as again:
            assert await claude.remembers(again, "REMEMBER-ALPHA, not [redacted:anthropic-key]")
        assert claude.model is not None and claude.model.requests[-1].remembers("Beta.", "assistant")
        assert len(await desk.warnings()) == 1


async def test_what_it_had_said_when_it_was_killed_goes_on_from_segues_copy(tmp_path: Path) -> None:
    claude = ClaudeCandidate(tmp_path)
    look = Call("Read", {"file_path": str(claude.worktree / "nothing.txt")})
    never = Step(answer=Say("Never."), hold="for ever")
    script = Script(rules=(rule("what do you know", Say("All.")), rule("GAMMA", look, never)))
    async with desk_in(tmp_path) as desk, claude.launch(script) as launch:
        launch = replace(launch, keeper=desk.keeper)
        async with claude.driver.start(launch) as agent:

            async def its_call_is_kept() -> bool:
                return "tool_result" in str(await desk.kept(agent.token))

            await agent.prompt(PromptId("prompt-1"), "GAMMA")
            await until(its_call_is_kept)
            os.kill(agent.pid, signal.SIGKILL)
        shutil.rmtree(claude.home)
        claude.home.mkdir()
        async with claude.driver.resume(launch, agent.token) as again:
            assert await claude.remembers(again, "GAMMA")
        assert claude.model is not None and claude.model.requests[-1].remembers("nothing.txt", "assistant")


@pytest.mark.parametrize("way", ["resume", "fork"])
async def test_a_conversation_goes_on_from_a_message(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claude = ClaudeCandidate(tmp_path)
    async with claude.launch(SCRIPT) as launch:
        for name, value in launch.environment.items():
            monkeypatch.setenv(name, value)
        agent = ClaudeAgent(Client(), Setup.of(launch.environment), Register(tmp_path / "register"))
        cwd = str(launch.directory)
        conversation = await agent.begin(cwd, ())
        first, _ = [(await conversation.play(prompt(each)))["_meta"]["segue"]["at"] for each in ("ALPHA", "BETA")]
        await conversation.close()
        again = agent.resume if way == "resume" else agent.copy
        conversation = await again(conversation.token, cwd, (), first)
        await conversation.play(prompt("what do you know?"))
        await conversation.close()
        assert claude.model is not None
        last = claude.model.requests[-1]
    assert last.remembers("ALPHA", "user") and not last.remembers("BETA", "user")


# ── what a repository says ──────────────────────────────────────────────────────────────────────────

ALLOW = ["Bash", "Write"]
YES = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
TOUCH = Call("Bash", {"command": "touch made.txt", "description": "make it"})
LOOK = Call("Bash", {"command": "ls | head", "description": "look"})


async def refused(claude: ClaudeCandidate, settings: dict[str, Any], script: Script, **chosen: str) -> list[AgentEvent]:
    """One turn in a repository with these settings, in which every question is answered with no."""
    (file := claude.worktree / ".claude" / "settings.json").parent.mkdir(parents=True)
    file.write_text(json.dumps(settings))
    # Else its rules are not heard: it is a repository, and the user has said yes to it once.
    subprocess.run(["git", "init", "--quiet", claude.worktree], check=True)
    claude.home.mkdir()
    trusted = {"projects": {str(claude.worktree): {"hasTrustDialogAccepted": True}}}
    (claude.home / ".claude.json").write_text(json.dumps(trusted))
    events: list[AgentEvent] = []
    async with claude.launch(script) as launch, claude.driver.start(replace(launch, **chosen)) as agent:
        await agent.prompt(PromptId("prompt-1"), "ALPHA")
        with anyio.fail_after(60):
            async for event in agent.events():
                events.append(event)
                if isinstance(event, PermissionRequested):
                    await agent.answer(event.request_id, "reject")
                if isinstance(event, TurnEnded):
                    return events
    raise AssertionError("The stream ended within the turn.")


def asked(events: list[AgentEvent]) -> list[str]:
    return [event.title for event in events if isinstance(event, PermissionRequested)]


@pytest.mark.parametrize(
    "settings",
    [
        {"permissions": {"allow": ALLOW}},
        {"permissions": {"allow": ALLOW, "defaultMode": "bypassPermissions"}},
        {"permissions": {"allow": ALLOW}, "disableAllHooks": True},
        {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": f"echo '{json.dumps(YES)}'"}]}]}},
    ],
    ids=["a rule", "a mode", "no hooks", "a hook"],
)
async def test_what_a_repository_allows_is_asked_for_all_the_same(settings: dict[str, Any], tmp_path: Path) -> None:
    claude = ClaudeCandidate(tmp_path)
    written = claude.worktree / "written.txt"
    write = Call("Write", {"file_path": str(written), "content": "content"})
    script = Script(rules=(rule("ALPHA", TOUCH, write, LOOK, Say("Done.")),))
    assert asked(await refused(claude, settings, script)) == ["touch made.txt", f"Write {written}"]
    assert {each.name for each in claude.worktree.iterdir()} == {".claude", ".git"}


async def test_the_mode_that_the_user_chose_lets_edits_through_and_no_command(tmp_path: Path) -> None:
    claude = ClaudeCandidate(tmp_path)
    written = claude.worktree / "written.txt"
    script = Script(
        rules=(rule("ALPHA", TOUCH, Call("Write", {"file_path": str(written), "content": "content"}), Say("Done.")),)
    )
    events = await refused(claude, {"permissions": {"allow": ALLOW}}, script, mode="acceptEdits")
    assert asked(events) == ["touch made.txt"] and written.read_text() == "content"
    assert not (claude.worktree / "made.txt").exists()


async def test_the_commands_of_a_subagent_are_asked_for_too(tmp_path: Path) -> None:
    claude = ClaudeCandidate(tmp_path)
    given = {"description": "touch it", "prompt": "BETA", "subagent_type": "claude", "run_in_background": False}
    script = Script(rules=(rule("BETA", TOUCH, Say("Touched.")), rule("ALPHA", Call("Agent", given), Say("Done."))))
    assert asked(await refused(claude, {"permissions": {"allow": ALLOW}}, script)) == ["touch made.txt"]
    assert not (claude.worktree / "made.txt").exists()
