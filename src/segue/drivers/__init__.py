"""One module for each way of talking to an agent; none of them knows another.

This page is the whole interface. A driver starts an agent process under a guardian, opens a conversation (a new one,
or the one a resume token names), and from then on everything the agent does comes out of one ordered stream of events.
What the driver must not do is decide: permissions are asked on the stream and answered by the caller, failures are
raised as `AgentError`s, and nothing is retried.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from segue.model.events import AgentEvent
from segue.model.ids import PromptId, RequestId


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything needed to start one agent process."""

    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    execution: str
    """Marks every process of this agent's tree, so that it can be found again by this and never by name."""
    handshake_timeout: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the agent says it can do with conversations."""

    load: bool = False
    resume: bool = False
    fork: bool = False
    list: bool = False
    close: bool = False
    images: bool = False

    @property
    def native(self) -> bool:
        """Whether a conversation can be brought back by its token."""
        return self.load or self.resume

    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.__slots__ if getattr(self, name))


class Agent(Protocol):
    """A running agent with one open conversation, seen from our side."""

    @property
    def token(self) -> str:
        """The agent's own id for this conversation."""
        ...

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def pid(self) -> int: ...
    @property
    def guardian_pid(self) -> int: ...

    def events(self) -> AsyncIterator[AgentEvent]:
        """Everything the agent does, in order, across turns; ends after `AgentExited`."""
        ...

    async def prompt(self, prompt_id: PromptId, text: str) -> None:
        """Hand a prompt to the agent. Its end comes as `TurnEnded` on the stream."""
        ...

    async def cancel(self) -> None:
        """Ask the agent to stop its turn; it still ends with `TurnEnded`."""
        ...

    async def answer(self, request_id: RequestId, option: str | None) -> None:
        """Answer a `PermissionRequested`; None refuses without choosing one of its options."""
        ...


class Driver(Protocol):
    """Knows how to talk to one kind of agent. Leaving the context ends the agent's whole process tree."""

    def start(self, launch: Launch) -> AbstractAsyncContextManager[Agent]:
        """Start the agent with a new conversation."""
        ...

    def resume(self, launch: Launch, token: str) -> AbstractAsyncContextManager[Agent]:
        """Start the agent and go on with the conversation `token` names, or raise `TokenRejected`."""
        ...


DRIVERS = {"acp": "segue.drivers.acp:AcpDriver"}


def load(name: str) -> Driver:
    """A name from DRIVERS, or any `package.module:Class`."""
    module, _, cls = DRIVERS.get(name, name).partition(":")
    return cast(Driver, getattr(import_module(module), cls)())
