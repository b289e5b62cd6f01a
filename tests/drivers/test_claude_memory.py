"""What the claude agent asks its SDK for, what it keeps of a conversation, and what it makes of an old one."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import AssistantMessage, ResultMessage, SessionMessage, ToolUseBlock

from segue.drivers.claude.options import WantedConversation, chosen
from segue.drivers.claude.reconstruction import INTERRUPTED, StoredMessage, reconstruct, should_resume
from segue.drivers.claude.register import Register
from segue.drivers.claude.setup import MAX_TURNS, Setup
from segue.drivers.claude.stop_reasons import (
    TurnBroken,
    TurnOutcome,
    TurnOver,
    TurnState,
    TurnUnfinished,
    outcome_of,
    should_continue,
)
from segue.drivers.claude.translation import MessageTranslation

CALL = {"type": "tool_use", "id": "call-1", "name": "Bash", "input": {"command": "make"}}
RESULT = {"type": "tool_result", "tool_use_id": "call-1", "content": "made"}
TORN = {"type": "tool_result", "tool_use_id": "call-1", "content": INTERRUPTED, "is_error": True}


def stored(role: Any, *blocks: dict[str, Any]) -> SessionMessage:
    return SessionMessage(type=role, uuid="u", session_id="s", message={"role": role, "content": list(blocks)})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


# ── old conversations ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("token", "history", "expected"), [("s", [text("hello")], True), ("s", [], False), ("s", None, False)]
)
def test_a_conversation_is_resumed_if_something_was_said_in_it(token: str, history: Any, expected: bool) -> None:
    assert should_resume(token, history) is expected
    assert should_resume(None, history) is False
    assert should_resume("", history) is False


def test_a_conversation_that_is_not_there_is_empty() -> None:
    assert reconstruct([]).messages == ()


def test_a_whole_conversation_stays_as_it_is() -> None:
    history = reconstruct([stored("user", text("go")), stored("assistant", CALL), stored("user", RESULT)])
    assert [each.content for each in history.messages] == [(text("go"),), (CALL,), (RESULT,)]
    assert history.gaps == () and history.interrupted == ()


def test_a_call_without_a_result_gets_one_right_after_it_and_that_is_told() -> None:
    history = reconstruct([stored("assistant", text("I make it."), CALL), stored("user", text("go on"))])
    assert [each.content for each in history.messages] == [(text("I make it."), CALL), (TORN,), (text("go on"),)]
    assert (history.interrupted, history.gaps) == (("Bash(make)",), ("Bash(make) has no result",))


def test_of_several_calls_only_the_open_one_is_closed_before_the_next_answer() -> None:
    other = CALL | {"id": "call-2"}
    answer = RESULT | {"tool_use_id": "call-2"}
    messages = [
        stored("assistant", CALL),
        stored("assistant", other),
        stored("user", answer),
        stored("assistant", text("So.")),
    ]
    history = reconstruct(messages)
    assert [each.content for each in history.messages] == [(CALL,), (other,), (answer,), (TORN,), (text("So."),)]


def test_a_result_without_its_call_and_an_empty_thought_are_left_out_and_the_words_beside_them_stay() -> None:
    empty = {"type": "thinking", "thinking": "", "signature": ""}
    history = reconstruct([stored("user", RESULT, text("hello")), stored("assistant", empty, text("Hello."))])
    assert history.messages == (
        StoredMessage(role="user", content=(text("hello"),)),
        StoredMessage(role="assistant", content=(text("Hello."),)),
    )
    assert history.gaps == ("a result has no call", "a thought is empty")


def test_what_came_after_a_message_is_no_part_of_the_conversation_up_to_it() -> None:
    first, second = stored("assistant", text("Hello.")), stored("assistant", CALL)
    first.uuid = "at"
    assert reconstruct([first, second], "at").messages == (StoredMessage(role="assistant", content=(text("Hello."),)),)
    assert reconstruct([first, second], "at").interrupted == ()


# ── what the SDK is asked for ───────────────────────────────────────────────────────────────────────


def test_an_option_that_says_nothing_is_not_there(tmp_path: Path) -> None:
    asked = chosen(Setup(home=tmp_path), WantedConversation(token="t", cwd="/work"))
    assert asked["session_id"] == "t" and asked["cwd"] == "/work"
    absent = {"resume", "resume_session_at", "model", "max_turns", "cli_path", "mcp_servers"}
    assert not absent & asked.keys()


def test_a_conversation_can_be_resumed_at_a_message(tmp_path: Path) -> None:
    asked = chosen(
        Setup(home=tmp_path, model="opus"), WantedConversation(token="t", cwd="/", resume=True, at="m", model="haiku")
    )
    assert (asked["resume"], asked["resume_session_at"], asked["model"]) == ("t", "m", "haiku")
    assert "session_id" not in asked


def test_what_the_environment_says_is_taken() -> None:
    variables = {
        "HOME": "/home/me",
        "SEGUE_CLAUDE_MODEL": "opus",
        "SEGUE_CLAUDE_MAX_TURNS": "5",
        "SEGUE_CLAUDE_MAX_REQUESTS": "7",
        "SEGUE_CLAUDE_SYSTEM_PROMPT": "Be brief.",
    }
    setup = Setup.of(variables)
    assert setup.home == Path("/home/me/.local/share/segue-claude") and setup.max_turns == 5
    asked = chosen(setup, WantedConversation(token="t", cwd="/"))
    assert (asked["model"], asked["max_turns"], asked["system_prompt"]["append"]) == ("opus", 7, "Be brief.")
    assert Setup.of({}).max_turns == MAX_TURNS == 20


def test_a_number_that_is_none_is_refused_with_its_name() -> None:
    with pytest.raises(SystemExit, match="SEGUE_CLAUDE_MAX_TURNS must be a number above zero, not 'many'"):
        Setup.of({"SEGUE_CLAUDE_MAX_TURNS": "many"})


# ── what is kept ────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_is_found_in_memory_and_after_a_restart_on_disk(tmp_path: Path) -> None:
    moments = iter([datetime(2026, 11, 16, tzinfo=UTC) + timedelta(minutes=number) for number in range(2)])
    register = Register(tmp_path, lambda: next(moments))
    register.begin("t", "/work", "opus")
    kept = register.update("t", message_count=2)
    assert register.find("t") is kept
    assert (kept.created_at, kept.last_message_at) == ("2026-11-16T00:00:00+00:00", "2026-11-16T00:01:00+00:00")
    assert Register(tmp_path).find("t") == kept


def test_a_name_that_nobody_knows_or_that_is_a_path_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(json.dumps({}))
    assert Register(tmp_path).find("t") is None
    assert Register(tmp_path).find("../secret") is None


def test_a_file_that_cannot_be_read_is_as_good_as_missing(tmp_path: Path) -> None:
    Register(tmp_path).begin("t", "/work")
    (tmp_path / "sessions" / "t.json").write_text("{")
    assert Register(tmp_path).find("t") is None


# ── why a turn ends ─────────────────────────────────────────────────────────────────────────────────


def result(**fields: Any) -> ResultMessage:
    given = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 1}
    return ResultMessage(**{**given, "session_id": "s", **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stop_reason": "end_turn"}, TurnOver("end_turn")),
        ({"stop_reason": "stop_sequence"}, TurnOver("end_turn")),
        ({"stop_reason": "refusal"}, TurnOver("refusal")),
        ({"stop_reason": "model_context_window_exceeded"}, TurnOver("max_tokens")),
        ({"stop_reason": "max_tokens"}, TurnUnfinished("max_tokens")),
        ({"stop_reason": "tool_use"}, TurnUnfinished("max_turn_requests")),
        ({"stop_reason": "pause_turn"}, TurnUnfinished("max_turn_requests")),
        ({"stop_reason": None}, TurnOver("end_turn")),
        ({"stop_reason": "a new one"}, TurnOver("end_turn")),
        ({"terminal_reason": "aborted_streaming", "is_error": True}, TurnOver("cancelled")),
        ({"subtype": "error_max_turns", "is_error": True}, TurnOver("max_turn_requests")),
        (
            {"subtype": "error_max_budget_usd", "is_error": True},
            TurnBroken("The budget that was set for this turn is used up."),
        ),
        ({"is_error": True, "result": "API Error: 500", "api_error_status": 500}, TurnBroken("API Error: 500", 500)),
        ({"subtype": "error_during_execution", "is_error": True, "errors": ["a", "b"]}, TurnBroken("a; b")),
    ],
)
def test_every_reason_has_its_meaning(fields: dict[str, Any], expected: TurnOutcome) -> None:
    assert outcome_of(result(**fields), cancelled=False) == expected
    assert outcome_of(result(**fields), cancelled=True) == TurnOver("cancelled")


def test_the_tools_that_claude_uses_are_counted() -> None:
    translation = MessageTranslation()
    uses = [ToolUseBlock(id=name, name="Bash", input={"command": "true"}) for name in ("call-1", "call-2")]
    told = [*translation.translate(AssistantMessage(content=uses, model="opus"))]
    assert len(told) == translation.calls == 2


def test_claude_is_asked_as_often_as_is_set_and_no_more() -> None:
    assert [should_continue(TurnState(current_turn=turn, max_turns=2)) for turn in (1, 2, 3)] == [True, False, False]
