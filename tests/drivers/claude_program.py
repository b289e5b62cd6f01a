"""Stands in for Claude Code: answers each prompt with the frames that a test wrote for it.

`claude_program.py PLAY ARGUMENTS…`: PLAY is a JSON file, what was heard goes into `PLAY.heard`, one line each. Where
the play says `remembers`, it keeps its conversations in files as Claude Code does, and knows those that are there.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

UNKNOWN = "No conversation found with session ID: "


class Memory:
    """One conversation in a file, and told to whoever wants a copy of it."""

    def __init__(self, session: str) -> None:
        project = re.sub(r"[^a-zA-Z0-9]", "-", str(Path.cwd().resolve()))
        home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        self.file = home / "projects" / project / f"{session}.jsonl"
        self._session = session

    def entries(self) -> list[dict[str, Any]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def add(self, role: str, content: Any) -> dict[str, Any]:
        before = [each["uuid"] for each in self.entries()]
        entry = {
            "type": role,
            "uuid": str(uuid4()),
            "parentUuid": before[-1] if before else None,
            "sessionId": self._session,
            "isSidechain": False,
            "cwd": str(Path.cwd()),
            "timestamp": "2026-11-16T12:00:00Z",
            "message": {"role": role, "content": content},
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as stream:
            stream.write(json.dumps(entry) + "\n")
        return {"type": "transcript_mirror", "filePath": str(self.file), "entries": [entry]}

    def prompts(self) -> str:
        said = [each["message"]["content"] for each in self.entries() if each["type"] == "user"]
        return " ".join(block["text"] for content in said for block in content)


class Program:
    """One process of it, in one conversation."""

    def __init__(self, play: Path, arguments: list[str]) -> None:
        self._play = json.loads(play.read_text())
        self._heard = play.with_suffix(".heard")
        self._lines = iter(sys.stdin)
        self._hooks: dict[str, str] = {}
        self._note({"arguments": arguments})
        given = dict(each.partition("=")[::2] for each in arguments)
        self._resumed = given.get("--resume")
        self.session = self._resumed or given.get("--session-id", "")
        self._memory = Memory(self.session) if self._play.get("remembers") else None
        self._mirrors = "--session-mirror" in arguments

    def run(self) -> int:
        if self._resumed is not None and not self._knows(self._resumed):
            self._say(self._result(is_error=True, subtype="error_during_execution", errors=[UNKNOWN + self._resumed]))
            return 1
        for line in self._lines:
            message = json.loads(line)
            self._note(message)
            match message:
                case {"type": "control_request"}:
                    self._control(message)
                case {"type": "user", "message": {"content": [*_, {"text": str(prompt)}] as content}}:
                    self._remember("user", content)
                    for step in self._steps(prompt):
                        if step == "die":
                            return 3
                        self._act(step)
                case _:
                    pass
        return 0

    def _knows(self, session: str) -> bool:
        return bool(self._memory and self._memory.entries()) or bool({session, "*"} & set(self._play["knows"]))

    def _remember(self, role: str, content: Any) -> dict[str, Any]:
        """What is to be told of it beside what was said: its name in the file."""
        if self._memory is None:
            return {}
        frame = self._memory.add(role, content)
        if self._mirrors:
            self._say(frame)
        return {"uuid": frame["entries"][0]["uuid"]}

    def _steps(self, prompt: str) -> Iterator[Any]:
        """A prompt that is answered several times has a list of answers, and the last of them stays."""
        plays = self._play["answers"]
        answers = plays.get(prompt) or next(plays[words] for words in plays if words in prompt)
        yield from answers.pop(0) if len(answers) > 1 else answers[0]

    def _act(self, step: dict[str, Any]) -> None:
        match step:
            case {"ask": dict(asked)}:
                self._ask({"subtype": "can_use_tool", "permission_suggestions": None, "blocked_path": None, **asked})
            case {"hook": str(event), **fields}:
                given = {"hook_event_name": event, **fields}
                self._ask(
                    {"subtype": "hook_callback", "callback_id": self._hooks[event], "input": given, "tool_use_id": None}
                )
            case {"result": dict(fields)}:
                self._say(self._result(**fields))
            case {"recall": True}:
                content = [{"type": "text", "text": self._memory.prompts() if self._memory else ""}]
                message = {"id": str(uuid4()), "role": "assistant", "model": "opus", "content": content}
                self._say({"type": "assistant", "message": message, "parent_tool_use_id": None})
            case {"type": "assistant", "message": {"content": content}}:
                self._say(step | self._remember("assistant", content))
            case _:
                self._say(step)

    def _ask(self, request: dict[str, Any]) -> None:
        """Ask whoever started it, and wait for the answer."""
        self._say({"type": "control_request", "request_id": "asked", "request": request})
        for line in self._lines:
            message = json.loads(line)
            self._note(message)
            if message["type"] == "control_response":
                return
            self._control(message)

    def _control(self, message: dict[str, Any]) -> None:
        for event, matchers in (message["request"].get("hooks") or {}).items():
            self._hooks[event] = matchers[0]["hookCallbackIds"][0]
        answer = {"commands": [], "models": [{"value": "default", "displayName": "Default"}]}
        response = {"subtype": "success", "request_id": message["request_id"], "response": answer}
        self._say({"type": "control_response", "response": response})

    def _result(self, **fields: Any) -> dict[str, Any]:
        return {
            "type": "result",
            "subtype": "success",
            "duration_ms": 1,
            "duration_api_ms": 1,
            "is_error": False,
            "num_turns": 1,
            "session_id": self.session,
            **fields,
        }

    def _say(self, frame: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(frame) + "\n")
        sys.stdout.flush()

    def _note(self, heard: dict[str, Any]) -> None:
        with self._heard.open("a") as stream:
            stream.write(json.dumps(heard) + "\n")


if __name__ == "__main__":
    if sys.argv[2:] == ["-v"]:
        sys.stdout.write("2.1.325 (Claude Code)\n")
        sys.exit(0)
    sys.exit(Program(Path(sys.argv[1]), sys.argv[2:]).run())
