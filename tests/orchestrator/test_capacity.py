"""As a context fills: a warning, a new session at the soft cap, a pause at the hard one, by force at the last."""

import logging
from dataclasses import replace
from textwrap import dedent

import pytest

from segue.model import events as e
from segue.model.agents import AgentConfiguration, Choices, Limits
from segue.model.status import SessionStatus, Trigger, Way
from segue.settings import BUILT_IN_AGENTS
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

SCRIPT = """
turns:
  - match: "Task 2 of 2: Do B"
    do: [{{write: {{path: b.txt, content: "B"}}}}]
  - match: Do A
    do: [{{say: We use tabs instead of spaces.}}, {{usage: {{used: {used}, size: 100000}}}}, {rest}]
"""


def filling(used: int, rest: str = "{say: Done.}") -> str:
    return SCRIPT.format(used=used, rest=rest)


async def rungs(theatre: Theatre) -> list[str]:
    return [event.rung for event in await theatre.events("build-it", e.CapacityReached)]


async def test_a_warning_is_said_once_for_each_crossing(opened: Theatre) -> None:
    reports = ", ".join(f"{{usage: {{used: {used}, size: 100000}}}}" for used in (77_000, 40_000, 76_000))
    await opened.begin(filling(76_000, reports))
    await opened.until("build-it", "completed")
    assert await rungs(opened) == ["warn", "warn"]
    assert (await opened.orchestrator.workflow("build-it")).sessions == 1


async def test_at_the_soft_cap_a_new_session_goes_on_by_itself(opened: Theatre) -> None:
    await opened.begin(filling(81_000))
    view = await opened.until("build-it", "completed")
    assert (view.sessions, view.tasks_done) == (2, 2)
    assert await rungs(opened) == ["warn", "fork"]
    ended, _ = await opened.events("build-it", e.RunEnded)
    assert ended.outcome == "handed_over"
    (carried,) = await opened.events("build-it", e.ContextCarried)
    assert carried.way is Way.CONTEXT and carried.exam is not None
    first, second = (await opened.services.journal.state(view.id)).sessions.values()
    assert (first.status, second.way) == (SessionStatus.COMPLETED, Way.CONTEXT)
    moves = [event.after for event in await opened.events("build-it", e.WorkflowMoved)]
    assert moves == ["in_progress", "completed"]
    assert (worktree_of(opened) / "b.txt").exists()
    assert "We use tabs instead of spaces" in opened.diary("prompt")[1]["text"]


async def test_a_session_that_is_handed_over_when_the_server_is_gone_waits_for_a_person(theatre: Theatre) -> None:
    async with theatre.open():
        await theatre.begin_until(e.CapacityReached, filling(81_000, "{wait_for: go}"))
    async with theatre.open():
        view = await theatre.orchestrator.workflow("build-it")
        assert (view.status, view.sessions) == ("paused", 1)


async def test_auto_pause_on_exhaustion(opened: Theatre) -> None:
    agent = replace(opened.services.agents["rehearsal"], capacity={"fork": 0})
    opened.services.agents = {**opened.services.agents, "rehearsal": agent}
    await opened.begin(filling(86_000))
    view = await opened.until("build-it", "paused")
    (snapshot, *_) = await opened.services.journal.checkpoints.snapshots(view.id, limit=1)
    assert (snapshot.trigger, snapshot.clean_boundary, view.tasks_done) == (Trigger.EXHAUSTION, True, 1)
    assert "86,000 of 100,000 tokens (86%)" in snapshot.reason


async def test_a_context_that_is_all_but_full_is_not_waited_for(theatre: Theatre) -> None:
    async with theatre.open(pause_force_after=100_000.0):
        await theatre.begin(filling(86_000, "{usage: {used: 96000, size: 100000}}, {wait_for: go}"))
        view = await theatre.as_time_goes_by("build-it", "paused")
        (snapshot, *_) = await theatre.services.journal.checkpoints.snapshots(view.id, limit=1)
        assert (snapshot.trigger, snapshot.clean_boundary) == (Trigger.EXHAUSTION, False)
        assert await rungs(theatre) == ["warn", "fork", "pause", "force"]


async def test_a_nearly_full_context_hurries_a_pause(theatre: Theatre, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "segue")
    full = "{wait_for: go}, {usage: {used: 96000, size: 100000}}, {wait_for: never}"
    async with theatre.open(pause_force_after=100_000.0):
        await theatre.begin(filling(50_000, full))
        await theatre.until_prompted(1)
        await theatre.pause("build-it", "for tonight")
        (worktree_of(theatre) / "go").touch()
        view = await theatre.as_time_goes_by("build-it", "paused")
        asked, *_, sooner = await theatre.events("build-it", e.PauseRequested)
        assert (sooner.trigger, sooner.reason) == (Trigger.PAUSE, "for tonight")
        assert sooner.force_at < asked.force_at
        (snapshot, *_) = await theatre.services.journal.checkpoints.snapshots(view.id, limit=1)
        assert snapshot.trigger is Trigger.PAUSE and snapshot.reason.endswith(": for tonight")
    told = f"[segue] Workflow paused (workflow={view.id}, reason={snapshot.reason!r}, snapshot={snapshot.id})"
    assert caplog.messages.count(told) == 1


async def test_an_agent_that_compacts_by_itself_is_left_to_it(opened: Theatre) -> None:
    agent = replace(opened.services.agents["rehearsal"], compacts=True)
    opened.services.agents = {**opened.services.agents, "rehearsal": agent}
    await opened.begin(filling(96_000))
    assert ((await opened.until("build-it", "completed")).sessions, await rungs(opened)) == (1, ["warn"])


@pytest.mark.parametrize(
    ("everybody", "agents", "models", "expected"),
    [
        ({"warn": 0.5}, {}, {}, ["warn"]),
        ({"warn": 0.5}, {"warn": 0}, {}, []),
        ({"warn": 0.5}, {"warn": 0}, {"large": {"warn": 0.55}}, ["warn"]),
        ({}, {}, {"small": {"warn": 0.5}}, []),
        ({"stable_window": 75_000}, {}, {}, ["warn", "fork"]),
    ],
)
async def test_the_closest_capacity_counts(
    theatre: Theatre, everybody: dict, agents: dict, models: dict, expected: list[str]
) -> None:
    theatre.choices = Choices(model="large")
    async with theatre.open(capacity=everybody):
        agent = replace(theatre.services.agents["rehearsal"], capacity=agents, model_capacity=models)
        theatre.services.agents = {**theatre.services.agents, "rehearsal": agent}
        await theatre.begin(f"models: [large, small]\n{filling(60_000)}")
        await theatre.until("build-it", "completed")
        assert await rungs(theatre) == expected


async def test_work_that_paused_because_its_window_is_full_goes_on_in_a_new_session(theatre: Theatre) -> None:
    script = """
turns:
  - match: Do A
    do: [{usage: {used: 190000, size: 200000}}, {say: A is there.}]
  - match: Do B
    do: [{say: B is there.}]
"""
    async with theatre.open(capacity={"fork": 0, "force": 0}):
        await theatre.begin(script)
        await theatre.until("build-it", "paused")
        resumed = await theatre.resume("build-it")
        assert (resumed.way, resumed.session_number) == (Way.CONTEXT, 2)
        assert "full (95%)" in resumed.reason
        await theatre.until("build-it", "completed")


async def test_a_full_conversation_can_be_asked_for_all_the_same(theatre: Theatre) -> None:
    script = "turns: [{match: Do A, do: [{usage: {used: 180000, size: 200000}}, {say: A is there.}]}]"
    async with theatre.open(capacity={"fork": 0}):
        await theatre.begin(script)
        await theatre.until("build-it", "paused")
        assert (await theatre.resume("build-it", way=Way.NATIVE)).way is Way.NATIVE
        await theatre.until("build-it", "completed")


async def test_work_that_used_up_the_part_of_its_window_that_it_may_goes_on_in_a_new_session(theatre: Theatre) -> None:
    async with theatre.open(capacity={"fork": 0, "force": 0, "stable_window": 50_000}):
        await theatre.begin(filling(45_000))
        await theatre.until("build-it", "paused")
        resumed = await theatre.resume("build-it")
        assert (resumed.way, resumed.session_number) == (Way.CONTEXT, 2)
        assert "full (90%)" in resumed.reason
        await theatre.until("build-it", "completed")


@pytest.mark.parametrize(("compacts", "way"), [(False, Way.CONTEXT), (True, Way.NATIVE)])
async def test_work_that_filled_its_window_does_not_fill_it_again(opened: Theatre, compacts: bool, way: Way) -> None:
    """Nobody has reported how full it was; one that compacts by itself can make room."""
    agent = replace(opened.services.agents["rehearsal"], compacts=compacts)
    opened.services.agents = {**opened.services.agents, "rehearsal": agent}
    await opened.begin("turns: [{match: Do A, once: true, do: [{say: Hm.}, {exceed_window: true}]}]")
    await opened.until("build-it", "paused")
    assert (await opened.resume("build-it")).way is way
    await opened.until("build-it", "completed")


async def test_a_model_that_nobody_chose_is_known_by_what_the_agent_calls_it(opened: Theatre) -> None:
    words = {"large": {"warn": 0.5, "fork": 0.0}}
    agent = replace(opened.services.agents["rehearsal"], model_capacity=words)
    opened.services.agents = {**opened.services.agents, "rehearsal": agent}
    await opened.begin(f"models: [large, small]\n{filling(60_000)}")
    await opened.until("build-it", "completed")
    assert await rungs(opened) == ["warn"]


async def test_a_pause_makes_nobody_forget_what_was_said_and_counted_of_a_conversation(theatre: Theatre) -> None:
    script = """
turns:
  - {match: Do A, do: [{usage: {used: 38000, size: 50000}}, {say: A is there.}]}
  - {match: Do B, do: [{usage: {used: 39000, size: 50000}}, {say: B is there.}]}
"""
    theatre.choices = Choices(limits=Limits(tasks=1))
    async with theatre.open(capacity={"refresh_every": 38_500}):
        await theatre.begin(script)
        await theatre.until("build-it", "paused")
        assert (await theatre.resume("build-it")).way is Way.NATIVE
        await theatre.until("build-it", "completed")
        assert await rungs(theatre) == ["warn"]
        assert [each.new_tokens for each in await theatre.events("build-it", e.ContextRefreshed)] == [39_000]


# ── agents that do not tell ─────────────────────────────────────────────────────────────────────────


def talkative(theatre: Theatre, words_of_a: int) -> str:
    """An agent that tells nothing of its window, which is known to hold 20,000 tokens, and a task that fills it."""
    theatre.agents["rehearsal"] = AgentConfiguration(
        name="rehearsal",
        command=theatre.commands["rehearsal"],
        environment=("SEGUE_REHEARSAL_*",),
        capacity={"known_window": 20_000, "refresh_every": 10_000},
    )
    said = "words " * words_of_a
    return f"turns: [{{match: Do B, do: [{{say: Done.}}]}}, {{match: Do A, do: [{{say: '{said}'}}]}}]"


async def test_the_window_of_an_agent_that_does_not_tell_is_reckoned(theatre: Theatre) -> None:
    script = talkative(theatre, 11_000)
    async with theatre.open():
        await theatre.begin(script)
        view = await theatre.until("build-it", "completed")
        assert await rungs(theatre) == ["warn", "fork"]
        assert len(await theatre.events("build-it", e.ContextRefreshed)) == 1
        (report,) = await theatre.events("build-it", e.UsageReported)
        assert report.estimated and 16_500 < report.context_tokens < 18_000
        assert view.sessions == 2


async def test_what_was_reckoned_is_reckoned_on_after_a_pause(theatre: Theatre) -> None:
    script = talkative(theatre, 5_000).replace("say: Done.", f"say: '{'words ' * 5_500}'")
    async with theatre.open():
        theatre.choices = Choices(limits=Limits(tasks=1))
        await theatre.begin(script)
        await theatre.until("build-it", "paused")
        assert await rungs(theatre) == []
    async with theatre.open():
        assert (await theatre.resume("build-it")).way is Way.NATIVE
        await theatre.until("build-it", "completed")
        first, second = await theatre.events("build-it", e.UsageReported)
        assert 7_500 < first.context_tokens < 8_500 and 15_500 < second.context_tokens < 18_000
        assert (await rungs(theatre))[0] == "warn"


# ── graphs ──────────────────────────────────────────────────────────────────────────────────────────


GRAPH = """
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph

    USED = {"input_tokens": 810_000, "output_tokens": 1_000, "total_tokens": 811_000}

    def answer(state):
        return {"messages": [AIMessage("Done.", usage_metadata=USED, response_metadata={"model": "claude-opus-5-5"})]}

    graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
"""


async def test_of_a_graph_the_model_that_it_names_tells_the_window_and_the_price(theatre: Theatre) -> None:
    (theatre.root / "full.py").write_text(dedent(GRAPH))
    theatre.agents["langgraph"] = BUILT_IN_AGENTS["langgraph"]
    theatre.variables = {
        "SEGUE_LANGGRAPH_GRAPH": f"{theatre.root}/full.py:graph",
        "SEGUE_LANGGRAPH_CHECKPOINTS": str(theatre.root / "checkpoints.sqlite"),
    }
    async with theatre.open():
        await theatre.begin("", agent="langgraph")
        view = await theatre.until("build-it", "completed")
        assert await rungs(theatre) == ["warn", "fork"] * 2
        account = (await theatre.orchestrator.usage("build-it")).account
    assert (view.sessions, account.cost_source) == (2, "estimated")
    assert account.cost_usd == pytest.approx(2 * (0.81 * 4 + 0.001 * 20))
