"""A client in the place of the wire, for tests that play a program's turns in their own process."""

from typing import Any

import anyio.lowlevel

from segue.drivers.skeleton.jsonrpc import Message
from segue.drivers.skeleton.wire import Wire


class Client(Wire):
    """Keeps every update, and answers permission requests in the order of `answers`."""

    def __init__(self, *answers: bool) -> None:
        self.heard: list[Message] = []
        self.asked: list[tuple[str, str]] = []
        self._answers = list(answers)

    async def notify(self, method: str, parameters: Message) -> None:
        await anyio.lowlevel.checkpoint()
        assert method == "session/update"
        self.heard.append(parameters["update"])

    async def request(self, method: str, parameters: Message) -> Any:
        assert method == "session/request_permission"
        self.asked.append((parameters["toolCall"]["title"], parameters["toolCall"]["toolCallId"]))
        option = "allow" if self._answers.pop(0) else "reject"
        return {"outcome": {"outcome": "selected", "optionId": option}}

    def updates(self, kind: str) -> list[Message]:
        return [each for each in self.heard if each["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(each["content"]["text"] for each in self.updates(kind))


def prompt(text: str) -> list[Message]:
    return [{"type": "text", "text": text}]
