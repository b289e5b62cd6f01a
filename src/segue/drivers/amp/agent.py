"""The agent's conversations: each is a thread on Amp's server."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from segue.drivers.amp.command import Amp
from segue.drivers.amp.turns import AmpThread, AmpTurn
from segue.drivers.skeleton.agent_program import OPEN_LIST, AgentProgram, Channel, pairs
from segue.drivers.skeleton.jsonrpc import Message, Parameters, invalid_params
from segue.drivers.skeleton.payloads import Payload, model_option
from segue.drivers.skeleton.wire import Wire

MODES = ("low", "medium", "high", "ultra")
"""Amp's modes, offered as models because they choose the model; plugins bring others."""


def start(amp: Amp, wire: Wire, client: Parameters) -> AbstractAsyncContextManager["AmpAgent"]:
    """Return the agent, in a context that holds nothing."""
    return nullcontext(AmpAgent(wire, amp))


class AmpAgent(AgentProgram[AmpThread]):
    """Agent that starts Amp for each turn of a thread."""

    def __init__(self, wire: Wire, amp: Amp) -> None:
        super().__init__(wire)
        self._amp = amp

    async def begin(self, cwd: str, servers: Sequence[Message]) -> AmpThread:
        """Create a thread on Amp's server, and return its setting."""
        return self._setting(await self._amp.begin(cwd), cwd, servers)

    async def resume(self, token: str, cwd: str, servers: Sequence[Message], at: str | None) -> AmpThread:
        """Return the setting of a thread; raise an error if Amp does not have it."""
        await self._amp.find(token, cwd)
        return self._setting(token, cwd, servers)

    async def offers(self, conversation: AmpThread) -> Payload:
        """Return Amp's modes as the choice of a model."""
        modes = {mode: mode for mode in MODES}
        return {"configOptions": [model_option(modes, conversation.mode or "", name="Mode", meta=OPEN_LIST)]}

    async def choose_model(self, conversation: AmpThread, model: str) -> None:
        """Set the mode of the following turns."""
        conversation.mode = model

    def turn(self, conversation: AmpThread) -> AmpTurn:
        return AmpTurn(conversation)

    def _setting(self, thread: str, cwd: str, servers: Sequence[Message]) -> AmpThread:
        """Return the setting of a thread: its directory, MCP servers and channel."""
        channel = Channel(self.wire, thread)
        return AmpThread(amp=self._amp, channel=channel, directory=cwd, servers=dict(map(_server, servers)))


def _server(server: Message) -> tuple[str, dict[str, Any]]:
    """Return the name and the definition of an MCP server, as Amp writes it."""
    match server.get("type", "stdio"):
        case "stdio":
            variables = pairs(server["env"])
            return server["name"], {"command": server["command"], "args": server["args"], "env": variables}
        case "http":
            return server["name"], {"url": server["url"], "headers": pairs(server["headers"])}
        case _:
            raise invalid_params("Amp takes MCP servers over stdio and http.")
