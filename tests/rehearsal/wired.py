"""A client without a driver, for what a driver would not do."""

import json
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from segue.testing.rehearsal.launch import Rehearsal


class Wire:
    """One line at a time, in both directions."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin and process.stdout
        self.process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._requests = 0

    def request(self, method: str, **parameters: Any) -> int:
        self._requests += 1
        self._send(id=self._requests, method=method, params=parameters)
        return self._requests

    def notify(self, method: str, **parameters: Any) -> None:
        self._send(method=method, params=parameters)

    def answer(self, request: dict[str, Any], **answer: Any) -> None:
        self._send(id=request["id"], **answer)

    def print_line(self, line: str) -> None:
        self._stdin.write(f"{line}\n")
        self._stdin.flush()

    def receive(self) -> dict[str, Any]:
        return json.loads(self._stdout.readline())

    def until(self, number: int) -> Iterator[dict[str, Any]]:
        """Everything up to the answer to this request."""
        while True:
            yield (message := self.receive())
            if "method" not in message and message["id"] == number:
                return

    def close(self) -> int:
        self._stdin.close()
        return self.process.wait(timeout=30)

    def open(self, directory: Path) -> str:
        self.request("session/new", cwd=str(directory), mcpServers=[])
        return self.receive()["result"]["sessionId"]

    def prompt(self, token: str, text: str = "go") -> int:
        return self.request("session/prompt", sessionId=token, prompt=[{"type": "text", "text": text}])

    def _send(self, **message: Any) -> None:
        self.print_line(json.dumps({"jsonrpc": "2.0", **message}))


@contextmanager
def wired(rehearsal: Rehearsal, script: str) -> Generator[Wire]:
    command = rehearsal.launch(script).command
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Wire(process)
        finally:
            process.kill()
