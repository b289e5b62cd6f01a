"""Graphs in processes of their own, as users run them: the sample, a kill, and programs that do not behave."""

import os
import signal
from pathlib import Path
from textwrap import dedent

import anyio
import pytest
from candidates import LangGraphCandidate

from segue.drivers import Agent
from segue.model import errors
from segue.model.events import AgentEvent, PermissionRequested, TextDelta, TurnEnded
from segue.model.ids import PromptId
from segue.testing.rehearsal.launch import rest_of_turn, turn

pytestmark = pytest.mark.anyio

SAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "todo_graph.py"
WITHIN = 60.0

STEPS = """
    import asyncio
    from pathlib import Path
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph

    def note(name):
        with Path("diary.txt").open("a") as diary:
            diary.write(name + " ")

    def first(state):
        print("a graph may print", flush=True)
        note("first")
        return {"messages": [AIMessage("First.")]}

    async def second(state):
        note("second")
        if "go on" not in str(state["messages"][-1].content):
            Path("begun").write_text("")
            await asyncio.Event().wait()
        return {"messages": [AIMessage("Second.")]}

    graph = StateGraph(MessagesState).add_node(first).add_node(second)
    graph.add_edge(START, "first").add_edge("first", "second")
"""


NAMING = """
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import interrupt

    def ask(state):
        return {"messages": [AIMessage(f"Heard {interrupt('What shall I call it?')!r}")]}

    graph = StateGraph(MessagesState).add_node(ask).add_edge(START, "ask")
"""


@pytest.fixture
def candidate(tmp_path: Path) -> LangGraphCandidate:
    candidate = LangGraphCandidate(tmp_path)
    candidate.worktree.mkdir()
    return candidate


def _said(events: list[AgentEvent], role: str = "message") -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta) and event.role == role)


async def _until_asked(agent: Agent) -> PermissionRequested:
    with anyio.fail_after(WITHIN):
        async for event in agent.events():
            if isinstance(event, PermissionRequested):
                return event
    raise AssertionError("nothing was asked")


def test_the_page_shows_the_sample_as_it_is() -> None:
    assert f"```python\n{SAMPLE.read_text()}```\n" in SAMPLE.with_name("run-a-langgraph.md").read_text()


@pytest.mark.parametrize(("option", "answer"), [("allow", "They are in TODO.md now."), ("reject", "I wrote nothing.")])
async def test_the_sample_asks_before_it_writes(candidate: LangGraphCandidate, option: str, answer: str) -> None:
    (candidate.worktree / "code.py").write_text("x = 1  # TODO: give it a name\n")
    async with candidate.driver.start(candidate.launch(f"{SAMPLE}:graph")) as agent:
        await agent.prompt(PromptId("prompt-1"), "What is left to do?")
        question = await _until_asked(agent)
        assert question.title == "Shall I write TODO.md?"
        await agent.answer(question.request_id, option)
        events = await rest_of_turn(agent, WITHIN)
    assert _said(events) == answer
    written = candidate.worktree / "TODO.md"
    assert (written.read_text() if written.exists() else None) == (
        "- code.py:1: give it a name\n" if option == "allow" else None
    )


async def test_words_are_heard_word_for_word(candidate: LangGraphCandidate) -> None:
    (candidate.worktree / "naming.py").write_text(dedent(NAMING))
    async with candidate.driver.start(candidate.launch("naming:graph")) as agent:
        await agent.prompt(PromptId("prompt-1"), "begin")
        question = await _until_asked(agent)
        assert question.free_text
        await agent.answer(question.request_id, "allow", "Call it segue.")
        assert _said(await rest_of_turn(agent, WITHIN)) == "Heard 'Call it segue.'"


async def test_a_question_survives_the_process_that_asked_it(candidate: LangGraphCandidate) -> None:
    launch = candidate.launch(f"{SAMPLE}:graph")
    async with candidate.driver.start(launch) as agent:
        await agent.prompt(PromptId("prompt-1"), "What is left to do?")
        await _until_asked(agent)
        os.kill(agent.pid, signal.SIGKILL)
    async with candidate.driver.resume(launch, agent.token) as back:
        await back.prompt(PromptId("prompt-2"), "Go on.")
        await back.answer((await _until_asked(back)).request_id, "allow")
        assert isinstance((await rest_of_turn(back, WITHIN))[-1], TurnEnded)
    assert (candidate.worktree / "TODO.md").read_text() == ""


async def test_a_killed_graph_resumes_at_its_checkpoint(candidate: LangGraphCandidate, empty_database_url: str) -> None:
    (candidate.worktree / "steps.py").write_text(dedent(STEPS))
    launch = candidate.launch("steps:graph", SEGUE_LANGGRAPH_CHECKPOINTS=empty_database_url)
    diary, begun = candidate.worktree / "diary.txt", candidate.worktree / "begun"
    os.mkfifo(begun)
    async with candidate.driver.start(launch) as agent:
        await agent.prompt(PromptId("prompt-1"), "begin")
        with anyio.fail_after(WITHIN):
            await anyio.to_thread.run_sync(begun.read_text, abandon_on_cancel=True)
        os.kill(agent.pid, signal.SIGKILL)
    async with candidate.driver.resume(launch, agent.token) as back:
        events = await turn(back, "go on", WITHIN)
    assert diary.read_text().split() == ["first", "second", "second"]
    assert _said(events) == "Second."
    assert "second was not finished then, so what it did is unknown" in _said(events, "thought")


async def test_a_graph_that_cannot_be_imported_is_told_in_its_own_words(candidate: LangGraphCandidate) -> None:
    (candidate.worktree / "broken.py").write_text("import a_module_that_never_was\n")
    launch = candidate.launch("broken.py:graph")
    assert (await candidate.driver.introduce(launch)).name == "langgraph"
    with pytest.raises(errors.HandshakeFailed, match=r"broken\.py cannot be imported: ModuleNotFoundError"):
        async with candidate.driver.start(launch):
            pass
