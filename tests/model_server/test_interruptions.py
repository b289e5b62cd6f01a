"""Whom the scripted model takes for the speaker when results and words come in one message."""

from segue.testing.model.dialects import anthropic

RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "torn"}
REMINDER = {"type": "text", "text": "<system-reminder>Be kind.</system-reminder>"}
WAIT = {"role": "user", "content": "wait"}


def test_who_interrupts_a_tool_says_something_new() -> None:
    words = {"type": "text", "text": "say hello"}
    asked = anthropic.read({"messages": [WAIT, {"role": "user", "content": [RESULT, REMINDER, words]}]}, "")
    assert [each.role for each in asked.messages] == ["user", "tool", "user"]
    assert asked.prompt == "say hello"


def test_a_reminder_beside_a_result_is_no_prompt() -> None:
    asked = anthropic.read({"messages": [WAIT, {"role": "user", "content": [RESULT, REMINDER]}]}, "")
    assert [each.role for each in asked.messages] == ["user", "tool"]
    assert asked.prompt == "wait"
