"""Recordings of sessions, made up for the tests: as agents write them to their files, and as transcripts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segue.model.events import TodoEntry, TodoUpdated, ToolCalled, ToolFinished
from segue.model.facts import SessionFacts
from segue.model.transcript import Line, Said
from segue.snapshot.facts import facts_of

DIRECTORY = "/home/dev/kettle"


@dataclass
class ClaudeFile:
    """A session file as Claude Code writes it."""

    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    branch: str = "main"

    def user(self, text: str, **more: Any) -> "ClaudeFile":
        return self._add("user", [{"type": "text", "text": text}], **more)

    def says(self, text: str) -> "ClaudeFile":
        return self._add("assistant", [{"type": "text", "text": text}])

    def calls(self, name: str, call_id: str, **given: Any) -> "ClaudeFile":
        return self._add("assistant", [{"type": "tool_use", "id": call_id, "name": name, "input": given}])

    def answered(self, call_id: str, text: str, failed: bool = False) -> "ClaudeFile":
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
        return self._add("user", [block])

    def reads(self, path: str, text: str) -> "ClaudeFile":
        numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), start=1))
        return self._uses("Read", numbered, file_path=path)

    def writes(self, path: str, text: str) -> "ClaudeFile":
        return self._uses("Write", "File created successfully", file_path=path, content=text)

    def edits(self, path: str, old: str, new: str) -> "ClaudeFile":
        return self._uses("Edit", "The file has been updated.", file_path=path, old_string=old, new_string=new)

    def runs(self, command: str, output: str, code: int = 0) -> "ClaudeFile":
        printed = f"Exit code {code}\n{output}" if code else output
        return self._uses("Bash", printed, failed=bool(code), command=command)

    def plans(self, todos: Mapping[str, str]) -> "ClaudeFile":
        entries = [{"content": content, "status": status} for content, status in todos.items()]
        return self.calls("TodoWrite", f"call-{len(self.lines)}", todos=entries)

    def _uses(self, tool: str, answer: str, failed: bool = False, **given: Any) -> "ClaudeFile":
        call_id = f"call-{len(self.lines)}"
        return self.calls(tool, call_id, **given).answered(call_id, answer, failed)

    def _add(self, kind: str, content: list[dict[str, Any]], **more: Any) -> "ClaudeFile":
        place = {"uuid": f"u{len(self.lines)}", "cwd": DIRECTORY, "gitBranch": self.branch}
        self.lines.append({"type": kind, "message": {"role": kind, "content": content}, **place, **more})
        return self

    def write(self, folder: Path) -> Path:
        return written(folder / "claude.jsonl", self.lines)


@dataclass
class CodexFile:
    """A rollout file as Codex writes it."""

    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    branch: str = "main"

    def __post_init__(self) -> None:
        git = {"branch": self.branch, "commit_hash": "c0ffee"}
        self.lines.append({"type": "session_meta", "payload": {"id": "s", "cwd": DIRECTORY, "git": git}})

    def user(self, text: str) -> "CodexFile":
        return self._item(type="message", role="user", content=[{"type": "input_text", "text": text}])

    def says(self, text: str) -> "CodexFile":
        return self._item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])

    def calls(self, name: str, call_id: str, **given: Any) -> "CodexFile":
        return self._item(type="function_call", name=name, call_id=call_id, arguments=json.dumps(given))

    def program(self, name: str, call_id: str, text: str) -> "CodexFile":
        return self._item(type="custom_tool_call", name=name, call_id=call_id, input=text)

    def answered(self, call_id: str, output: str) -> "CodexFile":
        return self._item(type="function_call_output", call_id=call_id, output=output)

    def reads(self, path: str, text: str) -> "CodexFile":
        return self.runs(f"cat {path}", text)

    def writes(self, path: str, text: str) -> "CodexFile":
        return self._patches(f"*** Add File: {path}", *(f"+{line}" for line in text.split("\n")))

    def edits(self, path: str, old: str, new: str) -> "CodexFile":
        removed, added = (f"-{line}" for line in old.split("\n")), (f"+{line}" for line in new.split("\n"))
        return self._patches(f"*** Update File: {path}", "@@", *removed, *added)

    def runs(self, command: str, output: str, code: int = 0) -> "CodexFile":
        call_id = f"call-{len(self.lines)}"
        printed = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{output}"
        return self.calls("exec_command", call_id, cmd=command).answered(call_id, printed)

    def plans(self, todos: Mapping[str, str]) -> "CodexFile":
        steps = [{"step": content, "status": status} for content, status in todos.items()]
        return self.calls("update_plan", f"call-{len(self.lines)}", plan=steps)

    def _patches(self, *lines: str) -> "CodexFile":
        call_id = f"call-{len(self.lines)}"
        patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
        return self.program("apply_patch", call_id, patch).answered(call_id, "Success. Updated the following files:")

    def event(self, **payload: Any) -> "CodexFile":
        self.lines.append({"type": "event_msg", "payload": payload})
        return self

    def _item(self, **payload: Any) -> "CodexFile":
        self.lines.append({"type": "response_item", "payload": payload})
        return self

    def write(self, folder: Path) -> Path:
        return written(folder / "rollout.jsonl", self.lines)


def written(file: Path, lines: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def ran(call_id: str, command: str, output: str = "", failed: bool = False) -> tuple[Said, Said]:
    """A command, and how it ended."""
    return (
        ToolCalled(call_id=call_id, title="Bash", tool="execute", input={"command": command}),
        ToolFinished(call_id=call_id, status="failed" if failed else "completed", output=output),
    )


def edited(call_id: str, path: str, text: str, failed: bool = False) -> tuple[Said, Said]:
    given = {"file_path": path, "old_string": "", "new_string": text}
    return (
        ToolCalled(call_id=call_id, title="Edit", tool="edit", input=given, paths=(path,)),
        ToolFinished(call_id=call_id, status="failed" if failed else "completed"),
    )


def todo(**entries: str) -> TodoUpdated:
    """Entries by status, their words joined by underscores."""
    return TodoUpdated(
        entries=tuple(TodoEntry(content=text.replace("_", " "), status=status) for text, status in entries.items())
    )


def transcript(*said: Said) -> list[Line]:
    return [Line(number, each) for number, each in enumerate(said, start=1)]


def facts(*said: Said) -> SessionFacts:
    return facts_of(transcript(*said))
