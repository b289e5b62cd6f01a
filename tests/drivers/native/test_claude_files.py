"""What Claude Code's own session file says, told as a transcript."""

import json
from pathlib import Path

import pytest

from segue.drivers.native import read
from segue.model.errors import NotASession
from segue.model.events import AgentMessage, TodoEntry, TodoUpdated, ToolCalled, ToolFinished, UsageReported
from segue.model.transcript import Said, Summarised, UserSaid, WorkLocation
from tests.recordings import DIRECTORY, ClaudeFile, written


def told(file: Path) -> list[Said]:
    return [line.said for line in read(file).lines]


def test_a_conversation_comes_out_in_order(tmp_path: Path) -> None:
    file = ClaudeFile().user("Hello").says("Reading.").calls("Read", "r", file_path="a.py").answered("r", "print()")
    assert told(file.write(tmp_path)) == [
        WorkLocation(directory=DIRECTORY, branch="main"),
        UserSaid(text="Hello"),
        AgentMessage(text="Reading."),
        ToolCalled(call_id="r", title="Read", tool="read", input={"file_path": "a.py"}, paths=("a.py",)),
        ToolFinished(call_id="r", status="completed", output="print()"),
    ]


def test_what_the_program_says_under_the_users_name_is_left_out(tmp_path: Path) -> None:
    file = ClaudeFile().user("<local-command-stdout>cleared</local-command-stdout>").user("Caveat: no answer needed")
    file.user("<system-reminder>be brief</system-reminder>Fix it").user("said aside", isMeta=True)
    assert told(file.write(tmp_path))[1:] == [UserSaid(text="Fix it")]


def test_the_words_given_to_a_slash_command_are_the_users(tmp_path: Path) -> None:
    text = (
        "<command-message>r</command-message><command-name>/review</command-name><command-args>only src</command-args>"
    )
    assert told(ClaudeFile().user(text).write(tmp_path))[1:] == [UserSaid(text="/review only src")]


def test_a_refusal_with_a_reason_is_something_the_user_said(tmp_path: Path) -> None:
    file = ClaudeFile().calls("Bash", "b", command="rm -r data")
    file.answered("b", "The user doesn't want to proceed. The tool use was rejected; the user said:\nkeep data/", True)
    assert told(file.write(tmp_path))[-1] == UserSaid(text="keep data/")


def test_tasks_that_are_made_and_moved_one_by_one_are_a_list(tmp_path: Path) -> None:
    file = ClaudeFile().calls("TaskCreate", "a", subject="Dig").calls("TaskCreate", "b", subject="Plant")
    file.answered("a", "Task #7 created successfully: Dig").calls("TaskUpdate", "c", taskId="7", status="completed")
    last = [each for each in told(file.write(tmp_path)) if isinstance(each, TodoUpdated)][-1]
    assert last.entries == (
        TodoEntry(content="Dig", status="completed"),
        TodoEntry(content="Plant", status="pending"),
    )


def test_what_the_user_typed_while_the_agent_worked_is_heard_once(tmp_path: Path) -> None:
    file = ClaudeFile().user("Hello")
    queue = [("enqueue", "commit first"), ("remove", None), ("enqueue", "later"), ("dequeue", None)]
    file.lines += [{"type": "queue-operation", "operation": what, "content": text} for what, text in queue]
    file.lines += [{"type": "attachment", "attachment": {"type": "queued_command", "prompt": "commit first"}}]
    file.user("later")
    assert told(file.write(tmp_path))[1:] == [UserSaid(text=text) for text in ("Hello", "commit first", "later")]


def test_a_summary_is_not_taken_for_the_users_words(tmp_path: Path) -> None:
    file = ClaudeFile().user("We did much.", isCompactSummary=True)
    assert told(file.write(tmp_path))[1:] == [Summarised(text="We did much.")]


def test_the_usage_of_a_message_counts_once(tmp_path: Path) -> None:
    file = ClaudeFile().says("One").says("Two")
    for line in file.lines:
        line["message"] |= {
            "id": "m",
            "model": "claude-opus-5-5",
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 90, "output_tokens": 5},
        }
    reports = [each for each in told(file.write(tmp_path)) if isinstance(each, UsageReported)]
    assert reports == [
        UsageReported(context_tokens=93, input_tokens=3, output_tokens=5, cached_tokens=90, model="claude-opus-5-5")
    ]


def test_lines_that_a_resumed_conversation_repeats_count_once(tmp_path: Path) -> None:
    file = ClaudeFile().user("Hello").says("Hi")
    file.lines += file.lines
    assert len(told(file.write(tmp_path))) == 3


def test_unknown_lines_are_counted_and_passed_over(tmp_path: Path) -> None:
    file = ClaudeFile().user("Hello")
    file.lines += [{"type": "horoscope"}, {"type": "file-history-snapshot"}, {"type": ["user"]}, {"type": {}}]
    recording = read(file.write(tmp_path))
    assert len(list(recording.lines)) == 2
    assert (recording.tally.unknown, recording.tally.broken) == (3, 0)


def test_half_a_character_and_a_mark_before_the_first_line_cost_nothing(tmp_path: Path) -> None:
    path = ClaudeFile().user("cut \ud83d in two, and whole \U0001f600").write(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (said,) = [line.said for line in read(path).lines if isinstance(line.said, UserSaid)]
    assert said.text == "cut ? in two, and whole \U0001f600"


@pytest.mark.parametrize("end", [b'{"type":"user","mess', b"\0" * 4096, b"\xff\xfe{}\n", b"[1]\n"])
def test_a_torn_or_empty_last_line_costs_that_line_only(tmp_path: Path, end: bytes) -> None:
    file = ClaudeFile().user("Hello").says("Hi").write(tmp_path)
    before = file.read_bytes() + end
    file.write_bytes(before)
    recording = read(file)
    assert len(list(recording.lines)) == 3
    assert recording.tally.broken == 1
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "why"), [(b"", "empty"), (bytes(range(1, 256)) * 9, "JSON lines"), (b"{}\n", "x.jsonl is not")]
)
def test_what_is_no_session_is_refused_with_the_reason(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(content)
    with pytest.raises(NotASession, match=why):
        read(file)


def test_a_line_with_odd_shapes_harms_nothing(tmp_path: Path) -> None:
    odd = [{"type": "user", "message": {"content": content}} for content in (None, 7, [3, {"type": "text"}], {})]
    odd += [{"type": "assistant", "message": {"content": [{"type": "tool_use", "input": [1]}]}}]
    assert [type(each) for each in told(written(tmp_path / "odd.jsonl", json.loads(json.dumps(odd))))] == [ToolCalled]


def test_the_conversation_goes_by_the_name_it_has_at_the_end(tmp_path: Path) -> None:
    file = ClaudeFile().user("Hello", sessionId="before").user("Again", sessionId="now")
    file.lines.append({"type": "mode", "sessionId": "of no concern"})
    recording = read(file.write(tmp_path))
    list(recording.lines)
    assert recording.tally.conversation == "now"


def test_the_tally_tells_whether_the_last_line_was_torn(tmp_path: Path) -> None:
    file = ClaudeFile().user("Hello").write(tmp_path)
    for more, torn in ((b'{"type": "us', True), (b'er"}\n', False)):
        file.write_bytes(file.read_bytes() + more)
        recording = read(file)
        list(recording.lines)
        assert recording.tally.torn is torn
