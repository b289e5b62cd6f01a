"""What agents in the wild send: half-told tool calls, odd shapes, other people's sessions."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from literally import LiteralAgent, answer, update

from segue.drivers import Launch, load
from segue.drivers.acp.updates import LONGEST_OUTPUT
from segue.model import errors
from segue.model import events as e
from segue.model.ids import PromptId
from segue.model.status import Failure
from segue.testing.rehearsal.launch import rest_of_turn, turn

pytestmark = pytest.mark.anyio

DRIVER = load("acp")
END = answer(stopReason="end_turn")
# The prompt is the third request of a conversation.
LATER_END = {**END, "id": 2}
TURN_ENDED = e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="end_turn")


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


async def events_of(launch: Launch) -> list[e.AgentEvent]:
    async with DRIVER.start(launch) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        return await rest_of_turn(agent)


async def test_a_call_announced_without_its_input_is_told_once_with_it(literal: LiteralAgent) -> None:
    launch = literal.launch(
        session_prompt=[
            update("tool_call", toolCallId="c", title="Terminal", kind="execute", status="pending", rawInput={}),
            update("agent_message_chunk", content=text("meanwhile")),
            update("tool_call_update", toolCallId="c", title="make test", rawInput={"command": "make test"}),
            update("tool_call_update", toolCallId="c", status="in_progress"),
            update("tool_call_update", toolCallId="c", content=[{"type": "content", "content": text("2 passed")}]),
            update("tool_call_update", toolCallId="c", status="completed"),
            update("tool_call_update", toolCallId="c", status="completed"),
            END,
        ]
    )
    assert await events_of(launch) == [
        e.TextDelta(role="message", text="meanwhile"),
        e.ToolCalled(call_id="c", title="make test", tool="execute", input={"command": "make test"}),
        e.ToolFinished(call_id="c", status="completed", output="2 passed"),
        TURN_ENDED,
    ]


async def test_the_same_name_for_a_later_call_is_another_call(literal: LiteralAgent) -> None:
    done = update("tool_call", toolCallId="1", title="Read", status="completed", rawInput={"path": "a"})
    events = await events_of(literal.launch(session_prompt=[done, done, END]))
    assert [type(event) for event in events] == [
        e.ToolCalled,
        e.ToolFinished,
        e.ToolCalled,
        e.ToolFinished,
        e.TurnEnded,
    ]


async def test_a_character_cut_in_two_does_not_cost_its_chunk(literal: LiteralAgent) -> None:
    chunks = [update("agent_message_chunk", content=text(words)) for words in ("one \ud83d", "\ude00 two 😀")]
    first, second, _ = await events_of(literal.launch(session_prompt=[*chunks, END]))
    assert (first, second) == (
        e.TextDelta(role="message", text="one \ufffd"),
        e.TextDelta(role="message", text="\ufffd two 😀"),
    )


async def test_a_call_that_never_got_its_input_is_told_at_the_end(literal: LiteralAgent) -> None:
    launch = literal.launch(session_prompt=[update("tool_call", toolCallId="c", title="Write"), END])
    assert await events_of(launch) == [e.ToolCalled(call_id="c", title="Write", tool="other"), TURN_ENDED]


async def test_a_call_that_starts_completed_is_begun_and_finished(literal: LiteralAgent) -> None:
    launch = literal.launch(
        session_prompt=[
            update(
                "tool_call",
                toolCallId="c",
                title="Read",
                kind="read",
                status="completed",
                locations=[{"path": "/a"}],
                rawInput="a",
                rawOutput={"lines": 3},
            ),
            update("tool_call_update", toolCallId="d", title="Unannounced", status="failed", rawOutput="boom"),
            END,
        ]
    )
    assert await events_of(launch) == [
        e.ToolCalled(call_id="c", title="Read", tool="read", input={"value": "a"}, paths=("/a",)),
        e.ToolFinished(call_id="c", status="completed", output='{"lines": 3}'),
        e.ToolCalled(call_id="d", title="Unannounced", tool="other"),
        e.ToolFinished(call_id="d", status="failed", output="boom"),
        TURN_ENDED,
    ]


async def test_an_edit_comes_out_as_a_diff_with_its_path(literal: LiteralAgent) -> None:
    edit = {"type": "diff", "path": "/w/a.py", "oldText": "x = 1\n", "newText": "x = 2\n"}
    launch = literal.launch(
        session_prompt=[update("tool_call", toolCallId="c", title="Edit", status="completed", content=[edit]), END]
    )
    called, finished, _ = await events_of(launch)
    assert isinstance(called, e.ToolCalled) and called.paths == ("/w/a.py",)
    assert isinstance(finished, e.ToolFinished)
    assert finished.output == "--- /w/a.py\n+++ /w/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2"


async def test_a_long_output_keeps_its_beginning_and_its_end(literal: LiteralAgent) -> None:
    output = "a" * 30_000 + "b" * 30_000
    launch = literal.launch(
        session_prompt=[update("tool_call", toolCallId="c", title="t", status="completed", rawOutput=output), END]
    )
    _, finished, _ = await events_of(launch)
    assert isinstance(finished, e.ToolFinished)
    half = LONGEST_OUTPUT // 2
    assert finished.output == f"{'a' * half}\n[… 40000 characters left out …]\n{'b' * half}"


async def test_a_question_about_a_call_that_was_kept_back_tells_the_call_first(literal: LiteralAgent) -> None:
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_always"}]
    call = {"toolCallId": "c", "title": "rm -r build", "kind": "execute", "rawInput": {"command": "rm -r build"}}
    question = permission("s", call, options)
    launch = literal.launch(session_prompt=[update("tool_call", toolCallId="c", title="Terminal"), question])
    async with DRIVER.start(launch) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        with anyio.fail_after(30):
            called, asked = [await anext(agent.events()) for _ in range(2)]
        assert called == e.ToolCalled(
            call_id="c", title="rm -r build", tool="execute", input={"command": "rm -r build"}
        )
        assert asked == e.PermissionRequested(
            request_id=asked.request_id if isinstance(asked, e.PermissionRequested) else "",
            call_id="c",
            title="rm -r build",
            tool="execute",
            options=(e.PermissionOption(id="yes", name="Yes", kind="allow_always"),),
        )


async def test_what_belongs_to_another_session_is_not_ours(literal: LiteralAgent) -> None:
    launch = literal.launch(
        session_prompt=[
            update("agent_message_chunk", session="other", content=text("theirs")),
            permission("other", {"toolCallId": "c"}, []),
        ],
        response=[update("agent_message_chunk", content=text("ours")), LATER_END],
    )
    assert await events_of(launch) == [e.TextDelta(role="message", text="ours"), TURN_ENDED]
    assert {"outcome": {"outcome": "cancelled"}} in [message.get("result") for message in literal.heard()]


def permission(session: str, call: dict[str, Any], options: list[Any]) -> dict[str, Any]:
    parameters = {"sessionId": session, "toolCall": call, "options": options}
    return {"jsonrpc": "2.0", "id": 99, "method": "session/request_permission", "params": parameters}


async def test_odd_shapes_cost_nothing_but_themselves(literal: LiteralAgent) -> None:
    launch = literal.launch(
        session_prompt=[
            "42",
            '["not", "a", "message"]',
            '{"id": {"odd": 1}, "result": 1}',
            {"jsonrpc": "2.0", "method": "session/update", "params": None},
            update("a_thing_of_the_future", content=1),
            update("agent_message_chunk", content={"type": "text"}),
            update("agent_message_chunk", content={"type": "image", "data": "", "mimeType": "image/png"}),
            update("user_message_chunk", content=text("an echo")),
            {"jsonrpc": "2.0", "method": "_vendor/news", "params": {}},
            update("agent_message_chunk", content=text("still here")),
            END,
        ]
    )
    assert await events_of(launch) == [e.TextDelta(role="message", text="still here"), TURN_ENDED]


async def test_plans_and_costs_in_their_other_forms_are_understood(literal: LiteralAgent) -> None:
    entry = {"content": "a", "priority": "low", "status": "completed"}
    launch = literal.launch(
        session_prompt=[
            update("plan_update", plan={"type": "items", "planId": "p", "entries": [entry]}),
            update("usage_update", used=1, size=2, cost={"amount": 3.0, "currency": "EUR"}),
            END,
        ]
    )
    assert await events_of(launch) == [
        e.TodoUpdated(entries=(e.TodoEntry(content="a", status="completed", priority="low"),)),
        e.UsageReported(context_tokens=1, window=2),
        TURN_ENDED,
    ]


@pytest.mark.parametrize(
    ("method", "code"), [("fs/write_text_file", -32602), ("terminal/create", -32602), ("elicitation/create", -32601)]
)
async def test_requests_outside_a_conversation_are_refused(literal: LiteralAgent, method: str, code: int) -> None:
    request = {"jsonrpc": "2.0", "id": 98, "method": method, "params": {"sessionId": "other"}}
    assert await events_of(literal.launch(session_prompt=[request], response=[LATER_END])) == [TURN_ENDED]
    [refusal] = [message["error"] for message in literal.heard() if message.get("id") == 98]
    assert refusal["code"] == code


async def test_a_turn_that_ends_for_no_known_reason_is_a_refusal(literal: LiteralAgent) -> None:
    events = await events_of(literal.launch(session_prompt=[answer(stopReason="bored")]))
    assert events == [
        e.TextDelta(role="message", text="The agent ended its turn for no known reason: 'bored'."),
        e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="refusal"),
    ]


async def test_an_error_that_is_only_text_is_still_the_agents_sentence(literal: LiteralAgent) -> None:
    events = await events_of(literal.launch(session_prompt=[{"jsonrpc": "2.0", "id": "$id", "error": "no luck"}]))
    assert events == [e.TurnFailed(prompt_id=PromptId("prompt-1"), failure=Failure.OTHER, message="no luck")]


async def test_the_details_of_an_error_are_part_of_the_sentence(literal: LiteralAgent) -> None:
    error = {"code": -32603, "message": "Internal error", "data": {"details": "Quota exceeded"}}
    events = await events_of(literal.launch(session_prompt=[{"jsonrpc": "2.0", "id": "$id", "error": error}]))
    assert events == [
        e.TurnFailed(prompt_id=PromptId("prompt-1"), failure=Failure.QUOTA, message="Internal error: Quota exceeded")
    ]


async def test_a_cancelled_agent_that_answers_with_an_error_was_cancelled(literal: LiteralAgent) -> None:
    launch = literal.launch(
        session_prompt=[update("agent_message_chunk", content=text("working"))],
        session_cancel=[{"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "aborted"}}],
    )
    async with DRIVER.start(launch) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        await anext(agent.events())
        await agent.cancel()
        assert await rest_of_turn(agent) == [e.TurnEnded(prompt_id=PromptId("prompt-1"), reason="cancelled")]


async def test_what_is_said_before_the_conversation_has_a_name_is_kept(literal: LiteralAgent) -> None:
    launch = literal.launch(
        session_new=[update("usage_update", used=5, size=10), answer(sessionId="s")], session_prompt=[END]
    )
    assert await events_of(launch) == [e.UsageReported(context_tokens=5, window=10), TURN_ENDED]


async def test_what_follows_a_loaded_history_is_news(literal: LiteralAgent) -> None:
    launch = literal.launch(
        initialize=[answer(protocolVersion=1, agentCapabilities={"loadSession": True})],
        session_load=[
            update("agent_message_chunk", session="t", content=text("old")),
            update("agent_message_chunk", session="a-helper-of-t", content=text("old")),
            answer(),
            update("usage_update", session="t", used=5, size=10),
        ],
        session_prompt=[END],
    )
    async with DRIVER.resume(launch, "t") as agent:
        events = await turn(agent, "go")
    assert [type(event) for event in events] == [e.UsageReported, e.TurnEnded]


async def test_an_agent_that_closes_its_output_is_ended(literal: LiteralAgent) -> None:
    launch = literal.launch(session_prompt=[update("agent_message_chunk", content=text("bye")), "close stdout"])
    async with DRIVER.start(launch) as agent:
        events = await turn(agent, "go")
    assert [type(event) for event in events] == [e.TextDelta, e.AgentExited]


async def test_an_agent_that_does_not_listen_any_more_is_ended_when_it_is_spoken_to(literal: LiteralAgent) -> None:
    async with DRIVER.start(literal.launch(session_prompt=["close stdin"])) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        with anyio.fail_after(30):
            while not literal.closed:
                await anyio.lowlevel.checkpoint()
            await agent.cancel()
        assert [type(event) for event in await rest_of_turn(agent)] == [e.AgentExited]


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"initialize": [answer(protocolVersion=2)]}, "speaks version 2"),
        ({"initialize": [answer(hello="world")]}, "not what the protocol says"),
        ({"session_new": [answer(sessionId=None)]}, "not what the protocol says"),
    ],
)
async def test_failed_handshakes_explain(literal: LiteralAgent, answers: dict[str, list[Any]], sentence: str) -> None:
    with pytest.raises(errors.HandshakeFailed, match=sentence):
        async with DRIVER.start(literal.launch(**answers)):
            pass


async def test_the_client_introduces_itself_and_offers_nothing(literal: LiteralAgent) -> None:
    async with DRIVER.start(literal.launch()):
        pass
    introduction = literal.heard()[0]["params"]
    assert (introduction["protocolVersion"], introduction["clientInfo"]["name"]) == (1, "segue")
    assert introduction["clientCapabilities"] == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
    }


async def test_a_call_of_which_only_the_directory_is_known_is_kept_back(literal: LiteralAgent) -> None:
    call = {"toolCallId": "c", "title": "bash", "kind": "execute"}
    launch = literal.launch(
        session_prompt=[
            update("tool_call", **call, status="pending", rawInput={"cwd": "/w"}, locations=[{"path": "/w"}]),
            update("tool_call_update", **call, status="in_progress", rawInput={"cwd": "/w", "command": "ls"}),
            END,
        ]
    )
    assert await events_of(launch) == [
        e.ToolCalled(call_id="c", title="bash", tool="execute", input={"cwd": "/w", "command": "ls"}, paths=("/w",)),
        TURN_ENDED,
    ]


@pytest.mark.parametrize(("option", "told"), [("yes", [e.ToolCalled, e.ToolFinished]), ("no", [])])
async def test_a_late_call_is_told_when_it_is_allowed(literal: LiteralAgent, option: str, told: list[type]) -> None:
    options = [
        {"optionId": "yes", "name": "", "kind": "allow_once"},
        {"optionId": "no", "name": "", "kind": "reject_once"},
    ]
    call = {"toolCallId": "c", "title": "make", "kind": "execute"}
    over = [update("tool_call", **call, status="completed")] if option == "yes" else []
    launch = literal.launch(session_prompt=[permission("s", call, options)], response=[*over, LATER_END])
    async with DRIVER.start(launch) as agent:
        await agent.prompt(PromptId("prompt-1"), "go")
        with anyio.fail_after(30):
            asked = await anext(agent.events())
        assert isinstance(asked, e.PermissionRequested)
        await agent.answer(asked.request_id, option)
        assert [type(event) for event in await rest_of_turn(agent)] == [*told, e.TurnEnded]


async def test_what_is_said_after_a_turn_comes_before_the_next_one(literal: LiteralAgent) -> None:
    late = [update("agent_message_chunk", content=text(words)) for words in ("one", "two")]
    async with DRIVER.start(literal.launch(session_prompt=[END, *late])) as agent:
        assert len(await turn(agent, "go")) == 1
        events = await turn(agent, "go on")
    assert events[:2] == [e.TextDelta(role="message", text="one"), e.TextDelta(role="message", text="two")]


async def test_a_history_that_comes_after_the_answer_is_still_history(literal: LiteralAgent) -> None:
    call = {"toolCallId": "c", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}}
    launch = literal.launch(
        initialize=[answer(protocolVersion=1, agentCapabilities={"loadSession": True})],
        session_load=[
            update("agent_message_chunk", content=text("ol")),
            answer(),
            update("agent_message_chunk", content=text("d")),
            update("user_message_chunk", content=text("go")),
            update("tool_call", **call, status="completed"),
            update("usage_update", used=5, size=10),
        ],
        session_prompt=[update("tool_call", **call, status="completed"), END],
    )
    async with DRIVER.resume(launch, "s") as agent:
        with anyio.fail_after(30):
            assert await anext(agent.events()) == e.UsageReported(context_tokens=5, window=10)
        events = await turn(agent, "go")
    assert [type(event) for event in events] == [e.ToolCalled, e.ToolFinished, e.TurnEnded]
