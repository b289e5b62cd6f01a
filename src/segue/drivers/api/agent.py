"""The agent's conversations: each is a file of the agent's own, open in one process at a time."""

import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from segue.drivers.api.conversation_files import (
    ConversationDamaged,
    ConversationFile,
    ConversationFiles,
    ConversationHeld,
    home,
)
from segue.drivers.api.file_root import FileRoot
from segue.drivers.api.models import Models
from segue.drivers.api.turns import ApiConversation, ApiTurn
from segue.drivers.skeleton.agent_program import OPEN_LIST, AgentProgram, Channel
from segue.drivers.skeleton.jsonrpc import (
    INTERNAL_ERROR,
    NOT_FOUND,
    Message,
    Parameters,
    RequestError,
    invalid_params,
    session_not_found,
)
from segue.drivers.skeleton.payloads import Payload, model_option
from segue.drivers.skeleton.wire import Wire


def start(wire: Wire, client: Parameters) -> AbstractAsyncContextManager["ApiAgent"]:
    """Make the agent from this process' environment."""
    return nullcontext(ApiAgent(wire, ConversationFiles(home(os.environ)), Models(os.environ)))


class ApiAgent(AgentProgram[ApiConversation]):
    """Agent for any model that pydantic-ai knows."""

    def __init__(self, wire: Wire, memory: ConversationFiles, models: Models) -> None:
        super().__init__(wire)
        self._memory = memory
        self._models = models

    async def begin(self, cwd: str, servers: Sequence[Message]) -> ApiConversation:
        """Create a conversation in a new file."""
        _refuse(servers)
        return self._setting(self._memory.begin(cwd), cwd)

    async def resume(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> ApiConversation:
        """Open a stored conversation under its lock; raise an error if it is unknown, damaged or held."""
        _refuse(servers)
        return self._setting(self._find(token, hold=True), cwd)

    async def copy(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> ApiConversation:
        """Copy a stored conversation, up to message number `at` if given; the original stays as it is."""
        _refuse(servers)
        original = self._find(token, hold=False)
        if at is not None and (not at.isdecimal() or int(at) > original.length):
            raise RequestError(NOT_FOUND, f"Session {token} has no place {at}")
        return self._setting(self._memory.copy(original, cwd, None if at is None else int(at)), cwd)

    async def conversations(self, cwd: str | None) -> list[Payload]:
        """List the stored conversations of a directory, or all without one."""
        return [
            {"sessionId": each.token, "cwd": each.directory, "title": each.title, "updatedAt": each.updated_at}
            for each in self._memory.all(cwd or "")
        ]

    async def release(self, conversation: ApiConversation) -> None:
        """Release the lock of the conversation's file."""
        conversation.history.close()

    async def offers(self, conversation: ApiConversation) -> Payload:
        """Return the current model as the only offered one; any other may be named."""
        current = conversation.history.model or self._models.default or ""
        return {"configOptions": [model_option({current: current} if current else {}, current, meta=OPEN_LIST)]}

    async def choose_model(self, conversation: ApiConversation, model: str) -> None:
        """Store the model of the conversation; raise an error if it cannot be used."""
        self._models.find(model)
        conversation.history.choose(model)

    def turn(self, conversation: ApiConversation) -> ApiTurn:
        """Return a turn with the conversation's model, or the default one; raise an error if it cannot be used."""
        return ApiTurn(conversation, self._models.find(conversation.history.model or self._models.default))

    def _find(self, token: str, *, hold: bool) -> ConversationFile:
        """Return a stored conversation, locked if `hold`; raise an error if it is unknown, damaged or held."""
        try:
            history = self._memory.find(token, hold=hold)
        except (ConversationDamaged, ConversationHeld) as error:
            raise RequestError(INTERNAL_ERROR, str(error)) from error
        if history is None:
            raise session_not_found(token)
        return history

    def _setting(self, history: ConversationFile, cwd: str) -> ApiConversation:
        """Return a conversation with its channel, its directory and the models."""
        channel = Channel(self.wire, history.token)
        return ApiConversation(history=history, place=FileRoot(Path(cwd)), channel=channel, models=self._models)


def _refuse(servers: Sequence[Message]) -> None:
    """Raise an error if there are MCP servers, which this agent cannot use."""
    if servers:
        raise invalid_params("This agent takes no MCP servers.")
