"""Skeleton of an agent program: the agent's side of the protocol, without the agent."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from segue.drivers.skeleton.entry import Pipes
from segue.drivers.skeleton.jsonrpc import (
    INTERNAL_ERROR,
    Message,
    Parameters,
    RequestError,
    invalid_params,
    is_object,
    method_not_found,
)
from segue.drivers.skeleton.payloads import OPTIONS, Payload
from segue.drivers.skeleton.wire import Methods, Wire, open_wire

OPEN_LIST: Payload = {"segue": {"open": True}}
"""Mark of an option that takes other values than those on offer: not all models can be listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDecision:
    """Answer of the user to a permission request, with free text if there is any."""

    allowed: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class Channel:
    """Connection to the client, for one conversation."""

    wire: Wire
    token: str

    async def update(self, update: Payload) -> None:
        """Send an update of the conversation to the client."""
        await self.wire.notify("session/update", {"sessionId": self.token, "update": update})

    async def ask(self, call: Payload) -> PermissionDecision:
        """Request permission for a tool call, and return the client's decision with the user's text, if any."""
        asked = {"sessionId": self.token, "toolCall": call, "options": OPTIONS}
        answer = Parameters(await self.wire.request("session/request_permission", asked))
        outcome: Mapping[str, Any] = answer.values.get("outcome") or {}
        allowed = outcome.get("outcome") == "selected" and outcome.get("optionId") == "allow"
        return PermissionDecision(allowed=allowed, words=str(answer.extension().get("words", "")) if allowed else "")


class Turn(Protocol):
    """One prompt and everything up to the agent's stop."""

    async def play(self, content: Sequence[Message]) -> Payload:
        """Take the blocks of a prompt; return the answer to `session/prompt`."""
        ...

    async def cancel(self) -> None: ...


class OpenConversation(Protocol):
    """Conversation that the client has opened."""

    @property
    def token(self) -> str: ...


C = TypeVar("C", bound=OpenConversation)


class AgentProgram(ABC, Generic[C]):
    """Agent's side of the protocol. A subclass opens its conversations and plays the turns in them.

    The methods below that a subclass does not have are refused; its capabilities must not promise them.
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._open: dict[str, C] = {}
        self._turns: dict[str, Turn] = {}

    # ── written by each program ─────────────────────────────────────────────────────────────────────

    @abstractmethod
    async def begin(self, cwd: str, servers: Sequence[Message]) -> C:
        """Open a new conversation in the directory `cwd`, with these MCP servers."""

    @abstractmethod
    async def resume(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> C:
        """Open the conversation `token` again, up to the bookmark `at` if that is not None."""

    @abstractmethod
    def turn(self, conversation: C) -> Turn:
        """Make the next turn of a conversation."""

    async def copy(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> C:
        """Open a new conversation that begins as a copy of `token`, up to bookmark `at` if given; refused unless
        overridden."""
        raise method_not_found("session/fork")

    async def conversations(self, cwd: str | None) -> list[Payload]:
        """List the conversations of a directory; refused unless overridden."""
        raise method_not_found("session/list")

    async def release(self, conversation: C) -> None:
        """Free what a conversation holds; it was closed, and no turn of it is running."""

    async def offers(self, conversation: C) -> Payload:
        """Return the modes and options that can be chosen for a conversation."""
        return {}

    async def choose_mode(self, conversation: C, mode: str) -> None:
        """Set the mode of a conversation; a program without modes refuses."""
        raise method_not_found("session/set_mode")

    async def choose_model(self, conversation: C, model: str) -> None:
        """Set the model of a conversation; a program without models refuses."""
        raise method_not_found("session/set_config_option")

    # ── the protocol ────────────────────────────────────────────────────────────────────────────────

    def methods(self) -> Methods:
        """Return the table of the protocol's methods."""
        return Methods(
            requests={
                "session/new": self._new,
                "session/resume": self._resume,
                "session/fork": self._fork,
                "session/list": self._list,
                "session/close": self._close,
                "session/set_mode": self._set_mode,
                "session/set_config_option": self._set_option,
                "session/prompt": self._prompt,
            },
            notifications={"session/cancel": self._cancel},
        )

    async def _new(self, given: Parameters) -> Payload:
        """Begin a conversation, and return its token with its options."""
        return await self._entered(await self.begin(given.text("cwd"), given.optional_objects("mcpServers")))

    async def _resume(self, given: Parameters) -> Payload:
        """Resume a conversation, closed first if it is open; raise an error during its turn."""
        token = given.text("sessionId")
        if token in self._turns:
            raise RequestError(INTERNAL_ERROR, "The conversation is in its turn.")
        await self._leave(token)
        servers, at = given.optional_objects("mcpServers"), given.extension().get("at")
        answer = await self._entered(await self.resume(token, given.text("cwd"), servers, at))
        return {name: value for name, value in answer.items() if name != "sessionId"}

    async def _fork(self, given: Parameters) -> Payload:
        """Copy a conversation, and return the copy's token, options and bookmark."""
        servers, at = given.optional_objects("mcpServers"), given.extension().get("at")
        copy = await self.copy(given.text("sessionId"), given.text("cwd"), servers, at)
        return {**await self._entered(copy), "_meta": {"segue": {"at": at}}}

    async def _list(self, given: Parameters) -> Payload:
        """Return the conversations of the requested directory, or all without one."""
        return {"sessions": await self.conversations(given.values.get("cwd"))}

    async def _close(self, given: Parameters) -> Payload:
        """Close a conversation; one that is not open is no error."""
        await self._leave(given.text("sessionId"))
        return {}

    async def _set_mode(self, given: Parameters) -> Payload:
        """Set the mode of an open conversation."""
        await self.choose_mode(self._opened(given), given.text("modeId"))
        return {}

    async def _set_option(self, given: Parameters) -> Payload:
        """Set the model of an open conversation, and return the options; raise an error for another option."""
        conversation, option = self._opened(given), given.text("configId")
        if option != "model":
            raise invalid_params(f"There is no option {option}.")
        await self.choose_model(conversation, given.text("value"))
        return await self.offers(conversation)

    async def _prompt(self, given: Parameters) -> Payload:
        """Play one turn, and return its end; a conversation that was closed meanwhile is released after it."""
        conversation, content = self._opened(given), given.objects("prompt")
        token = conversation.token
        if token in self._turns:
            raise invalid_params("The conversation is in its turn.")
        turn = self._turns[token] = self.turn(conversation)
        try:
            return await turn.play(content)
        finally:
            del self._turns[token]
            if token not in self._open:
                await self.release(conversation)

    async def _cancel(self, given: Parameters) -> None:
        """Cancel the conversation's turn, if there is one."""
        if turn := self._turns.get(given.text("sessionId")):
            await turn.cancel()

    # ── open conversations ──────────────────────────────────────────────────────────────────────────

    async def _entered(self, conversation: C) -> Payload:
        """Add a conversation to the open ones, and return its token with its options."""
        self._open[conversation.token] = conversation
        return {"sessionId": conversation.token, **await self.offers(conversation)}

    def _opened(self, given: Parameters) -> C:
        """Return the open conversation that a request names; raise an error if it is not open."""
        token = given.text("sessionId")
        if token not in self._open:
            raise invalid_params(f"Session not open: {token}")
        return self._open[token]

    async def _leave(self, token: str) -> None:
        """Close a conversation; during a turn it is released at the turn's end."""
        conversation = self._open.pop(token, None)
        # A turn that still runs has more to write down: its end releases the conversation.
        if conversation is not None and token not in self._turns:
            await self.release(conversation)


Starter = Callable[[Wire, Parameters], AbstractAsyncContextManager[AgentProgram[Any]]]
"""Opens a program on a wire; the parameters are those of the client's `initialize`."""


async def serve(
    pipes: Pipes, received: bytes, client: Parameters, introduce: Callable[[], Payload], start: Starter
) -> None:
    """Start the agent program once with `start`, then handle the client's messages until its end of the pipe is closed.

    `received` was read before; `introduce` makes the answer to `initialize`.
    """

    async def initialize(_: Parameters) -> Payload:
        return introduce()

    wire = await open_wire(pipes.input, pipes.output, received)
    async with start(wire, client) as program:
        methods = program.methods()
        requests = {"initialize": initialize, **methods.requests}
        await wire.serve(Methods(requests=requests, notifications=methods.notifications))


def text_of(block: Message) -> str:
    """Return the text of a block of a prompt: of an embedded file its content, of a link its address."""
    content = block.get("resource", block)
    return str((content.get("text") if is_object(content) else None) or block.get("uri", ""))


def pairs(given: Sequence[Message]) -> dict[str, str]:
    """Return the variables or headers of an MCP server by name."""
    return {each["name"]: each["value"] for each in given}
