"""One module for each way of talking to an agent; none of them knows another.

This page is the whole interface. A driver starts an agent process under a guardian, opens a conversation (a new one,
or the one a resume token names), and from then on everything the agent does comes out of one ordered stream of events.
What the driver must not do is decide: permissions are asked on the stream and answered by the caller, failures are
raised as `AgentError`s, and nothing is retried.
"""

# Our agent programs are in this package, and must start fast: the events are not imported where nothing runs on them.
from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

from segue.model.agents import Container, McpServer, Service
from segue.model.errors import AgentError, AgentMissing, BadSettings
from segue.model.ids import PromptId, RequestId

if TYPE_CHECKING:
    from segue.model.events import AgentEvent, JsonObject
    from segue.model.kept import ConversationKey, Kept, Page


class Keeper(Protocol):
    """Keeps an agent's own conversations for it, where the agent asks for that."""

    async def keep(self, key: ConversationKey, entries: Sequence[JsonObject]) -> None:
        """Add to a conversation; on disk when it returns, and without what is there already."""
        ...

    async def read(self, key: ConversationKey, after: int = 0) -> Page: ...

    async def find(self, *, project: str | None = None, conversation: str | None = None) -> list[Kept]:
        """The latest first."""
        ...

    async def warn(self, message: str) -> None:
        """Something about it that the user should see."""
        ...


def local_time() -> datetime:
    return datetime.now().astimezone()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything needed to start one agent process."""

    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    execution: str
    """Marks every process of this agent's tree, so that it can be found again by this and never by name."""
    handshake_timeout: float = 60.0
    mode: str | None = None
    """The agent's own name for how much it may do unasked; set when a conversation is opened, and again on resume."""
    model: str | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    serves: frozenset[Service] = frozenset()
    """What the agent is told that Segue does for it; requests that come unannounced are served too."""
    counts_since_start: bool = False
    """Whether the tokens that it reports with each turn are those of all turns since its process started."""
    keeper: Keeper | None = None
    """Who keeps its conversations; None where nobody does."""
    container: Container | None = None
    """Where it runs, if not straight on this machine."""
    engine: str = ""
    """The engine of its container."""
    now: Callable[[], datetime] = local_time
    """What time it is, to understand what the agent says of the hour at which a quota is full again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture that goes with a prompt."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """What an agent says of itself before any conversation."""

    name: str
    version: str
    capabilities: Capabilities
    logins: tuple[str, ...] = ()
    """The ways to log in that it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an agent's question was answered with; None refuses."""

    option: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """An agent that went on in its container when whoever listened to it was gone, as far as it was heard."""

    container: str
    introduction: Introduction
    updates: int
    characters: int
    """How far it was heard, as `AgentHeard` tells it."""
    turn: PromptId | None = None
    """The prompt that it had and whose end nobody saw."""
    answers: tuple[Given | None, ...] = ()
    """To each of the questions that it put since its start, in their order; None to one that nobody answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One of the conversations that an agent says it has."""

    token: str
    title: str = ""
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the agent says it can do with conversations."""

    load: bool = False
    resume: bool = False
    fork: bool = False
    list: bool = False
    close: bool = False
    images: bool = False
    mcp_http: bool = False
    mcp_sse: bool = False

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
        """Return the stream of everything the agent does, in order, across turns; it ends after `AgentExited`.

        Waiting for the next event can be cancelled without losing it, as with `Events`.
        """
        ...

    async def prompt(self, prompt_id: PromptId, text: str, images: Sequence[Image] = ()) -> None:
        """Hand a prompt to the agent. Its end comes as `TurnEnded` or `TurnFailed` on the stream."""
        ...

    async def cancel(self) -> None:
        """Ask the agent to stop its turn; it still ends with `TurnEnded`."""
        ...

    async def answer(self, request_id: RequestId, option: str | None, words: str = "") -> None:
        """Answer a `PermissionRequested`; None refuses without choosing one of its options.

        Words come only with the answer to a question that said it may be answered in words.
        """
        ...

    async def close(self) -> None:
        """Tell the agent that its conversation is over for good, where it can be told."""
        ...


class Driver(Protocol):
    """Knows how to talk to one kind of agent. Leaving the context ends the agent's whole process tree.

    A driver that inherits from this need not write what its agents cannot do.
    """

    containers: ClassVar[bool] = False
    """Whether it starts the agent in the container that `Launch.container` names; where it does not, an agent whose
    settings name one is refused."""

    def start(self, launch: Launch) -> AbstractAsyncContextManager[Agent]:
        """Start the agent with a new conversation."""
        ...

    def resume(self, launch: Launch, token: str) -> AbstractAsyncContextManager[Agent]:
        """Start the agent and go on with the conversation `token` names, or raise `TokenRejected`."""
        ...

    def fork(self, launch: Launch, token: str, at: str | None = None) -> AbstractAsyncContextManager[Agent]:
        """Start the agent with a new conversation that begins as a copy of the one `token` names.

        `at` is the bookmark of one of its turns, which only agents get that gave one: the copy ends there.
        """
        raise AgentError("This agent cannot copy a conversation.")

    def reattach(self, launch: Launch, token: str, left: Left) -> AbstractAsyncContextManager[Agent]:
        """Go on with an agent that is still there, in the conversation `token` names; nothing is started."""
        raise AgentError("This agent cannot be joined again.")

    async def introduce(self, launch: Launch) -> Introduction:
        """Start the agent, let it say what it is and what it can, and end it; no conversation is opened."""
        ...

    async def conversations(self, launch: Launch) -> list[Conversation]:
        """The conversations the agent says it has for the directory of `launch`."""
        raise AgentError("This agent does not tell which conversations it has.")


DRIVERS = {
    "acp": "segue.drivers.acp:AcpDriver",
    "amp": "segue.drivers.acp:AcpDriver",
    "api": "segue.drivers.acp:AcpDriver",
    "claude": "segue.drivers.acp:AcpDriver",
    "langgraph": "segue.drivers.acp:AcpDriver",
}
"""Four of them are programs of ours that speak the Agent Client Protocol, so they need no way of their own."""

EXTRAS = {
    "api": ("pydantic_ai", "anthropic", "google.genai", "openai"),
    "claude": ("claude_agent_sdk",),
    "langgraph": ("langgraph.graph", "langgraph.checkpoint.sqlite", "langgraph.checkpoint.postgres"),
}
"""What is no part of Segue itself, and comes with the extra of the driver's own name.

To look for `a.b` is to import `a`, so nothing stands here below a package that has something to import.
"""


IMPORTABLE = "It must be importable where the server runs: `segue down`, set PYTHONPATH, and then `segue up`."


def missing(name: str) -> list[str]:
    """What this driver needs and is not there."""
    return [module for module in EXTRAS.get(name, ()) if not _is_there(module)]


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package that it would be in
        return False


def require(name: str) -> None:
    """Refuse a driver that is not installed, or not whole."""
    if absent := missing(name):
        whole = len(absent) == len(EXTRAS[name])
        what = "not installed" if whole else f"installed in part only, without {', '.join(absent)}"
        raise AgentMissing(f"The driver {name} is {what}; install it with: pip install 'segue[{name}]'")


def require_containers(name: str) -> None:
    """Refuse a driver that would start the agent on this machine, whatever container is named."""
    if not getattr(load(name), "containers", False):
        raise BadSettings(
            f"The driver {name} starts its agents on this machine, and in no container.",
            hint="Leave `container` out of the agent's settings, or use a driver that takes one.",
        )


def load(name: str) -> Driver:
    """A name from DRIVERS, or any `package.module:Class`."""
    require(name)
    module, colon, cls = DRIVERS.get(name, name).partition(":")
    if not colon:
        raise BadSettings(
            f"No driver is called {name!r}.", hint=f"Known: {', '.join(DRIVERS)}, and any package.module:Class."
        )
    found = getattr(_imported(name, module), cls, None)
    if found is None:
        raise BadSettings(f"The driver {name} cannot be used: {module} has no {cls!r}.", hint=IMPORTABLE)
    return cast(Driver, found())


def _imported(name: str, module: str) -> ModuleType:
    """Somebody else's module may raise anything, and even want to leave."""
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:
        reason = str(error) or type(error).__name__
        message = f"The driver {name} cannot be used: {module} cannot be imported: {reason}"
        raise BadSettings(f"{message.rstrip('.')}.", hint=IMPORTABLE) from error
