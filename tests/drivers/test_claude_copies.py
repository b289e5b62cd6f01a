"""Segue's copy of Claude Code's conversations: real journal, protocol and SDK, and a stand-in for Claude Code."""

import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from desk import Desk, desk_at, desk_in
from stand_in import OVER, StandIn, said, words

from segue.drivers import Launch, load
from segue.drivers.environment import allowed
from segue.model import errors
from segue.model.conversations import ConversationKey
from segue.testing.rehearsal.launch import turn
from tests.journal.workflows import TickingClock

pytestmark = pytest.mark.anyio

ANSWERS: dict[str, list[list[Any]]] = {
    "ALPHA": [[said("Alpha."), OVER]],
    "BETA": [[said("Beta."), OVER]],
    "recall": [[{"recall": True}, OVER]],
}
KEY = "sk-ant-" + "a1b2c3d4" * 4


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_in(tmp_path) as desk:
        yield desk


@pytest.fixture
async def each_desk(database_url: str, clock: TickingClock) -> AsyncIterator[Desk]:
    async with desk_at(database_url, clock) as desk:
        yield desk


@pytest.fixture
def claude(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


@pytest.fixture
def launch(claude: StandIn, desk: Desk) -> Launch:
    return replace(claude.launch(ANSWERS, remembers=True), keeper=desk.keeper)


async def hold(launch: Launch, *prompts: str, token: str | None = None) -> tuple[str, str]:
    """A conversation, begun or gone on with: its name, and what was said in it last."""
    driver = load("claude")
    async with driver.resume(launch, token) if token else driver.start(launch) as agent:
        answers = [words(await turn(agent, prompt)) for prompt in prompts]
    return agent.token, answers[-1] if answers else ""


def forget(claude: StandIn) -> None:
    """Nothing of Claude Code's own is left, and nothing of what the agent knows of it."""
    shutil.rmtree(claude.home)
    claude.home.mkdir()


# ── the SDK's own suite ─────────────────────────────────────────────────────────────────────────────


async def test_it_is_a_session_store_as_the_sdk_examines_it(each_desk: Desk, tmp_path: Path) -> None:
    program = Path(__file__).with_name("store_program.py")
    launch = Launch(
        command=(sys.executable, str(program)),
        directory=tmp_path,
        environment=allowed(os.environ),
        execution=f"store-examination-{uuid4()}",
        keeper=each_desk.keeper,
    )
    async with load("acp").start(launch) as agent:
        assert words(await turn(agent, "examine it", 60)).startswith("passed")


# ── a copy is kept ──────────────────────────────────────────────────────────────────────────────────


async def test_what_is_said_is_kept_when_the_turn_ends(launch: Launch, desk: Desk) -> None:
    async with load("claude").start(launch) as agent:
        await turn(agent, "ALPHA")
        assert await desk.said(agent.token) == ["ALPHA", "Alpha."]
    assert await desk.warnings() == []


async def test_without_a_keeper_claude_code_is_not_asked_for_copies(claude: StandIn, desk: Desk) -> None:
    token, _ = await hold(claude.launch(ANSWERS, remembers=True), "ALPHA")
    assert "--session-mirror" not in claude.arguments()[0]
    assert await desk.keeper.find(conversation=token) == []


async def test_the_copy_catches_up_with_what_was_said_while_nobody_kept_it(launch: Launch, desk: Desk) -> None:
    token, _ = await hold(launch, "ALPHA")
    await hold(replace(launch, keeper=None), "BETA", token=token)
    await hold(launch, token=token)
    assert await desk.said(token) == ["ALPHA", "Alpha.", "BETA", "Beta."]


async def test_a_torn_last_line_of_its_own_file_is_no_hindrance(launch: Launch, desk: Desk, claude: StandIn) -> None:
    token, _ = await hold(replace(launch, keeper=None), "ALPHA")
    (file,) = claude.home.glob(f".claude/projects/*/{token}.jsonl")
    file.write_text(f'{file.read_text()}{{"uuid": "torn')
    await hold(launch, token=token)
    assert await desk.said(token) == ["ALPHA", "Alpha."]


async def test_an_unreadable_line_is_left_out_with_one_warning(launch: Launch, desk: Desk, claude: StandIn) -> None:
    token, _ = await hold(replace(launch, keeper=None), "ALPHA", "BETA")
    (file,) = claude.home.glob(f".claude/projects/*/{token}.jsonl")
    first, second, *rest = file.read_text().splitlines(keepends=True)
    file.write_text("".join([first, f"{second[:40]}\n", *rest]))
    for _ in range(2):
        await hold(launch, token=token)
    assert await desk.said(token) == ["ALPHA", "BETA", "Beta."]
    (warning,) = await desk.warnings()
    assert warning.startswith(f"Claude Code's own file {file} cannot be read in line 2. Segue's copy")


# ── and put back where Claude Code's own is gone ────────────────────────────────────────────────────


async def test_a_conversation_whose_files_are_gone_goes_on(launch: Launch, desk: Desk, claude: StandIn) -> None:
    token, _ = await hold(launch, "ALPHA", "BETA")
    before = await desk.entries(token)
    forget(claude)
    same, recalled = await hold(launch, "recall", token=token)
    assert same == token and recalled == "ALPHA BETA recall"
    assert (await desk.entries(token))[: len(before)] == before
    assert await desk.said(token) == ["ALPHA", "Alpha.", "BETA", "Beta.", "recall"]
    (file,) = claude.home.glob(f".claude/projects/*/{token}.jsonl")
    assert '"recall"' in file.read_text() and file.stat().st_mode & 0o777 == 0o600
    (warning,) = await desk.warnings()
    assert warning.startswith(f"Claude Code did not have conversation {token} any more. It was put back")


async def test_it_goes_on_in_another_directory(launch: Launch, claude: StandIn, tmp_path: Path, desk: Desk) -> None:
    token, _ = await hold(launch, "ALPHA")
    forget(claude)
    elsewhere = replace(launch, directory=tmp_path / "moved")
    elsewhere.directory.mkdir()
    await hold(elsewhere, "BETA", token=token)
    forget(claude)
    assert (await hold(elsewhere, "recall", token=token))[1] == "ALPHA BETA recall"
    assert len(await desk.keeper.find(conversation=token)) == 2


async def test_a_copy_for_a_fork_is_made_of_it(launch: Launch, claude: StandIn, tmp_path: Path, desk: Desk) -> None:
    token, _ = await hold(launch, "ALPHA")
    forget(claude)
    elsewhere = replace(launch, directory=tmp_path / "fork")
    elsewhere.directory.mkdir()
    async with load("claude").fork(elsewhere, token) as agent:
        assert words(await turn(agent, "recall")) == "ALPHA recall"
    assert agent.token != token and await desk.said(agent.token) == ["ALPHA", "Alpha.", "recall"]


async def test_one_that_nobody_has_is_rejected(launch: Launch, claude: StandIn, desk: Desk) -> None:
    token, _ = await hold(replace(launch, keeper=None), "ALPHA")
    forget(claude)
    with pytest.raises(errors.TokenRejected, match=f"Session not found: {token}"):
        await hold(launch, token=token)
    assert await desk.warnings() == []


async def test_a_file_that_is_there_is_never_written_over(launch: Launch, claude: StandIn) -> None:
    token, _ = await hold(launch, "ALPHA")
    (file,) = claude.home.glob(f".claude/projects/*/{token}.jsonl")
    file.write_text("")
    with pytest.raises(errors.TokenRejected):
        await hold(launch, token=token)
    assert file.read_text() == "" and [each.name for each in file.parent.iterdir()] == [file.name]


async def test_files_of_its_subagents_are_restored_beside_it(launch: Launch, claude: StandIn, desk: Desk) -> None:
    token, _ = await hold(launch, "ALPHA")
    (main,) = await desk.keeper.find(conversation=token)
    part = replace(main.key, part="subagents/agent-7")
    outside = replace(main.key, part="../../outside")
    line = {"type": "user", "uuid": "u", "message": {"content": "look"}}
    await desk.keeper.keep(part, [{"type": "agent_metadata", "agentType": "scout"}, line])
    await desk.keeper.keep(outside, [line])
    forget(claude)
    await hold(launch, token=token)
    place = claude.home / ".claude" / "projects" / main.key.project / token / "subagents"
    assert json.loads((place / "agent-7.jsonl").read_text()) == line
    assert json.loads((place / "agent-7.meta.json").read_text()) == {"agentType": "scout"}
    assert not list(claude.home.rglob("outside*"))


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────────


async def test_secrets_on_disk_become_a_note(launch: Launch, desk: Desk, claude: StandIn, tmp_path: Path) -> None:
    token, _ = await hold(launch, f"ALPHA with {KEY}")
    assert KEY not in "".join(await desk.said(token))
    files = [each for each in tmp_path.glob("segue.db*") if each.is_file()]
    assert files and not any(KEY.encode() in each.read_bytes() for each in files)
    forget(claude)
    recalled = (await hold(launch, "recall", token=token))[1]
    assert recalled == "ALPHA with [redacted:anthropic-key] recall"


async def test_a_redacted_thought_is_restored_without_signature(launch: Launch, desk: Desk, claude: StandIn) -> None:
    token, _ = await hold(launch, "ALPHA")
    (kept,) = await desk.keeper.find(conversation=token)
    thoughts = [{"type": "thinking", "thinking": words, "signature": "s"} for words in (f"use {KEY}", "go on")]
    await desk.keeper.keep(kept.key, [{"type": "assistant", "uuid": "t", "message": {"content": thoughts}}])
    forget(claude)
    await hold(launch, token=token)
    (file,) = claude.home.glob(f".claude/projects/*/{token}.jsonl")
    last = json.loads(file.read_text().splitlines()[-1])
    assert last["message"]["content"] == [{"type": "text", "text": "use [redacted:anthropic-key]"}, thoughts[1]]


async def test_what_the_vendor_would_refuse_is_put_back_in_words(launch: Launch, desk: Desk, claude: StandIn) -> None:
    token, _ = await hold(launch, "ALPHA")
    (kept,) = await desk.keeper.find(conversation=token)
    call = {"type": "tool_use", "id": "call-1", "name": "Bash", "input": {"command": "make"}}
    paired, lonely = ({"type": "tool_result", "tool_use_id": f"call-{each}", "content": "made"} for each in (1, 2))
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    for number, blocks in enumerate([[thought, call], [paired, lonely]]):
        await desk.keeper.keep(kept.key, [{"type": "user", "uuid": f"u{number}", "message": {"content": blocks}}])
    forget(claude)
    await hold(launch, token=token)
    (file,) = claude.home.glob(f".claude/projects/*/{token}.jsonl")
    *_, calls, results = [json.loads(line)["message"]["content"] for line in file.read_text().splitlines()]
    assert calls == [{"type": "text", "text": "[An empty thought]"}, call]
    assert results == [paired, {"type": "text", "text": '[The result of a call that is missing here: "made"]'}]
    (warning,) = await desk.warnings()
    assert "a result without its call is told in words" in warning


# ── a copy that fails ───────────────────────────────────────────────────────────────────────────────


async def test_a_store_that_fails_costs_no_turn_is_told_of_once_and_catches_up(launch: Launch, desk: Desk) -> None:
    async with load("claude").start(launch) as agent:
        await turn(agent, "ALPHA")
        await desk.run("ALTER TABLE kept_entries RENAME TO elsewhere")
        assert [words(await turn(agent, "BETA")) for _ in range(2)] == ["Beta."] * 2
        await desk.run("ALTER TABLE elsewhere RENAME TO kept_entries")
        await turn(agent, "BETA")
    (warning,) = await desk.warnings()
    assert warning.startswith("Segue's copy of this conversation stands still until it is opened again: Nothing was")
    assert await desk.said(agent.token) == ["ALPHA", "Alpha."]
    await hold(launch, token=agent.token)
    assert await desk.said(agent.token) == ["ALPHA", "Alpha.", *["BETA", "Beta."] * 3]


async def test_a_conversation_is_gone_back_to_without_its_copy(launch: Launch, desk: Desk) -> None:
    token, _ = await hold(launch, "ALPHA")
    await desk.run("ALTER TABLE kept_conversations RENAME TO elsewhere")
    assert (await hold(launch, "recall", token=token))[1] == "ALPHA recall"
    (warning,) = await desk.warnings()
    assert "could not be read" in warning


# ── what the journal does with it ───────────────────────────────────────────────────────────────────


async def test_a_long_conversation_is_read_in_pages(each_desk: Desk) -> None:
    key = ConversationKey(project="p", conversation="c")
    entries = [{"type": "user", "uuid": str(number), "text": "x" * 300_000} for number in range(9)]
    entries += [{"type": "user", "uuid": str(number)} for number in range(9, 500)]
    await each_desk.keeper.keep(key, entries)
    read: list[Any] = []
    pages, after = 0, 0
    while after is not None:
        page = await each_desk.keeper.read(key, after)
        read += page.entries
        pages, after = pages + 1, page.next
    assert read == entries and pages == 5


async def test_an_entry_that_comes_again_is_kept_once(each_desk: Desk) -> None:
    key = ConversationKey(project="p", conversation="c")
    first, second, nameless = {"type": "a", "uuid": "1"}, {"type": "a", "uuid": "2"}, {"type": "mode"}
    await each_desk.keeper.keep(key, [first, nameless])
    await each_desk.keeper.keep(key, [first, first, second, second, nameless])
    assert list((await each_desk.keeper.read(key)).entries) == [first, nameless, second, nameless]
    assert [each.last for each in await each_desk.keeper.find(conversation="c")] == ["2"]


async def test_half_a_character_and_a_null_are_no_hindrance(each_desk: Desk) -> None:
    key = ConversationKey(project="p", conversation="c")
    await each_desk.keeper.keep(key, [{"type": "a", "text": "\ud83d and \x00"}])
    assert (await each_desk.keeper.read(key)).entries == ({"type": "a", "text": "? and \x00"},)


async def test_whoever_asks_for_nothing_in_particular_finds_nothing(each_desk: Desk) -> None:
    await each_desk.keeper.keep(ConversationKey(project="p", conversation="c"), [{"type": "a"}])
    assert await each_desk.keeper.find() == []
