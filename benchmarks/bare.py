"""The least that can talk to an agent: its process, and JSON line by line."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

END_WITHIN = 10.0


class BareAgent:
    """An agent without Segue: no guardian, no events, one question at a time."""

    def __init__(self, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        self.heard = 0
        """Messages that were no answers."""
        self._asked = 0
        self._process = subprocess.Popen(
            command,
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the input, so that the process ends."""
        with self._process as process:
            assert process.stdin
            process.stdin.close()
            try:
                process.wait(END_WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()

    def introduce(self) -> None:
        self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    def ask(self, method: str, parameters: Mapping[str, Any]) -> Any:
        """Send a request and wait for its answer."""
        assert self._process.stdin and self._process.stdout
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": parameters}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") != self._asked:
                self.heard += 1
            elif "result" in answer:
                return answer["result"]
            else:
                raise AssertionError(f"{method} was answered with {answer['error']}")
        raise AssertionError(f"the agent was gone before it answered {method}")
