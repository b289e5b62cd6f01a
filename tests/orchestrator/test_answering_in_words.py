"""A question that may be answered in words is answered by what somebody says."""

import sys
from textwrap import dedent

import pytest

from segue.model import events as e
from tests.orchestrator.test_finishing import answer
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

ONE_TASK = "[{id: a, title: Do A}]"
ASKING = """
    from pathlib import Path
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import interrupt

    def ask(state):
        Path("heard.txt").write_text(repr(interrupt("What shall I call it?")))
        return {}

    graph = StateGraph(MessagesState).add_node(ask).add_edge(START, "ask")
"""


@pytest.fixture
def asking(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> Theatre:
    """A theatre with a graph that wants to know something."""
    monkeypatch.setenv("XDG_DATA_HOME", str(theatre.root))
    (theatre.repository / "asking.py").write_text(dedent(ASKING))
    git(theatre.repository, "add", "asking.py")
    git(theatre.repository, "commit", "-m", "A graph")
    theatre.commands["graph"] = (sys.executable, "-P", "-m", "segue.drivers.langgraph", "asking:graph")
    return theatre


async def test_what_is_said_is_the_answer_and_no_prompt(asking: Theatre) -> None:
    async with asking.open():
        await asking.begin("turns: []", plan=ONE_TASK, agent="graph", permissions="ask")
        asked = (await asking.event("build-it", e.PermissionRequested)).event
        question = (await asking.orchestrator.workflow("build-it")).question
        assert question is not None and question.words
        said = await asking.prompt("build-it", "Call it segue.")
        assert (said.status, said.reason) == ("answered", "It answers: What shall I call it?")
        await asking.until("build-it", "completed")
        answers = await asking.events("build-it", e.PermissionAnswered)
        assert answers == [
            e.PermissionAnswered(request_id=asked.request_id, outcome="allowed", by="user", reason="Call it segue.")
        ]
        assert len(await asking.events("build-it", e.PromptQueued)) == 1
    assert (worktree_of(asking) / "heard.txt").read_text() == "'Call it segue.'"


async def test_yes_and_no_answer_it_too(asking: Theatre) -> None:
    async with asking.open():
        await asking.begin_until(e.PermissionRequested, "turns: []", plan=ONE_TASK, agent="graph", permissions="ask")
        await answer(asking, "build-it", allow=False, reason="not now")
        await asking.until("build-it", "completed")
    assert (worktree_of(asking) / "heard.txt").read_text() == "False"


async def test_words_wait_while_a_question_is_open_that_wants_yes_or_no(opened: Theatre) -> None:
    script = """
    turns:
      - match: Do A
        do: [{write: {path: a.txt, content: "A"}, ask: May I?}]
    """
    await opened.begin_until(e.PermissionRequested, dedent(script), plan=ONE_TASK, permissions="ask")
    assert (await opened.prompt("build-it", "Use tabs.", wait=False)).status == "waiting"
    assert await opened.events("build-it", e.PermissionAnswered) == []
    await answer(opened, "build-it", allow=True)
    await opened.until("build-it", "completed")
