"""What Codex's own rollout file says, told as a transcript."""

from pathlib import Path

from segue.drivers.native import read
from segue.model.events import AgentMessage, TodoEntry, TodoUpdated, ToolCalled, ToolFinished, UsageReported
from segue.model.transcript import FilesChanged, Said, ToolProgressed, UserSaid, WorkLocation
from tests.recordings import DIRECTORY, CodexFile

EXITED = "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{text}"
RUNNING = "Chunk ID: a1\nWall time: 1.0 seconds\nProcess running with session ID 42\nOutput:\n{text}"


def told(file: Path) -> list[Said]:
    return [line.said for line in read(file).lines]


def test_a_conversation_comes_out_in_order(tmp_path: Path) -> None:
    file = CodexFile().user("<environment_context>x</environment_context>").user("Hello").says("Looking.")
    file.calls("exec_command", "c", cmd="ls").answered("c", EXITED.format(code=2, text="ls: no such file"))
    assert told(file.write(tmp_path)) == [
        WorkLocation(directory=DIRECTORY, branch="main", commit="c0ffee"),
        UserSaid(text="Hello"),
        AgentMessage(text="Looking."),
        ToolCalled(call_id="c", title="exec_command", tool="execute", input={"cmd": "ls"}),
        ToolFinished(call_id="c", status="failed", output="ls: no such file"),
    ]


def test_a_command_is_finished_when_it_ends_and_not_when_the_program_stops_waiting(tmp_path: Path) -> None:
    file = CodexFile().calls("exec_command", "c", cmd="make test").answered("c", RUNNING.format(text="one\n"))
    file.calls("write_stdin", "w", session_id=42, chars="").answered("w", EXITED.format(code=1, text="two\n"))
    assert told(file.write(tmp_path))[2:] == [
        ToolProgressed(call_id="c", output="one\n"),
        ToolFinished(call_id="c", status="failed", output="one\ntwo\n"),
    ]


def test_the_commands_of_a_program_are_found_in_it(tmp_path: Path) -> None:
    file = CodexFile().program(
        "exec", "p", "await tools.run({cmd: \"go test ./...\\n\"}); await tools.run({cmd: 'ls'})"
    )
    call = told(file.write(tmp_path))[1]
    assert isinstance(call, ToolCalled)
    assert call.input["commands"] == ["go test ./...\n", "ls"]


def test_a_plan_is_a_todo_list(tmp_path: Path) -> None:
    file = CodexFile().calls("update_plan", "p", plan=[{"step": "Dig", "status": "in_progress"}, {"step": "Plant"}])
    assert told(file.write(tmp_path))[1] == TodoUpdated(
        entries=(TodoEntry(content="Dig", status="in_progress"), TodoEntry(content="Plant", status="pending"))
    )


def test_files_that_the_program_saw_change_are_told(tmp_path: Path) -> None:
    file = CodexFile().event(type="patch_apply_end", success=True, changes={"a.py": {"type": "add"}, "b.py": {}})
    file.event(type="patch_apply_end", success=False, changes={"c.py": {}})
    assert told(file.write(tmp_path))[1:] == [FilesChanged(changes=(("a.py", "created"), ("b.py", "modified")))]


def test_usage_leaves_out_what_was_cached(tmp_path: Path) -> None:
    last = {"input_tokens": 100, "cached_input_tokens": 80, "output_tokens": 7}
    file = CodexFile()
    file.lines.append({"type": "turn_context", "payload": {"model": "gpt-5.4"}})
    file.event(type="token_count", info={"last_token_usage": last, "model_context_window": 1000})
    counted = {"input_tokens": 20, "output_tokens": 7, "cached_tokens": 80}
    expected = UsageReported(context_tokens=100, window=1000, model="gpt-5.4", **counted)
    assert told(file.write(tmp_path))[1] == expected


def test_a_fork_goes_by_its_own_name(tmp_path: Path) -> None:
    file = CodexFile().user("Hello")
    file.lines.append({"type": "session_meta", "payload": {"id": "where it comes from"}})
    recording = read(file.write(tmp_path))
    list(recording.lines)
    assert recording.tally.conversation == "s"
