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
    from segue.model.conversations import ConversationKey, ConversationSummary, EntryPage
    from segue.model.events import AgentEvent, JsonObject


class Keeper(Protocol):
    """Keeps an agent's own conversations for it, where the agent asks for that."""

    async def keep(self, key: ConversationKey, entries: Sequence[JsonObject]) -> None:
        """Add to a conversation; on disk when it returns, and without what is there already."""
        ...

    async def read(self, key: ConversationKey, after: int = 0) -> EntryPage: ...

    async def find(self, *, project: str | None = None, conversation: str | None = None) -> list[ConversationSummary]:
        """Find conversations, the latest first."""
        ...

    async def warn(self, message: str) -> None:
        """Show a warning about a kept conversation to the user."""
        ...


def local_time() -> datetime:
    """Return the present time in the machine's time zone."""
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
    """Services that Segue offers to the agent; requests for others are served too."""
    counts_since_start: bool = False
    """True if the tokens that it reports with each turn are those of all turns since its process started."""
    keeper: Keeper | None = None
    """Keeper of its conversations, if there is one."""
    container: Container | None = None
    """Container in which it runs; None is this machine."""
    engine: str = ""
    """The engine of its container."""
    now: Callable[[], datetime] = local_time
    """Clock, to interpret the hour at which an agent's quota is full again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture that goes with a prompt."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """Name, version and capabilities of an agent, before any conversation."""

    name: str
    version: str
    capabilities: Capabilities
    logins: tuple[str, ...] = ()
    """The ways to log in that it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswer:
    """Answer to a permission request; None refuses."""

    option: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Agent that went on in its container after its connection was lost, with the position of the last update read."""

    container: str
    introduction: Introduction
    updates: int
    characters: int
    """Position of the last update read, as in `OutputRecorded`."""
    turn: PromptId | None = None
    """Prompt whose turn had not ended."""
    answers: tuple[PermissionAnswer | None, ...] = ()
    """Answers to the questions that it asked since its start, in their order; None for one without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedConversation:
    """Conversation in an agent's own list."""

    token: str
    title: str = ""
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Operations on conversations that the agent supports."""

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
        """True if a conversation can be opened again by its token."""
        return self.load or self.resume

    def names(self) -> tuple[str, ...]:
        """Return the names of the capabilities that are True."""
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

        Free text is given only with the answer to a question that allows it.
        """
        ...

    async def close(self) -> None:
        """Close the conversation for good, where the agent supports that."""
        ...


class Driver(Protocol):
    """Knows how to talk to one kind of agent. Leaving the context ends the agent's whole process tree.

    A driver that inherits from this need not write what its agents cannot do.
    """

    containers: ClassVar[bool] = False
    """True if it starts the agent in the container that `Launch.container` names. A driver that cannot refuses an agent
    whose settings name one."""

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
        """Connect again to an agent that still runs, in the conversation `token` names; nothing is started."""
        raise AgentError("This agent cannot be joined again.")

    async def introduce(self, launch: Launch) -> Introduction:
        """Start the agent, ask for its capabilities, and end it; no conversation is opened."""
        ...

    async def conversations(self, launch: Launch) -> list[ListedConversation]:
        """List the conversations that the agent has for the directory of `launch`."""
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
"""Modules that come with the extra of the driver's own name.

To look for `a.b` is to import `a`, so no module below a package that imports much is listed here.
"""


IMPORTABLE = "It must be importable where the server runs: `segue down`, set PYTHONPATH, and then `segue up`."


def missing(name: str) -> list[str]:
    """Return the modules that this driver needs and that are not installed."""
    return [module for module in EXTRAS.get(name, ()) if not _is_there(module)]


def _is_there(module: str) -> bool:
    """Return True if a module can be found; it is not imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package that it would be in
        return False


def require(name: str) -> None:
    """Raise AgentMissing if the driver's packages are not installed, or only in part."""
    if absent := missing(name):
        whole = len(absent) == len(EXTRAS[name])
        what = "not installed" if whole else f"installed in part only, without {', '.join(absent)}"
        raise AgentMissing(f"The driver {name} is {what}; install it with: pip install 'segue[{name}]'")


def require_containers(name: str) -> None:
    """Raise BadSettings if the driver can start agents on this machine only."""
    if not getattr(load(name), "containers", False):
        raise BadSettings(
            f"The driver {name} starts its agents on this machine, and in no container.",
            hint="Leave `container` out of the agent's settings, or use a driver that takes one.",
        )


def load(name: str) -> Driver:
    """Return a new driver of this name from DRIVERS, or of any `package.module:Class`; raise an error if it cannot be
    used."""
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
    """Import a module; any error or exit that it causes becomes BadSettings."""
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:
        reason = str(error) or type(error).__name__
        message = f"The driver {name} cannot be used: {module} cannot be imported: {reason}"
        raise BadSettings(f"{message.rstrip('.')}.", hint=IMPORTABLE) from error
