"""Shapes of session files that were misread once, each with the falsehood that it caused."""

import json
from pathlib import Path

from segue.contextfile import compiled_file
from segue.drivers.native import read
from segue.model.transcript import Summarised, UserSaid
from segue.resume.handover import with_context
from tests.recordings import ClaudeFile, CodexFile

WRAPPED = "Another language model started to solve this problem and produced a summary of it.\n\n"


def text_of(file: Path, budget: int = 4000) -> str:
    context, verdict, _ = compiled_file(file, budget)
    assert verdict is not None and verdict.falsehoods == ()
    return context.text


def test_an_exit_code_in_a_text_item_of_a_program_counts(tmp_path: Path) -> None:
    """A failed gofmt was listed under the commands that worked."""
    file = CodexFile().user("Format the sources.")
    file.program("exec", "p", 'const r = await tools.exec_command({cmd: "gofmt -l ./..."}); text(r)')
    file.lines.append(
        {
            "type": "response_item",
            "payload": {
                "type": "custom_tool_call_output",
                "call_id": "p",
                "output": [
                    {"type": "input_text", "text": "Script completed\nWall time 0.4 seconds\nOutput:\n"},
                    {"type": "input_text", "text": "exit=2\nmain.go:7:2: expected '}', found EOF"},
                ],
            },
        }
    )
    text = text_of(file.write(tmp_path))
    assert "`gofmt -l ./...`, failed" in text
    assert "succeeded" not in text


def test_a_suite_that_is_still_running_has_not_passed(tmp_path: Path) -> None:
    """A run that had passed before two patches was told as the outcome of the one that was still at work."""
    running = "Chunk ID: a1\nWall time: 10 seconds\nProcess running with session ID 7\nOutput:\n=== RUN TestA\n"
    file = CodexFile().user("Repair the importer.").runs("go test ./...", "ok  \timporter\t0.4s")
    file.edits("a.go", "x", "y").edits("b.go", "x", "y")
    file.calls("exec_command", "late", cmd="go test ./...").answered("late", running)
    text = text_of(file.write(tmp_path))
    assert "`go test ./...`, has an unknown outcome" in text
    assert "its end was not seen: exec_command: go test ./..." in text
    assert "tests last passed at #4" in text


def test_a_merge_that_failed_and_is_not_concluded_comes_first(tmp_path: Path) -> None:
    conflict = "Auto-merging a.go\nCONFLICT (content): Merge conflict in a.go\nAutomatic merge failed; fix conflicts"
    file = (
        ClaudeFile().user("Merge main.").runs("git merge main", conflict, code=1).says("There is a conflict in a.go.")
    )
    text = text_of(file.write(tmp_path))
    state = text.split("### Where it stands\n")[1]
    assert state.startswith("- `git merge main` stopped and is not concluded: CONFLICT (content)")


def test_a_merge_that_was_concluded_is_no_longer_open(tmp_path: Path) -> None:
    conflict = "CONFLICT (content): Merge conflict in a.go\nAutomatic merge failed"
    file = ClaudeFile().user("Merge main.").runs("git merge main", conflict, code=1)
    file.edits("/home/dev/kettle/a.go", "<<<<", "x")
    file.runs("git add a.go && git commit --no-edit", "[main 1a2b3c4d] Merge branch 'main'")
    assert "is not concluded" not in text_of(file.write(tmp_path))


def test_the_request_is_the_first_text_of_a_person(tmp_path: Path) -> None:
    file = CodexFile().user("<recommended_plugins>\n- lint\n</recommended_plugins>")
    file.user("# AGENTS.md instructions for /home/dev/kettle\n\n<INSTRUCTIONS>\nNever use tabs.\n</INSTRUCTIONS>")
    file.user("<environment_context>\n  <cwd>/home/dev/kettle</cwd>\n</environment_context>")
    file.user("Make the kettle stop when the water boils.").says("I look at the controller.")
    assert "### Original request (#5)\nMake the kettle stop when the water boils." in text_of(file.write(tmp_path))


def test_what_a_client_adds_around_a_request_is_left_out(tmp_path: Path) -> None:
    file = ClaudeFile().user("Operation stopped by hook: another session is active")
    file.user("<some_new_wrapper>\nlist of things\n</some_new_wrapper>\nPaint it.<system-reminder>x</system-reminder>")
    said = [line.said for line in read(file.write(tmp_path)).lines]
    assert [each.text for each in said if isinstance(each, UserSaid)] == ["Paint it."]


def test_of_several_compactions_every_summary_and_what_was_said_between_is_kept(tmp_path: Path) -> None:
    file = CodexFile().user("Build a boat that floats on the lake.").says("I begin with the hull.")
    for number in range(3):
        summary = f"{WRAPPED}Plank {number} was glued because nails rust in water."
        file.lines.append({"type": "compacted", "payload": {"message": summary}})
        file.user(f"Never use nail number {number}.").says(f"Plank {number} is dry now, after {number + 3} hours.")
    path = file.write(tmp_path)
    found = [line.said.text for line in read(path).lines if isinstance(line.said, Summarised)]
    assert found == [f"Plank {number} was glued because nails rust in water." for number in range(3)]
    text = text_of(path)
    assert "Build a boat that floats on the lake." in text.split("### Original request")[1]
    assert all(f"Never use nail number {number}." in text for number in range(3))
    assert "Plank 0 was glued" in text


def test_a_session_that_began_with_a_context_is_its_continuation(tmp_path: Path) -> None:
    """After two generations the rule was gone, and the whole context had become the request."""
    first = ClaudeFile().user("Build a boat that floats on the lake.").says("I begin.").user("Never use nails.")
    first.says("I decided to glue the hull rather than nail it, because nails rust.")
    folder = tmp_path / "1"
    folder.mkdir()
    told = text_of(first.write(folder))
    for generation in range(2, 4):
        opening = with_context(told, f"Go on with part {generation}.")
        later = ClaudeFile().user(opening).says(f"Part {generation} is glued.")
        folder = tmp_path / str(generation)
        folder.mkdir()
        told = text_of(later.write(folder))
        assert told.count("### Original request") == 1
        assert "Build a boat that floats on the lake." in told.split("### Original request")[1].split("###")[0]
        assert '- "Never use nails."' in told.split("### Rules of the user")[1].split("###")[0]
        assert "glue the hull rather than nail it" in told
        assert told.count("## Session Resume Context") == 1


def test_a_command_in_the_background_has_no_outcome_until_it_is_reported(tmp_path: Path) -> None:
    file = ClaudeFile().user("Run it.").runs("make soak", "Command running in background with ID: b1. Output: /tmp/b1")
    assert "`make soak`, succeeded" not in text_of(file.write(tmp_path))
    notice = "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n"
    file.user(f'{notice}<summary>Background command "Soak" completed (exit code 2)</summary>\n</task-notification>')
    assert "`make soak`, failed" in text_of(file.write(tmp_path))


def test_the_answers_to_a_question_of_the_agent_are_the_users(tmp_path: Path) -> None:
    file = ClaudeFile().user("Store the settings.").calls("AskUserQuestion", "q", questions=[])
    file.answered("q", 'User has answered your questions: "Where to keep the settings?"="One TOML file per user".')
    text = text_of(file.write(tmp_path))
    assert "One TOML file per user" in text and "Where to keep the settings?" in text


def test_a_call_that_the_user_refused_is_told(tmp_path: Path) -> None:
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    file = ClaudeFile().user("Clean up.").runs("rm -rf build", refusal, code=0)
    file.lines[-1]["message"]["content"][0]["is_error"] = True
    assert "The user refused the last call, Bash: rm -rf build" in text_of(file.write(tmp_path))


def test_a_sub_agent_reports_as_a_helper(tmp_path: Path) -> None:
    report = {"agent_path": "h1", "status": {"completed": "The leak is in close(), since the pipe is never drained."}}
    file = (
        CodexFile().user("Find the leak.").calls("spawn_agent", "s", message="look").answered("s", '{"agent_id":"h1"}')
    )
    file.user(f"<subagent_notification>\n{json.dumps(report)}\n</subagent_notification>")
    text = text_of(file.write(tmp_path))
    assert "The leak is in close(), since the pipe is never drained." in text
    assert "subagent_notification" not in text
