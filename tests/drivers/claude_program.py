"""Stands in for Claude Code: answers each prompt with the frames that a test wrote for it.

`claude_program.py PLAY ARGUMENTS…`: PLAY is a JSON file, what was heard goes into `PLAY.heard`, one line each. Where
the play says `remembers`, it keeps its conversations in files as Claude Code does, and knows those that are there.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
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
        self._interrupted = False
        self._note({"arguments": arguments, "servers": _servers(arguments)})
        given = {name: value for name, _, value in (each.partition("=") for each in arguments)}
        self._resumed = given.get("--resume")
        self.session = self._resumed or given.get("--session-id", "")
        self._memory = Memory(self.session) if self._play.get("remembers") else None
        self._mirrors = "--session-mirror" in arguments
        if self._resumed and self._play.get("mistaken"):
            self.session = str(uuid4())

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
                    self._interrupted = False
                    self._say({"type": "system", "subtype": "init", "session_id": self.session})
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
            case {"ask": asked}:
                self._permitted(asked)
            case {"hook": str(event), **fields}:
                self._hook(event, fields)
            case {"write": {"file_path": path, "content": content} as given}:
                self._use("Write", given, lambda: Path(path).write_text(content))
            case {"hang": True}:
                self._wait_for(lambda _: self._interrupted)
            case {"result": fields, **rest}:
                # What is said right after it comes in one piece with it.
                self._say(self._result(**fields), *rest.get("and then", ()))
            case {"recall": True}:
                content = [{"type": "text", "text": self._memory.prompts() if self._memory else ""}]
                self._say({"type": "assistant", "message": _message(*content), "parent_tool_use_id": None})
            case {"type": "assistant", "message": {"content": content}}:
                self._say(step | self._remember("assistant", content))
            case _:
                self._say(step)

    def _use(self, tool: str, given: dict[str, Any], do: Callable[[], Any]) -> None:
        """A tool that its own rules allow: it is asked for where a hook says so, and left alone after a no."""
        call = {"tool_name": tool, "tool_use_id": f"call-{uuid4()}"}
        block = {"type": "tool_use", "id": call["tool_use_id"], "name": tool, "input": given}
        self._act({"type": "assistant", "message": _message(block), "parent_tool_use_id": None})
        said = self._hook("PreToolUse", {**call, "tool_input": given}).get("hookSpecificOutput", {})
        refused = said.get("permissionDecision") == "ask" and not self._permitted({**call, "input": given})
        if not refused:
            do()
        result = {"type": "tool_result", "tool_use_id": call["tool_use_id"], "content": "", "is_error": refused}
        self._say({"type": "user", "message": {"role": "user", "content": [result]}})

    def _permitted(self, asked: dict[str, Any]) -> bool:
        may = {"subtype": "can_use_tool", "permission_suggestions": None, "blocked_path": None, **asked}
        return self._ask(may).get("behavior") == "allow"

    def _hook(self, event: str, fields: dict[str, Any]) -> dict[str, Any]:
        given = {"hook_event_name": event, **fields}
        hook = {"callback_id": self._hooks[event], "input": given, "tool_use_id": fields.get("tool_use_id")}
        return self._ask({"subtype": "hook_callback", **hook})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask whoever started it, and wait for the answer."""
        self._say({"type": "control_request", "request_id": "asked", "request": request})
        heard = self._wait_for(lambda message: message["type"] == "control_response")
        return heard["response"].get("response") or {}

    def _wait_for(self, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Answer what is asked meanwhile."""
        for line in self._lines:
            message = json.loads(line)
            self._note(message)
            if message["type"] == "control_request":
                self._control(message)
            if enough(message):
                return message
        self._note({"ended": True})
        sys.exit(0)

    def _control(self, message: dict[str, Any]) -> None:
        if (asked := message["request"]["subtype"]) in self._play["refuses"]:
            refusal = {"subtype": "error", "request_id": message["request_id"], "error": f"{asked}: not now"}
            self._say({"type": "control_response", "response": refusal})
            return
        self._interrupted |= asked == "interrupt"
        hooks: dict[str, Any] = message["request"].get("hooks") or {}
        for event, matchers in hooks.items():
            self._hooks[event] = matchers[0]["hookCallbackIds"][0]
        answer = {
            "commands": [],
            "models": [{"value": "default", "displayName": "Default"}],
            "hook_on_failure_supported": self._play["supports"],
        }
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

    def _say(self, *frames: dict[str, Any]) -> None:
        sys.stdout.write("".join(json.dumps(frame) + "\n" for frame in frames))
        sys.stdout.flush()

    def _note(self, heard: dict[str, Any]) -> None:
        with self._heard.open("a") as stream:
            stream.write(json.dumps(heard) + "\n")


def _servers(arguments: list[str]) -> dict[str, Any] | None:
    """They are read at the start, as the real one does."""
    if "--mcp-config" not in arguments:
        return None
    file = Path(arguments[arguments.index("--mcp-config") + 1])
    return {"rights": file.stat().st_mode & 0o777, **json.loads(file.read_text())}


def _message(*content: dict[str, Any]) -> dict[str, Any]:
    return {"id": str(uuid4()), "role": "assistant", "model": "opus", "content": list(content)}


if __name__ == "__main__":
    if sys.argv[2:] == ["-v"]:
        sys.stdout.write("2.1.325 (Claude Code)\n")
        sys.exit(0)
    sys.exit(Program(Path(sys.argv[1]), sys.argv[2:]).run())
