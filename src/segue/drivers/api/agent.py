"""The agent's conversations: each is a file of the agent's own, open in one process at a time."""

import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from segue.drivers.api.history import Damaged, Held, History, Memory, home
from segue.drivers.api.models import Models
from segue.drivers.api.place import Place
from segue.drivers.api.turns import Setting, Turn
from segue.drivers.programs.jsonrpc import (
    INTERNAL_ERROR,
    NOT_FOUND,
    Message,
    Parameters,
    RequestError,
    invalid_params,
    session_not_found,
)
from segue.drivers.programs.payloads import Payload, model_option
from segue.drivers.programs.skeleton import OPEN_LIST, AgentProgram, Channel
from segue.drivers.programs.wire import Wire


def start(wire: Wire, client: Parameters) -> AbstractAsyncContextManager["ApiAgent"]:
    """Make the agent from this process' environment."""
    return nullcontext(ApiAgent(wire, Memory(home(os.environ)), Models(os.environ)))


class ApiAgent(AgentProgram[Setting]):
    """Agent for any model that pydantic-ai knows."""

    def __init__(self, wire: Wire, memory: Memory, models: Models) -> None:
        super().__init__(wire)
        self._memory = memory
        self._models = models

    async def begin(self, cwd: str, servers: Sequence[Message]) -> Setting:
        _refuse(servers)
        return self._setting(self._memory.begin(cwd), cwd)

    async def resume(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> Setting:
        _refuse(servers)
        return self._setting(self._find(token, hold=True), cwd)

    async def copy(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> Setting:
        _refuse(servers)
        original = self._find(token, hold=False)
        if at is not None and (not at.isdecimal() or int(at) > original.length):
            raise RequestError(NOT_FOUND, f"Session {token} has no place {at}")
        return self._setting(self._memory.copy(original, cwd, None if at is None else int(at)), cwd)

    async def conversations(self, cwd: str | None) -> list[Payload]:
        return [
            {"sessionId": each.token, "cwd": each.directory, "title": each.title, "updatedAt": each.updated_at}
            for each in self._memory.all(cwd or "")
        ]

    async def release(self, conversation: Setting) -> None:
        conversation.history.close()

    async def offers(self, conversation: Setting) -> Payload:
        current = conversation.history.model or self._models.default or ""
        return {"configOptions": [model_option({current: current} if current else {}, current, meta=OPEN_LIST)]}

    async def choose_model(self, conversation: Setting, model: str) -> None:
        self._models.find(model)
        conversation.history.choose(model)

    def turn(self, conversation: Setting) -> Turn:
        return Turn(conversation, self._models.find(conversation.history.model or self._models.default))

    def _find(self, token: str, *, hold: bool) -> History:
        try:
            history = self._memory.find(token, hold=hold)
        except (Damaged, Held) as error:
            raise RequestError(INTERNAL_ERROR, str(error)) from error
        if history is None:
            raise session_not_found(token)
        return history

    def _setting(self, history: History, cwd: str) -> Setting:
        channel = Channel(self.wire, history.token)
        return Setting(history=history, place=Place(Path(cwd)), channel=channel, models=self._models)


def _refuse(servers: Sequence[Message]) -> None:
    if servers:
        raise invalid_params("This agent takes no MCP servers.")
