"""The claude agent on a stand-in for Claude Code itself."""

import json
import os
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from segue.drivers import Launch
from segue.drivers.environment import allowed
from segue.model.events import AgentEvent, TextDelta

OVER = {"result": {"stop_reason": "end_turn"}}
TOKEN = str(uuid4())


class StandIn:
    """Starts the agent on a Claude Code that says what the test wrote."""

    def __init__(self, root: Path) -> None:
        self.worktree, self.home = root / "work", root / "home"
        self._play = root / "play.json"
        self._program = root / "claude"

    def launch(
        self,
        answers: dict[str, list[list[Any]]],
        *,
        knows: tuple[str, ...] = (),
        remembers: bool = False,
        mistaken: bool = False,
        refuses: tuple[str, ...] = (),
        supports: bool = True,
        **variables: str,
    ) -> Launch:
        self.worktree.mkdir(exist_ok=True)
        self.home.mkdir(exist_ok=True)
        play = {"answers": answers, "knows": knows, "remembers": remembers, "mistaken": mistaken}
        play |= {"refuses": refuses, "supports": supports}
        self._play.write_text(json.dumps(play))
        program = Path(__file__).with_name("claude_program.py")
        self._program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "{self._play}" "$@"\n')
        self._program.chmod(0o755)
        own = {"HOME": str(self.home), "SEGUE_CLAUDE_PROGRAM": str(self._program), **variables}
        return Launch(
            command=(sys.executable, "-P", "-m", "segue.drivers.claude"),
            directory=self.worktree,
            environment={**allowed(os.environ), **own},
            execution=f"stand-in-{uuid4()}",
        )

    def remember(self, *messages: dict[str, Any]) -> list[str]:
        """A conversation as Claude Code keeps it, and the names of its messages."""
        self.worktree.mkdir(exist_ok=True)
        project = str(self.worktree.resolve()).replace("/", "-").replace("_", "-").replace(".", "-")
        file = self.home / ".claude" / "projects" / project / f"{TOKEN}.jsonl"
        file.parent.mkdir(parents=True)
        before, names = None, list[str]()
        for message in messages:
            uuid = str(uuid4())
            entry = {
                "type": message["role"],
                "uuid": uuid,
                "parentUuid": before,
                "sessionId": TOKEN,
                "isSidechain": False,
                "cwd": str(self.worktree),
                "timestamp": "2026-11-16T12:00:00Z",
                "message": message,
            }
            before = uuid
            names.append(before)
            with file.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")
        return names

    def heard(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._play.with_suffix(".heard").read_text().splitlines()]

    def arguments(self) -> list[list[str]]:
        """Those of each of its processes."""
        return [each["arguments"] for each in self.heard() if "arguments" in each]

    def prompts(self) -> list[str]:
        return [each["message"]["content"][-1]["text"] for each in self.heard() if each.get("type") == "user"]

    def answers(self) -> list[dict[str, Any]]:
        return [each["response"]["response"] for each in self.heard() if each.get("type") == "control_response"]

    def metadata(self, token: str) -> dict[str, Any]:
        file = self.home / ".local" / "share" / "segue-claude" / "sessions" / f"{token}.json"
        return json.loads(file.read_text())


def said(text: str, **fields: Any) -> dict[str, Any]:
    return assistant({"type": "text", "text": text}, **fields)


def assistant(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    message = {"id": str(uuid4()), "role": "assistant", "model": "opus", "content": list(blocks)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, **fields}


def streamed(event: str, **fields: Any) -> dict[str, Any]:
    return {"type": "stream_event", "uuid": str(uuid4()), "session_id": TOKEN, "event": {"type": event, **fields}}


def words(events: list[AgentEvent], role: str = "message") -> str:
    return "".join(each.text for each in events if isinstance(each, TextDelta) and each.role == role)
