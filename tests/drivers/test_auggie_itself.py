"""Auggie's real program, with a stand-in for its server; `make certify AGENTS=auggie` brings it, and runs this."""

from pathlib import Path
from uuid import uuid4

import pytest
from candidates import AuggieCandidate

from segue.model import errors
from segue.model import events as e
from segue.model.ids import PromptId
from segue.testing.model import Script, Shell, Write, rule
from segue.testing.rehearsal.launch import rest_of_turn

pytestmark = pytest.mark.anyio


@pytest.fixture
def auggie(tmp_path: Path) -> AuggieCandidate:
    return AuggieCandidate(tmp_path)


async def test_it_introduces_itself_without_a_login(auggie: AuggieCandidate) -> None:
    introduction = await auggie.driver.introduce(auggie.place())
    assert introduction.name == "auggie"
    assert introduction.capabilities.load and introduction.capabilities.list


async def test_without_a_login_it_says_so_with_the_command(auggie: AuggieCandidate) -> None:
    with pytest.raises(errors.LoginRequired) as raised:
        async with auggie.driver.start(auggie.place()):
            pass
    assert raised.value.message.startswith("The agent wants you to log in first: Authentication required")
    assert "`auggie login`" in raised.value.message


async def test_a_conversation_that_it_does_not_have_is_rejected(auggie: AuggieCandidate) -> None:
    async with auggie.launch(Script()) as launch:
        with pytest.raises(errors.TokenRejected, match="Session not found"):
            async with auggie.driver.resume(launch, str(uuid4())):
                pass


@pytest.mark.parametrize("command", [False, True], ids=["a file", "a command"])
async def test_it_asks_before_it_changes_anything(auggie: AuggieCandidate, command: bool) -> None:
    file = auggie.worktree / "note.txt"
    does = Shell(f"date > {file}") if command else Write(str(file), "content")
    script = Script(rules=(rule("go", does),))
    async with auggie.launch(script) as launch, auggie.driver.start(launch) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        async for event in agent.events():
            assert not isinstance(event, e.TurnEnded | e.TurnFailed)
            if isinstance(event, e.PermissionRequested):
                await agent.answer(event.request_id, "reject_once")
                break
        ended = (await rest_of_turn(agent))[-1]
    assert isinstance(ended, e.TurnEnded)
    assert not file.exists()
