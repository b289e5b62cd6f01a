"""Starts the agent that sends exactly the lines a test wrote."""

import json
import os
import sys
from pathlib import Path
from secrets import token_hex
from typing import Any

from segue.drivers import Launch
from segue.drivers.environment import allowed


class LiteralAgent:
    """Answers each method with the messages the test wrote for it; `"$id"` becomes the id of the request.

    What it does each time its own request is answered stands under `response`, or under `responses`, one list after
    the other.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def launch(self, **answers: list[Any]) -> Launch:
        answers = {"initialize": [answer(protocolVersion=1)], "session_new": [answer(sessionId="s")], **answers}
        path = self._root / "answers.json"
        path.write_text(json.dumps({method.replace("_", "/", 1): lines for method, lines in answers.items()}))
        return Launch(
            command=(sys.executable, str(Path(__file__).with_name("literal_agent.py")), str(path)),
            directory=self._root,
            environment=allowed(os.environ),
            execution=f"literal-{token_hex(4)}",
        )

    @property
    def closed(self) -> bool:
        """Whether the agent has closed its input."""
        return (self._root / "answers.json.closed").exists()

    def heard(self) -> list[dict[str, Any]]:
        """Every message the agent received."""
        return [json.loads(line) for line in (self._root / "answers.json.heard").read_text().splitlines()]


def answer(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "$id", "result": result}


def update(news: str, session: str = "s", **fields: Any) -> dict[str, Any]:
    parameters = {"sessionId": session, "update": {"sessionUpdate": news, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": parameters}
