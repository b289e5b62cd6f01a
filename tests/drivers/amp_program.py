"""A stand-in for Amp's own program: the commands that Segue uses, and its lines of JSON, with files for a server.

What it prints, and how it asks a rule's program, is what the real one was seen to do or says that it does.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from uuid import uuid4

HOME = Path(os.environ["AMP_STANDIN_HOME"])
TOOLS = ("Read", "create_file", "Bash")


class Thread:
    """The prompts of one thread, one to a line."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._file = HOME / f"{id}.thread"

    def create(self) -> None:
        self._file.touch()

    @property
    def exists(self) -> bool:
        return self._file.exists()

    def remember(self, prompt: str) -> str:
        earlier = self._file.read_text()
        with self._file.open("a") as file:
            file.write(f"{prompt}\n")
        return earlier


class Session:
    """One run with `--execute --stream-json`."""

    def __init__(self, thread: Thread, given: argparse.Namespace) -> None:
        self._thread = thread
        self._given = given
        self._rules = json.loads(Path(given.settings_file).read_text())["amp.permissions"]
        self._result = ""

    def _cancel(self, *_: object) -> None:
        self._fail("User cancelled (SIGINT/SIGTERM)")

    def serve(self) -> int:
        signal.signal(signal.SIGTERM, self._cancel)
        content = json.loads(sys.stdin.readline())["message"]["content"]
        prompt = "\n".join(block.get("text", f"[{block['type']}]") for block in content)
        earlier = self._thread.remember(prompt)
        if earlier and "AMP_STANDIN_MISTAKEN" in os.environ:
            self._thread = Thread(f"T-{uuid4()}")
        self._print(type="system", subtype="init", cwd=str(Path.cwd()), tools=TOOLS, mcp_servers=self._servers())
        self._print(type="user", message={"role": "user", "content": content}, parent_tool_use_id=None)
        act, words = next((act for match, act in script().items() if match in prompt), ("Recall", [earlier]))
        getattr(self, f"_{act.lower()}")(*words)
        self._print(type="result", subtype="success", is_error=False, num_turns=1, result=self._result)
        return 0

    # ── acts ────────────────────────────────────────────────────────────────────────────────────────

    def _recall(self, earlier: str) -> None:
        self._say(f"I remember: {earlier}")

    def _say(self, text: str, **usage: int) -> None:
        self._result = text
        self._assistant({"type": "text", "text": text}, stop_reason="end_turn", usage=usage or None)

    def _use(self, input: int, output: int) -> None:
        self._say("Used.", input_tokens=input, output_tokens=output)

    def _fail(self, message: str) -> None:
        self._print(type="result", subtype="error_during_execution", is_error=True, num_turns=0, error=message)
        sys.exit(0)

    def _hang(self) -> None:
        self._assistant({"type": "text", "text": "Hanging."}, stop_reason=None)
        while True:
            signal.pause()

    def _environment(self) -> None:
        self._say(json.dumps({"words": sys.argv[1:], "rules": self._rules, "servers": self._servers()}))

    def _think(self, thought: str, text: str) -> None:
        self._assistant({"type": "thinking", "thinking": thought}, {"type": "text", "text": text}, stop_reason=None)
        self._say("And then I spoke again.")

    def _otherthread(self) -> None:
        self._thread = Thread("T-00000000-0000-0000-0000-000000000000")
        self._say("I am somebody else.")

    def _crash(self, words: str) -> None:
        sys.stderr.write(f"Error: {words}\n")
        sys.exit(1)

    def _askforkey(self) -> None:
        sys.stdout.write("No API key found. Starting login flow...\n")
        sys.stdout.flush()
        while True:
            signal.pause()

    def _write(self, path: str, content: str) -> None:
        self._call("create_file", {"path": path, "content": content})

    def _overdo(self, path: str, content: str) -> None:
        """What no rule allows it."""
        self._rules = [{"tool": "*", "action": "allow"}]
        self._write(path, content)
        self._hang()

    def _read(self, path: str) -> None:
        self._call("Read", {"path": path})

    def _subagent(self, path: str) -> None:
        """Its calls are asked for, and not told."""
        self._say("It may." if self._may("create_file", {"path": path}) else "It may not.")

    def _call(self, tool: str, given: dict[str, Any]) -> None:
        call = f"toolu_{uuid4().hex[:8]}"
        self._assistant({"type": "tool_use", "id": call, "name": tool, "input": given}, stop_reason="tool_use")
        allowed = self._may(tool, given)
        if allowed and tool == "create_file":
            Path(given["path"]).write_text(given["content"])
        said = "Done." if allowed else "Tool execution rejected by user: User declined permission"
        result = {"type": "tool_result", "tool_use_id": call, "content": said, "is_error": not allowed}
        self._print(type="user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)
        self._say("Done.")

    def _may(self, tool: str, given: dict[str, Any]) -> bool:
        rule = next(rule for rule in self._rules if fnmatchcase(tool.lower(), rule["tool"].lower()))
        if rule["action"] != "delegate":
            return rule["action"] == "allow"
        named = {**os.environ, "AGENT": "amp", "AGENT_TOOL_NAME": tool, "AMP_THREAD_ID": self._thread.id}
        asked = subprocess.run(
            [rule["to"]], input=json.dumps(given), env=named, text=True, capture_output=True, check=False
        )
        assert not asked.stderr, "the real one would end the turn"
        return asked.returncode == 0

    # ── lines ───────────────────────────────────────────────────────────────────────────────────────

    def _servers(self) -> list[dict[str, str]]:
        given: dict[str, Any] = json.loads(Path(self._given.mcp_config).read_text()) if self._given.mcp_config else {}
        return [{"name": name, "status": "connected"} for name in given]

    def _assistant(self, *blocks: dict[str, Any], stop_reason: str | None, usage: dict[str, int] | None = None) -> None:
        message = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": stop_reason}
        self._print(type="assistant", message={**message, "usage": usage}, parent_tool_use_id=None)

    def _print(self, **fields: Any) -> None:
        sys.stdout.write(json.dumps({**fields, "session_id": self._thread.id}) + "\n")
        sys.stdout.flush()


def script() -> dict[str, Any]:
    file = HOME / "lines.json"
    return json.loads(file.read_text()) if file.exists() else {}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    for switch in ("version", "execute", "stream-json", "stream-json-thinking", "stream-json-input"):
        parser.add_argument(f"--{switch}", action="store_true")
    parser.add_argument("--no-archive-after-execute", action="store_true", required=False)
    for option in ("settings-file", "mcp-config", "mode", "plugin-ready-timeout"):
        parser.add_argument(f"--{option}")
    return parser.parse_args()


def refuse(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return 1


def main() -> int:
    given = arguments()
    thread = Thread(given.words[2] if len(given.words) > 2 else f"T-{uuid4()}")
    if given.version:
        sys.stdout.write("0.0.1790142911-g7618fb (released 2026-09-23T05:55:11.000Z, 1mo ago)\n")
        return 0
    if problem := os.environ.get("AMP_STANDIN_PROBLEM"):
        return refuse(f"Error: {problem}")
    if given.words == ["threads", "new"]:
        thread.create()
        sys.stdout.write(f"https://ampcode.com/threads/{thread.id}\n")
        return 0
    if not thread.exists:
        return refuse(f"Thread https://ampcode.com/threads/{thread.id} does not exist.")
    if given.words[1] == "export":
        sys.stdout.write(json.dumps({"id": thread.id, "messages": []}) + "\n")
        return 0
    return Session(thread, given).serve()


if __name__ == "__main__":
    sys.exit(main())
