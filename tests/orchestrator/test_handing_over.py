"""A workflow goes from one agent to another, by a compiled context that was examined."""

import pytest

from segue.model import events as e
from segue.model.agents import Choices, Limits, McpServer
from segue.model.codec import decode
from segue.model.errors import AgentMissing, BadInput, WrongState
from segue.model.status import Carrying, SessionStatus, Way
from tests.orchestrator.races import failing
from tests.orchestrator.test_resuming import session_of, worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

OTHER = "understudy"
SCRIPT = """
turns:
  - match: "Task 2 of 2: Do B"
    do: [{write: {path: b.txt, content: "B"}}]
  - match: Do A
    do: [{write: {path: a.txt, content: "A"}}, {say: A is done.}, {wait_for: go}]
"""


async def pause_between_tasks(theatre: Theatre) -> None:
    await theatre.begin_until(e.ToolFinished, SCRIPT)
    await theatre.pause("build-it", "lunch")
    await theatre.go_until("build-it", "paused")


@pytest.fixture
async def between(opened: Theatre) -> Theatre:
    """Workflow `build-it` that is paused between its two tasks, without an agent."""
    await pause_between_tasks(opened)
    return opened


async def hand_over(theatre: Theatre, agent: str = OTHER, way: Way | None = None) -> e.ContextCarried:
    resumed = await theatre.resume("build-it", agent=agent, way=way)
    assert (resumed.way, resumed.agent, resumed.session_number) == (Way.CONTEXT, agent, 2)
    await theatre.until("build-it", "completed")
    (carried,) = await theatre.events("build-it", e.ContextCarried)
    return carried


async def test_another_agent_goes_on_from_a_compiled_context(between: Theatre) -> None:
    first = await session_of(between)
    carried = await hand_over(between)
    assert (await between.orchestrator.workflow("build-it")).agent == "understudy"
    assert carried.way is Way.CONTEXT
    assert carried.exam is not None and carried.exam.tokens <= carried.exam.budget
    parent = await between.orchestrator.session(first)
    child = await between.orchestrator.session(parent.children[0])
    assert (parent.agent, parent.status) == ("rehearsal", SessionStatus.COMPLETED)
    assert (child.agent, child.carrying) == ("understudy", Carrying.DONE)
    told = between.diary("prompt")[1]["text"]
    assert told.startswith("## Session Resume Context")
    assert "✓ [a] Do A" in told and "○ [b] Do B" in told
    assert "created a.txt" in told
    assert told.index(carried.text.strip()) == 0
    assert "## Task 2 of 2: Do B" in told.split("This is what to do now:")[1]
    assert (worktree_of(between) / "b.txt").exists()


async def test_what_changed_while_the_work_stood_still_is_said_first(between: Theatre) -> None:
    (worktree_of(between) / "a.txt").write_text("somebody else was here")
    carried = await hand_over(between)
    sections = [line for line in carried.text.splitlines() if line.startswith("### ")]
    assert "a.txt" in carried.text.split(sections[1])[0].split(sections[0])[1]


async def test_the_same_agent_may_begin_anew_with_a_context(between: Theatre) -> None:
    await hand_over(between, "rehearsal", Way.CONTEXT)


async def test_tools_go_along_and_the_model_of_the_other_does_not(opened: Theatre) -> None:
    tools = McpServer(name="tools", command=("cat",))
    opened.choices = Choices(mcp_servers=(tools,))
    await pause_between_tasks(opened)
    await hand_over(opened)
    row = await opened.services.journal.workflows.get("build-it")
    assert decode(Choices, row.choices) == Choices(mcp_servers=(tools,))
    *_, created = await opened.events("build-it", e.SessionCreated)
    assert created.choices == Choices(mcp_servers=(tools,))


async def test_a_context_is_compiled_without_starting_anybody(between: Theatre) -> None:
    head = (await between.orchestrator.workflow("build-it")).head
    found = await between.orchestrator.context("build-it", 1000)
    assert found.exam.tokens <= 1000
    assert 'Continue from task "Do B"' in found.context
    assert len(await between.events("build-it", e.AgentStarted)) == 1 and head > 0


@pytest.mark.usefixtures("halved")
async def test_what_cannot_take_over_is_refused_before_anything_changes(between: Theatre) -> None:
    for name, kind in (("missing", AgentMissing), ("halved", AgentMissing), ("nobody", BadInput)):
        with pytest.raises(kind):
            await between.resume("build-it", agent=name)
    with pytest.raises(BadInput, match="keeps the model"):
        await between.resume("build-it", agent="rehearsal", model="another")
    with pytest.raises(WrongState, match="cannot open a conversation of rehearsal"):
        await between.resume("build-it", agent=OTHER, way=Way.NATIVE)
    view = await between.orchestrator.workflow("build-it")
    assert (view.agent, view.status, view.sessions) == ("rehearsal", "paused", 1)


async def test_nobody_takes_over_from_an_agent_at_work(opened: Theatre) -> None:
    await opened.begin_until(e.ToolFinished, SCRIPT)
    with pytest.raises(WrongState, match="rehearsal is at work"):
        await opened.resume("build-it", agent=OTHER)
    await opened.go_until("build-it", "completed")


async def test_a_run_keeps_the_variables_of_whoever_asked_for_it(between: Theatre) -> None:
    mine = {**between.environment, "SEGUE_REHEARSAL_MINE": "1"}
    first = await between.resume("build-it", agent=OTHER, environment=mine)
    lent = between.services.environments[first.session, first.run]
    with pytest.raises(WrongState):
        other = {**between.environment, "SEGUE_REHEARSAL_OTHER": "1"}
        await between.resume("build-it", agent="rehearsal", environment=other)
    assert lent["SEGUE_REHEARSAL_MINE"] == "1"
    assert all(values is lent for values in between.services.environments.values())
    await between.until("build-it", "completed")
    assert between.services.environments == {}


async def test_without_a_compiled_context_history_is_sent(between: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "compile context", ValueError("no"))
    await between.resume("build-it", agent=OTHER)
    await between.until("build-it", "completed")
    (carried,) = await between.events("build-it", e.ContextCarried)
    warned = [event.code for event in await between.events("build-it", e.Warned)]
    assert (carried.way, "context_failed" in warned) == (Way.HISTORY, True)
    # No context says what the issue and the plan are, so the prompt must.
    told = between.diary("prompt")[1]["text"].split("=== CURRENT REQUEST ===")[1]
    assert "# Build it" in told and "[x] Do A" in told


async def test_a_context_that_a_person_has_edited_is_what_the_next_conversation_begins_with(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(tasks=1))
    await opened.begin("turns: [{match: '', do: [{say: Done.}]}]")
    await opened.until("build-it", "paused")
    compiled = (await opened.orchestrator.context("build-it", None)).context
    edited = f"{compiled}\n\nThe customer wants no tabs."
    resumed = await opened.resume("build-it", context=edited)
    assert (resumed.way, resumed.session_number) == (Way.CONTEXT, 2)
    await opened.until("build-it", "completed")
    (carried,) = await opened.events("build-it", e.ContextCarried)
    assert carried.text == edited and carried.exam is not None and carried.exam.score > 0.5
    assert "The customer wants no tabs." in opened.diary("prompt")[1]["text"]


async def test_an_edited_context_that_did_not_arrive_is_told_at_the_next_try(opened: Theatre) -> None:
    opened.choices = Choices(limits=Limits(tasks=1))
    await opened.begin("turns: [{match: '', do: [{say: Done.}]}]")
    await opened.until("build-it", "paused")
    opened.script.write_text("on_new: {exit: 1}")
    await opened.resume("build-it", context="The customer wants no tabs.")
    await opened.until("build-it", "paused", "failed")
    opened.script.write_text("turns: [{match: '', do: [{say: Done.}]}]")
    await opened.resume_until("build-it", "completed")
    assert "The customer wants no tabs." in opened.diary("prompt")[1]["text"]


@pytest.mark.parametrize(("context", "way"), [("  \n", None), ("Go on.", Way.NATIVE)])
async def test_own_contexts_that_are_empty_or_unused_fail(opened: Theatre, context: str, way: Way | None) -> None:
    opened.choices = Choices(limits=Limits(tasks=1))
    await opened.begin("turns: [{match: '', do: [{say: Done.}]}]")
    before = await opened.until("build-it", "paused")
    with pytest.raises(BadInput):
        await opened.resume("build-it", way=way, context=context)
    assert (await opened.orchestrator.workflow("build-it")).runs == before.runs
