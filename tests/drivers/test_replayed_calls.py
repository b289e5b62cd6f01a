"""A tool call that an agent replays was told when it happened; its end may still be news."""

from pathlib import Path

from acp.schema import ToolCallUpdate

from segue.drivers.acp.updates import UpdateTranslation
from segue.model.events import PermissionRequested, ToolCalled, ToolFinished
from segue.model.ids import RequestId

CALL = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Run it", "kind": "execute", "status": "pending"}
ENDED = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "failed"}


def test_a_replayed_call_that_ends_after_the_replay_is_only_finished() -> None:
    translation = UpdateTranslation(Path())
    translation.recall(CALL)
    assert list(translation.translate(ENDED)) == [ToolFinished(call_id="1", status="failed")]


def test_a_replayed_call_is_not_told_when_the_turn_ends() -> None:
    translation = UpdateTranslation(Path())
    translation.recall(CALL)
    assert list(translation.remainder()) == []


def test_a_question_about_a_new_call_with_an_old_number_is_about_the_new_one() -> None:
    translation = UpdateTranslation(Path())
    translation.recall(CALL)
    translation.recall(ENDED)
    asked = ToolCallUpdate(tool_call_id="1", title="Run another")
    [question] = translation.question(RequestId("r"), asked, ())
    assert isinstance(question, PermissionRequested) and question.title == "Run another"
    [called] = translation.allowed("1")
    assert isinstance(called, ToolCalled) and called.title == "Run another"


def test_a_new_call_with_an_old_number_is_told() -> None:
    translation = UpdateTranslation(Path())
    translation.recall(CALL)
    translation.recall(ENDED)
    [called] = translation.translate({**CALL, "status": "in_progress"})
    assert isinstance(called, ToolCalled)
