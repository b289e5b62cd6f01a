"""A graph's threads are found again, listed and copied, in SQLite and in PostgreSQL."""

import stat
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from segue.drivers.langgraph.threads import Saver, Threads, config_of, opened, place

pytestmark = pytest.mark.anyio


def echo(state: MessagesState) -> dict[str, Any]:
    answer = interrupt("Shall I?") if "ask" in str(state["messages"][-1].content) else None
    return {"messages": [AIMessage(f"{len(state['messages'])} messages, {answer}")]}


GRAPH = StateGraph(MessagesState).add_node(echo).add_edge(START, "echo").compile()


@pytest.fixture
async def saver(empty_database_url: str) -> AsyncGenerator[Saver]:
    async with opened(empty_database_url) as saver:
        yield saver


async def _say(saver: Saver, token: str, given: Any) -> str:
    given = {"messages": [HumanMessage(given)]} if isinstance(given, str) else given
    values = await GRAPH.copy({"checkpointer": saver}).ainvoke(given, config_of(token))
    return values["messages"][-1].content


async def test_a_thread_is_known_before_anything_is_said_in_it(saver: Saver) -> None:
    threads = Threads(saver)
    token = await threads.begin("/somewhere")
    assert await threads.knows(token)
    assert not await threads.knows("langgraph-of-nobody")
    assert await _say(saver, token, "hello") == "1 messages, None"


async def test_a_directory_lists_its_own_threads(saver: Saver) -> None:
    threads = Threads(saver)
    here, copied = await threads.begin("/here"), await threads.begin("/there")
    await _say(saver, here, "hello")
    copy = await threads.copy(copied, "/here")
    assert {each.token async for each in threads.all("/here")} == {here, copy}
    assert [each.token async for each in threads.all("/nowhere")] == []


async def test_a_copy_goes_on_from_the_last_checkpoint_and_the_original_stays(saver: Saver) -> None:
    threads = Threads(saver)
    token = await threads.begin("/here")
    await _say(saver, token, "hello")
    assert await _say(saver, await threads.copy(token, "/there"), "and more") == "3 messages, None"
    assert await _say(saver, token, "something else") == "3 messages, None"


async def _stands_at(saver: Saver, token: str) -> str:
    state = await GRAPH.copy({"checkpointer": saver}).aget_state(config_of(token))
    return state.config["configurable"]["checkpoint_id"]


async def test_a_copy_up_to_a_checkpoint_has_nothing_that_came_after_it(saver: Saver) -> None:
    threads = Threads(saver)
    token = await threads.begin("/here")
    await _say(saver, token, "hello")
    at = await _stands_at(saver, token)
    await _say(saver, token, "ask")
    assert await threads.knows(token, at) and not await threads.knows(token, "1f-of-nobody")
    copy = await threads.copy(token, "/there", at)
    assert await _stands_at(saver, copy) == at
    assert await _say(saver, copy, "and more") == "3 messages, None"
    assert await _say(saver, token, Command(resume="yes")) == "3 messages, yes"


async def test_what_was_begun_from_a_checkpoint_later_is_not_copied_with_it(saver: Saver) -> None:
    """A graph that was stopped before a node, and then let go on: what the node wrote is kept with the checkpoint."""

    def fails(state: MessagesState) -> dict[str, Any]:
        raise RuntimeError("no")

    builder = StateGraph(MessagesState).add_node(echo).add_node(fails).add_edge(START, "echo").add_edge(START, "fails")
    graph = builder.compile(checkpointer=saver, interrupt_before=["echo"])
    threads = Threads(saver)
    token = await threads.begin("/here")
    await graph.ainvoke({"messages": [HumanMessage("hello")]}, config_of(token))
    at = await _stands_at(saver, token)
    with pytest.raises(RuntimeError):
        await graph.ainvoke(Command(update={"messages": [HumanMessage("later")]}), config_of(token))
    original, copied = [
        await saver.aget_tuple({"configurable": {"thread_id": each, "checkpoint_ns": "", "checkpoint_id": at}})
        for each in (token, await threads.copy(token, "/there", at))
    ]
    assert original is not None and original.pending_writes
    assert copied is not None and not copied.pending_writes


class Torn(Exception):
    """The process died."""


async def test_a_copy_that_somebody_died_over_is_listed_nowhere(saver: Saver, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, written = Threads(saver), saver.aput
    token = await threads.begin("/here")
    await _say(saver, token, "hello")

    async def torn(*given: Any) -> Any:
        if len(written_so_far) == 2:
            raise Torn
        written_so_far.append(given)
        return await written(*given)

    written_so_far: list[Any] = []
    monkeypatch.setattr(saver, "aput", torn)
    with pytest.raises(Torn):
        await threads.copy(token, "/there")
    assert len(written_so_far) == 2 and [each.token async for each in threads.all("/there")] == []


async def test_a_copy_has_the_question_that_is_open(saver: Saver) -> None:
    threads = Threads(saver)
    token = await threads.begin("/here")
    await _say(saver, token, "ask")
    assert await _say(saver, await threads.copy(token, "/here"), Command(resume="yes")) == "1 messages, yes"
    assert await _say(saver, token, Command(resume="no")) == "1 messages, no"


async def test_the_file_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "data" / "graph.sqlite"
    async with opened(str(file)) as saver:
        await Threads(saver).begin("/here")
        assert {stat.S_IMODE(each.stat().st_mode) for each in file.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_checkpoints_are_where_the_user_says_and_else_with_his_data() -> None:
    assert place({"SEGUE_LANGGRAPH_CHECKPOINTS": "postgresql://host/db"}) == "postgresql://host/db"
    assert place({"XDG_DATA_HOME": "/data"}) == "/data/segue-langgraph/checkpoints.sqlite"
    assert place({"HOME": "/home/me"}) == "/home/me/.local/share/segue-langgraph/checkpoints.sqlite"
