"""Recordings of sessions, made up for the tests: as agents write them to their files, and as transcripts."""

import json
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

    lines: list[dict[str, Any]] = field(default_factory=list)
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

    def _add(self, kind: str, content: list[dict[str, Any]], **more: Any) -> "ClaudeFile":
        place = {"uuid": f"u{len(self.lines)}", "cwd": DIRECTORY, "gitBranch": self.branch}
        self.lines.append({"type": kind, "message": {"role": kind, "content": content}, **place, **more})
        return self

    def write(self, folder: Path) -> Path:
        return written(folder / "claude.jsonl", self.lines)


@dataclass
class CodexFile:
    """A rollout file as Codex writes it."""

    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        git = {"branch": "main", "commit_hash": "c0ffee"}
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
