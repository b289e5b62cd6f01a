"""What only Claude Code itself can show; `make certify AGENTS=claude-sdk` brings it, and runs this."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from acp import text_block
from candidates import ClaudeCandidate

from segue.drivers.claude.agent import ClaudeAgent
from segue.drivers.claude.options import Setup
from segue.drivers.claude.register import Register
from segue.testing.model import Say, Script, rule
from segue.testing.rehearsal.launch import turn

pytestmark = pytest.mark.anyio

SCRIPT = Script(rules=(rule("ALPHA", Say("Alpha.")), rule("BETA", Say("Beta."))))


class Listener:
    """The other side of the protocol, who hears and says nothing."""

    async def session_update(self, *_: Any) -> None:
        return None


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
async def test_a_conversation_goes_on_from_one_of_its_messages(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = ClaudeCandidate(tmp_path)
    async with claude.launch(SCRIPT) as launch:
        for name, value in launch.environment.items():
            monkeypatch.setenv(name, value)
        agent = ClaudeAgent(Setup.of(launch.environment), Register(tmp_path / "register"))
        listener: Any = Listener()
        agent.on_connect(listener)
        cwd = str(launch.directory)
        token = (await agent.new_session(cwd)).session_id
        places = [(await agent.prompt(token, [text_block(each)])).field_meta for each in ("ALPHA", "BETA")]
        await agent.close_session(token)
        assert places[0] is not None
        if way == "resume":
            await agent.resume_session(token, cwd, segue=places[0]["segue"])
        else:
            token = (await agent.fork_session(token, cwd, segue=places[0]["segue"])).session_id
        await agent.prompt(token, [text_block("what do you know?")])
        await agent.close_session(token)
        assert claude.model is not None
        last = claude.model.requests[-1]
    assert last.remembers("ALPHA", "user") and not last.remembers("BETA", "user")
