"""What a graph does with a prompt, wherever it was stopped before, and what is told of it."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, cast

import anyio
import pytest
from client import Client, prompt
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send, interrupt

from segue.drivers.langgraph.graph_messages import INTERRUPTED
from segue.drivers.langgraph.graphs import Graph
from segue.drivers.langgraph.threads import Saver, Threads, opened
from segue.drivers.langgraph.turns import GraphThread, GraphTurn, Workers
from segue.drivers.skeleton.agent_program import Channel
from segue.drivers.skeleton.jsonrpc import RequestError
from segue.drivers.skeleton.payloads import Payload

pytestmark = pytest.mark.anyio

CALLS = [{"name": "sh", "args": {"n": number}, "id": f"call-{number}"} for number in (1, 2)]
WITHIN = 30.0


def called(client: Client) -> list[tuple[str, str]]:
    """Each call's beginning by its title, and its end by its status."""
    told = {"tool_call": "title", "tool_call_update": "status"}
    return [
        (each["toolCallId"], each[told[each["sessionUpdate"]]])
        for each in client.heard
        if each["sessionUpdate"] in told
    ]


@dataclass
class Thread:
    """One thread of a graph, and a client for each of its turns."""

    saver: Saver
    workers: Workers
    token: str = ""

    def turn(self, graph: Any, client: Client, key: str | None = "messages") -> GraphTurn:
        pregel = graph.copy({"checkpointer": self.saver})
        return GraphTurn(
            GraphThread(channel=Channel(client, self.token), graph=Graph(pregel, key), workers=self.workers)
        )

    async def play(self, graph: Any, text: str, *answers: bool, key: str | None = "messages") -> tuple[Client, Payload]:
        client = Client(*answers)
        with anyio.fail_after(WITHIN):
            response = await self.turn(graph, client, key).play(prompt(text))
        return client, response

    async def cut_short(self, graph: Any, text: str, running: asyncio.Event) -> Client:
        """A turn that is cancelled as soon as this event is set."""
        client = Client()
        turn = self.turn(graph, client)
        with anyio.fail_after(WITHIN):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(turn.play, prompt(text))
                await running.wait()
                await turn.cancel()
        return client


@pytest.fixture
async def thread(tmp_path: Path) -> AsyncGenerator[Thread]:
    workers = Workers()
    asyncio.get_running_loop().set_default_executor(workers)
    async with opened(str(tmp_path / "graph.sqlite")) as saver:
        yield Thread(saver, workers, await Threads(saver).begin(str(tmp_path)))


def _loop(model: Callable[..., Any], tools: Callable[..., Any], *, one_by_one: bool = False) -> Any:
    """A model and its tools in turns; the tools all at once, or each call for itself."""

    def after(state: MessagesState) -> Any:
        calls = cast(AIMessage, state["messages"][-1]).tool_calls
        return ([Send("tools", call) for call in calls] if one_by_one else "tools") if calls else END

    builder = StateGraph(MessagesState).add_node("model", model).add_node("tools", tools)
    builder = builder.add_edge(START, "model").add_conditional_edges("model", after, ["tools", END])
    return builder.add_edge("tools", "model").compile()


def _model(state: MessagesState) -> dict[str, Any]:
    last = state["messages"][-1]
    if isinstance(last, HumanMessage) and "both" in last.content:
        return {"messages": [AIMessage("", tool_calls=CALLS)]}
    return {"messages": [AIMessage(" | ".join(f"{each.type}: {each.content}" for each in state["messages"]))]}


# ── where it was stopped ────────────────────────────────────────────────────────────────────────────


async def test_calls_without_a_result_get_one_that_says_so_and_no_tool_is_used_twice(thread: Thread) -> None:
    used, hanging = [], asyncio.Event()

    async def tools(call: dict[str, Any]) -> dict[str, Any]:
        used.append(call["id"])
        if call["id"] == "call-2":
            hanging.set()
            await asyncio.Event().wait()
        return {"messages": [ToolMessage("done", tool_call_id=call["id"])]}

    graph = _loop(_model, tools, one_by_one=True)
    await thread.cut_short(graph, "use both", hanging)
    client, response = await thread.play(graph, "go on")

    assert used == ["call-1", "call-2"]
    assert response["stopReason"] == "end_turn"
    assert client.text() == f"human: use both | ai:  | tool: done | tool: {INTERRUPTED} | human: go on"
    assert client.text("agent_thought_chunk") == f'I was interrupted in sh({{"n": 2}}). {INTERRUPTED}\n'
    assert called(client) == []


async def test_a_node_that_was_not_finished_is_begun_again_and_the_others_are_not(thread: Thread) -> None:
    done, hanging = [], asyncio.Event()

    def first(state: MessagesState) -> dict[str, Any]:
        done.append("first")
        return {"messages": [AIMessage("First.")]}

    async def second(state: MessagesState) -> dict[str, Any]:
        done.append("second")
        if not hanging.is_set():
            hanging.set()
            await asyncio.Event().wait()
        return {"messages": [AIMessage(f"Heard: {state['messages'][-1].content}")]}

    graph = StateGraph(MessagesState).add_node(first).add_node(second).add_edge(START, "first")
    graph = graph.add_edge("first", "second").add_edge("second", END).compile()
    await thread.cut_short(graph, "begin", hanging)
    client, _ = await thread.play(graph, "go on")

    assert done == ["first", "second", "second"]
    assert client.text() == "Heard: go on"
    assert "second was not finished then, so what it did is unknown" in client.text("agent_thought_chunk")


async def test_a_question_that_nobody_answered_is_asked_again(thread: Thread) -> None:
    heard = []

    def ask(state: MessagesState) -> dict[str, Any]:
        heard.append(interrupt("Shall I?"))
        return {"messages": [AIMessage("Thank you.")]}

    graph = StateGraph(MessagesState).add_node(ask).add_edge(START, "ask").add_edge("ask", END).compile()
    nobody = Client()
    with pytest.raises(RequestError, match="IndexError"):
        await thread.turn(graph, nobody).play(prompt("begin"))
    client, _ = await thread.play(graph, "go on", True)

    assert [title for title, _ in nobody.asked] == [title for title, _ in client.asked] == ["Shall I?"]
    assert heard == [True]


# ── what it asks ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_question_about_a_call_ends_with_the_call(thread: Thread, allowed: bool) -> None:
    def model(state: MessagesState) -> dict[str, Any]:
        calls = CALLS[:1] if isinstance(state["messages"][-1], HumanMessage) else []
        return {"messages": [AIMessage("", tool_calls=calls)]}

    def tools(state: MessagesState) -> dict[str, Any]:
        answer = interrupt({"question": "May this run?", "command": "ls"})
        return {"messages": [ToolMessage(f"heard {answer}", tool_call_id="call-1")]}

    client, _ = await thread.play(_loop(model, tools), "begin", allowed)
    assert client.asked == [("May this run?", "call-1")]
    assert called(client) == [("call-1", 'sh({"n": 1})'), ("call-1", "completed")]
    assert client.heard[-1]["content"][0]["content"]["text"] == f"heard {allowed}"


async def test_reviews_of_langchain_hear_one_decision_for_each_action(thread: Thread) -> None:
    heard = []

    def review(state: MessagesState) -> dict[str, Any]:
        actions = [{"name": call["name"], "args": call["args"]} for call in CALLS]
        heard.append(interrupt({"action_requests": actions, "review_configs": []}))
        return {}

    graph = StateGraph(MessagesState).add_node(review).add_edge(START, "review").compile()
    client, _ = await thread.play(graph, "begin", True, False)
    assert [title for title, _ in client.asked] == ['sh({"n": 1})', 'sh({"n": 2})']
    approved, rejected = {"type": "approve"}, {"type": "reject", "message": "The user refused this."}
    assert heard == [{"decisions": [approved, rejected]}]


async def test_several_interrupts_at_once_are_asked_one_after_the_other(thread: Thread) -> None:
    heard = {}

    def ask(state: MessagesState, name: str) -> None:
        heard[name] = interrupt(f"Shall {name}?")

    builder = StateGraph(MessagesState)
    for name in ("left", "right"):
        builder = builder.add_node(name, partial(ask, name=name)).add_edge(START, name)
    client, _ = await thread.play(builder.compile(), "begin", True, False)
    assert heard == {"left": client.asked[0][0] == "Shall left?", "right": client.asked[0][0] == "Shall right?"}


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_graph_that_stops_before_a_node_asks_whether_it_may_go_on(thread: Thread, allowed: bool) -> None:
    def work(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("Worked.")]}

    graph = StateGraph(MessagesState).add_node(work).add_edge(START, "work").compile(interrupt_before=["work"])
    client, response = await thread.play(graph, "begin", allowed)
    assert client.asked[0][0] == "The graph has stopped before work. May it go on?"
    assert client.text() == ("Worked." if allowed else "")
    assert response["stopReason"] == "end_turn"


# ── what is told ────────────────────────────────────────────────────────────────────────────────────


async def test_a_streaming_model_is_heard_word_by_word_and_once(thread: Thread) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("Hello there.")]))

    async def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
    client, _ = await thread.play(graph, "say hello")
    words = [each["content"]["text"] for each in client.updates("agent_message_chunk")]
    assert words == ["Hello", " ", "there."]


async def test_tokens_that_come_in_parts_are_added_up(thread: Thread) -> None:
    used: Any = {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "input_token_details": {"cache_read": 40},
    }

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("One.", usage_metadata=used), AIMessage("Two.", usage_metadata=used)]}

    graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
    client, response = await thread.play(graph, "count")
    assert client.text() == "One.\n\nTwo."
    assert [each["used"] for each in client.updates("usage_update")] == [120, 120]
    assert (response["usage"]["inputTokens"], response["usage"]["outputTokens"]) == (120, 40)
    assert response["usage"]["cachedReadTokens"] == 80
    assert "quota" not in response["_meta"]


async def test_each_model_that_a_graph_asks_is_named_with_its_tokens(thread: Thread) -> None:
    used: Any = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}

    def answer(state: MessagesState) -> dict[str, Any]:
        openai = AIMessage("One.", usage_metadata=used, response_metadata={"model_name": "gpt-5.6-luna"})
        ollama = AIMessage("Two.", usage_metadata=used, response_metadata={"model": "qwen3"})
        again = openai.model_copy(update={"id": "another"})
        return {"messages": [openai, ollama, AIMessage("Three.", usage_metadata=used), again]}

    graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
    client, response = await thread.play(graph, "count")
    told = [each.get("_meta") for each in client.updates("usage_update")]
    assert told[:3] == [{"_claude/model": "gpt-5.6-luna"}, {"_claude/model": "qwen3"}, None]
    counts = {each["model"]: each["token_count"]["inputTokens"] for each in response["_meta"]["quota"]["model_usage"]}
    assert counts == {"gpt-5.6-luna": 200, "qwen3": 100, "": 100}


async def test_a_model_that_is_named_in_another_part_than_its_tokens_is_found(thread: Thread) -> None:
    """As OpenAI's stream has it: the name with the last words, the tokens after them."""

    class Streaming(GenericFakeChatModel):
        async def _astream(self, *_: Any, **more: Any) -> AsyncIterator[ChatGenerationChunk]:
            used: Any = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
            named = AIMessageChunk("Hello.", response_metadata={"model_name": "gpt-5.6-luna"}, id="run-1")
            for chunk in (named, AIMessageChunk("", usage_metadata=used, id="run-1")):
                yield ChatGenerationChunk(message=chunk)

    model = Streaming(messages=iter([]))

    async def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
    client, response = await thread.play(graph, "say hello")
    told = [(each["used"], each.get("_meta")) for each in client.updates("usage_update")]
    assert told == [(7, {"_claude/model": "gpt-5.6-luna"})]
    assert [each["model"] for each in response["_meta"]["quota"]["model_usage"]] == ["gpt-5.6-luna"]


async def test_the_calls_of_a_graph_within_the_graph_are_told_once(thread: Thread) -> None:
    def tools(state: MessagesState) -> dict[str, Any]:
        calls = cast(AIMessage, state["messages"][-1]).tool_calls
        return {"messages": [ToolMessage("done", tool_call_id=call["id"]) for call in calls]}

    inner = _loop(_model, tools)
    outer = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile()
    first, _ = await thread.play(outer, "use both")
    assert sorted(called(first)) == sorted(
        [(call["id"], told) for call in CALLS for told in (f'sh({{"n": {call["args"]["n"]}}})', "completed")]
    )
    second, _ = await thread.play(outer, "and now?")
    assert called(second) == []


async def test_a_graph_without_messages_shows_its_nodes_and_takes_the_prompt_under_its_only_key(thread: Thread) -> None:
    class Given(TypedDict):
        topic: str

    class State(Given):
        joke: str

    def think(state: State) -> dict[str, str]:
        return {"joke": f"A {state['topic']} walks into a bar."}

    graph = StateGraph(State, input_schema=Given).add_node(think).add_edge(START, "think").compile()
    client, _ = await thread.play(graph, "parser", key="topic")
    assert [told for _, told in called(client)] == ["node think", "completed"]
    assert "A parser walks into a bar." in client.heard[-1]["content"][0]["content"]["text"]


async def test_a_function_that_is_a_graph_gets_the_prompt_itself(thread: Thread) -> None:
    heard = []

    @entrypoint()
    async def work(text: str) -> str:
        heard.append(text)
        return "done"

    await thread.play(work, "begin", key=None)
    assert heard == ["begin"]


# ── how it ends ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_cancelled_turn_waits_for_a_node_that_nobody_can_stop(thread: Thread) -> None:
    """Or the next turn would begin it again while it is still at work."""
    loop, running, gate, done = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), []

    def work(state: MessagesState) -> None:
        loop.call_soon_threadsafe(running.set)
        gate.wait(WITHIN)
        done.append("work")

    turn = thread.turn(StateGraph(MessagesState).add_node(work).add_edge(START, "work").compile(), Client())
    ended: list[Payload] = []

    async def play() -> None:
        ended.append(await turn.play(prompt("begin")))

    with anyio.fail_after(WITHIN):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(play)
            await running.wait()
            await turn.cancel()
            await anyio.lowlevel.checkpoint()
            assert not ended
            gate.set()
    assert ended[0]["stopReason"] == "cancelled"
    assert done == ["work"]


async def test_calls_that_are_cancelled_are_told_to_have_failed(thread: Thread) -> None:
    hanging = asyncio.Event()

    async def tools(state: MessagesState) -> None:
        hanging.set()
        await asyncio.Event().wait()

    client = await thread.cut_short(_loop(_model, tools), "use both", hanging)
    assert sorted(called(client)[2:]) == [("call-1", "failed"), ("call-2", "failed")]


async def test_calls_that_fail_with_their_node_are_told_and_the_next_turn_goes_on_behind_them(thread: Thread) -> None:
    def tools(state: MessagesState) -> None:
        raise ValueError("out of paper")

    client = Client()
    with pytest.raises(RequestError, match="ValueError: out of paper"):
        await thread.turn(_loop(_model, tools), client).play(prompt("use both"))
    assert sorted(called(client)[2:]) == [("call-1", "failed"), ("call-2", "failed")]
    client, _ = await thread.play(_loop(_model, tools), "go on")
    assert client.text().endswith(f"tool: {INTERRUPTED} | human: go on")


async def test_a_graph_that_never_comes_to_an_end_is_stopped(thread: Thread) -> None:
    def again(state: MessagesState) -> None:
        return None

    graph = StateGraph(MessagesState).add_node(again).add_edge(START, "again").add_edge("again", "again").compile()
    _, response = await thread.play(graph.with_config(recursion_limit=5), "begin")
    assert response["stopReason"] == "max_turn_requests"
