"""Turns of the rehearsal agent, seen through the driver."""

import os
import signal
from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from segue.drivers import load
from segue.model import errors
from segue.model import events as e
from segue.model.ids import PromptId
from segue.model.status import Failure
from segue.testing.rehearsal.launch import Rehearsal, rest_of_turn, turn
from segue.workspace.processes import identity

pytestmark = pytest.mark.anyio

DRIVER = load("acp")
EVERYTHING = """
turns:
  - do:
      - think: Let me see.
      - say: I write it.
      - plan: [{content: Write it, status: in_progress, priority: high}, {content: Test it}]
      - write: {path: src/parser.py, content: "x = 1\\n"}
      - edit: {path: src/parser.py, find: "1", replace: "2"}
      - run: cat src/parser.py
      - run: echo no >&2; exit 3
      - usage: {used: 1200, size: 200000, cost: 0.02, input: 70, output: 30, cached: 500}
      - say: Done.
"""
HANGING = """
turns:
  - match: hang
    do: [{say: Hanging.}, {hang: true}]
  - match: recall
    do: [{recall: true}]
"""
ASKING = """
turns:
  - do:
      - ask:
          title: Delete old files?
          then: [{write: {path: deleted, content: ""}}]
          otherwise: [{say: I leave them.}]
"""


def said(events: Sequence[e.AgentEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, e.TextDelta) and event.role == "message")


def numbered(events: Sequence[e.AgentEvent]) -> list[e.AgentEvent]:
    """The same events, with call ids by order of appearance and without the test's directory."""
    names: dict[str, str] = {}
    for event in events:
        if isinstance(event, e.ToolCalled):
            names[event.call_id] = f"call {len(names) + 1}"
    return [
        replace(event, call_id=names[event.call_id]) if isinstance(event, e.ToolCalled | e.ToolFinished) else event
        for event in events
    ]


async def test_everything_an_agent_does_comes_out_in_order(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(EVERYTHING)) as agent:
        await agent.prompt(PromptId("prompt-1"), "Write the parser")
        events = await rest_of_turn(agent)
    path = str(rehearsal.directory / "src/parser.py")
    assert numbered(events) == [
        e.TextDelta(role="thought", text="Let me see."),
        e.TextDelta(role="message", text="I write it."),
        e.TodoUpdated(
            entries=(
                e.TodoEntry(content="Write it", status="in_progress", priority="high"),
                e.TodoEntry(content="Test it", status="pending"),
            )
        ),
        e.ToolCalled(
            call_id="call 1",
            title="Write src/parser.py",
            tool="edit",
            input={"path": "src/parser.py", "content": "x = 1\n"},
            paths=(path,),
        ),
        e.ToolFinished(call_id="call 1", status="completed", output="Wrote src/parser.py."),
        e.ToolCalled(
            call_id="call 2",
            title="Edit src/parser.py",
            tool="edit",
            input={"path": "src/parser.py", "find": "1", "replace": "2"},
            paths=(path,),
        ),
        e.ToolFinished(call_id="call 2", status="completed", output="Edited src/parser.py."),
        e.ToolCalled(
            call_id="call 3", title="cat src/parser.py", tool="execute", input={"command": "cat src/parser.py"}
        ),
        e.ToolFinished(call_id="call 3", status="completed", output="x = 2\n"),
        e.ToolCalled(
            call_id="call 4", title="echo no >&2; exit 3", tool="execute", input={"command": "echo no >&2; exit 3"}
        ),
        e.ToolFinished(call_id="call 4", status="failed", output="no\n\nExit code 3"),
        e.UsageReported(context_tokens=1200, window=200000, cost_usd=0.02),
        e.TextDelta(role="message", text="Done."),
        e.UsageReported(input_tokens=70, output_tokens=30, cached_tokens=500),
        e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="end_turn"),
    ]


async def test_an_open_conversation_says_who_is_there(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
        assert agent.name == "rehearsal"
        assert agent.capabilities.names() == ("load", "resume", "fork", "list", "close", "images", "mcp_http")
        assert agent.version and agent.token
        assert identity(agent.pid) and identity(agent.guardian_pid)


async def test_five_thousand_chunks_arrive_in_order_and_before_the_end(rehearsal: Rehearsal) -> None:
    script = 'turns: [{do: [{stream: {text: "{n} ", chunks: 5000}}]}]'
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        events = await turn(agent, "count")
    assert len(events) == 5001
    assert said(events) == "".join(f"{number} " for number in range(1, 5001))
    assert isinstance(events[-1], e.TurnEnded)


async def test_a_prompt_reaches_the_agent_with_its_id(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
        await agent.prompt(PromptId("prompt-7"), "Good day — guten Tag 🌍")
        await rest_of_turn(agent)
    [entry] = rehearsal.diary("prompt")
    assert (entry["prompt_id"], entry["text"]) == ("prompt-7", "Good day — guten Tag 🌍")


async def test_several_turns_come_out_of_one_stream(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
        await turn(agent, "first")
        assert said(await turn(agent, "recall")) == "I remember:\nfirst"


async def test_an_allowed_question_goes_on(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(ASKING)) as agent:
        question = await ask(agent)
        assert (question.title, question.tool) == ("Delete old files?", "other")
        assert [(each.id, each.kind) for each in question.options] == [
            ("allow", "allow_once"),
            ("reject", "reject_once"),
        ]
        await agent.answer(question.request_id, "allow")
        await rest_of_turn(agent)
    assert (rehearsal.directory / "deleted").exists()
    [answer] = rehearsal.diary("answer")
    assert (answer["title"], answer["outcome"], answer["option"]) == ("Delete old files?", "selected", "allow")


@pytest.mark.parametrize(("option", "outcome"), [("reject", "selected"), (None, "cancelled")])
async def test_a_refused_question_goes_the_other_way(rehearsal: Rehearsal, option: str | None, outcome: str) -> None:
    async with DRIVER.start(rehearsal.launch(ASKING)) as agent:
        await agent.answer((await ask(agent)).request_id, option)
        assert said(await rest_of_turn(agent)) == "I leave them."
    [answer] = rehearsal.diary("answer")
    assert (answer["outcome"], answer["option"]) == (outcome, option)


async def test_only_an_open_question_can_be_answered_and_only_with_its_options(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(ASKING)) as agent:
        question = await ask(agent)
        with pytest.raises(errors.BadInput):
            await agent.answer(question.request_id, "maybe")
        await agent.answer(question.request_id, "reject")
        with pytest.raises(errors.NothingToAnswer):
            await agent.answer(question.request_id, "allow")


async def ask(agent) -> e.PermissionRequested:
    await agent.prompt(PromptId("prompt-1"), "clean up")
    with anyio.fail_after(30):
        async for event in agent.events():
            if isinstance(event, e.PermissionRequested):
                return event
    raise AssertionError("nothing was asked")


async def test_a_cancelled_turn_ends_and_the_next_one_works(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
        await agent.prompt(PromptId("prompt-1"), "hang")
        assert await anext(agent.events()) == e.TextDelta(role="message", text="Hanging.")
        await agent.cancel()
        assert await rest_of_turn(agent) == [e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="cancelled")]
        assert said(await turn(agent, "recall")) == "I remember:\nhang"


async def test_cancelling_answers_the_open_question(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(ASKING)) as agent:
        question = await ask(agent)
        await agent.cancel()
        assert (await rest_of_turn(agent))[-1] == e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="cancelled")
        with pytest.raises(errors.NothingToAnswer):
            await agent.answer(question.request_id, "allow")


async def test_cancelling_without_a_turn_leaves_the_next_turn_alone(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
        await agent.cancel()
        assert said(await turn(agent, "recall")) == "I remember nothing."


async def test_a_second_prompt_within_a_turn_is_refused(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
        await agent.prompt(PromptId("prompt-1"), "hang")
        with pytest.raises(errors.WrongState):
            await agent.prompt(PromptId("prompt-2"), "recall")


async def test_a_full_window_ends_the_turn(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch("turns: [{do: [{exceed_window: true}, {say: never}]}]")) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        assert await rest_of_turn(agent) == [e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="max_tokens")]


async def test_an_error_in_place_of_an_answer_is_a_failed_turn_in_the_agents_words(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch("turns: [{do: [{fail: The model is overloaded.}]}]")) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        assert await rest_of_turn(agent) == [
            e.TurnFailed(prompt_id=PromptId("prompt-1"), failure=Failure.OTHER, message="The model is overloaded."),
        ]


async def test_lines_that_are_no_messages_are_left_out(rehearsal: Rehearsal) -> None:
    script = "turns: [{do: [{garbage: 'DEBUG: hello'}, {garbage: '[1, 2'}, {say: Done.}]}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        assert said(await turn(agent, "go")) == "Done."


async def test_a_killed_agent_ends_the_stream_with_its_exit(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
        await agent.prompt(PromptId("prompt-1"), "hang")
        await anext(agent.events())
        os.kill(agent.pid, signal.SIGKILL)
        with anyio.fail_after(30):
            assert [event async for event in agent.events()] == [e.AgentExited(code=-signal.SIGKILL)]
            assert [event async for event in agent.events()] == []
            with pytest.raises(errors.AgentExited):
                await agent.prompt(PromptId("prompt-2"), "recall")
            await agent.cancel()


async def test_an_exit_in_mid_turn_comes_with_its_code_and_last_words(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch("turns: [{do: [{say: Bye.}, {exit: 7}]}]")) as agent:
        events = await turn(agent, "go")
    assert events == [
        e.TextDelta(role="message", text="Bye."),
        e.AgentExited(code=7, detail="rehearsal: exit 7, as the script says"),
    ]


@pytest.mark.parametrize(("when", "done"), [("before", False), ("after", True)])
async def test_a_crash_around_an_effect_leaves_the_call_open(rehearsal: Rehearsal, when: str, done: bool) -> None:
    script = f"turns: [{{do: [{{crash: {{when: {when}, of: {{write: {{path: a, content: x}}}}}}}}]}}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        events = await turn(agent, "go")
    assert [type(event) for event in events] == [e.ToolCalled, e.AgentExited]
    assert (rehearsal.directory / "a").exists() is done
    assert [entry["what"] for entry in rehearsal.diary("effect")] == ["write"] * done


async def test_a_question_dies_with_its_agent(rehearsal: Rehearsal, caplog: pytest.LogCaptureFixture) -> None:
    async with DRIVER.start(rehearsal.launch(ASKING)) as agent:
        question = await ask(agent)
        os.kill(agent.pid, signal.SIGKILL)
        assert isinstance((await rest_of_turn(agent))[-1], e.AgentExited)
        with pytest.raises(errors.NothingToAnswer):
            await agent.answer(question.request_id, "allow")
    assert caplog.records == []


async def test_leaving_ends_the_stream_and_the_whole_tree(rehearsal: Rehearsal) -> None:
    script = "turns: [{do: [{spawn: sleep 1000}, {hang: true}]}]"
    async with DRIVER.start(rehearsal.launch(script)) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        assert [type(await anext(agent.events())) for _ in range(2)] == [e.ToolCalled, e.ToolFinished]
    [shell] = [entry["pid"] for entry in rehearsal.diary("effect")]
    assert [identity(pid) for pid in (agent.pid, agent.guardian_pid, shell)] == [None, None, None]
    assert [event async for event in agent.events()] == [e.AgentExited(code=None, detail="Segue ended the agent.")]


async def test_what_goes_wrong_outside_comes_out_as_it_is(rehearsal: Rehearsal) -> None:
    with pytest.raises(ZeroDivisionError):
        async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
            await agent.prompt(PromptId("prompt-1"), "hang")
            raise ZeroDivisionError


async def test_cancelling_whoever_holds_the_agent_ends_it(rehearsal: Rehearsal) -> None:
    with anyio.CancelScope() as scope:
        async with DRIVER.start(rehearsal.launch(HANGING)) as agent:
            await agent.prompt(PromptId("prompt-1"), "hang")
            scope.cancel()
            await anyio.sleep_forever()
    assert identity(agent.pid) is None
