"""An agent as it is configured, and what is chosen for its conversations."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from segue.model.status import Permissions

Service = Literal["files", "terminals"]
"""What a client of the Agent Client Protocol can do for an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server of tools for the agent: a program, or an address."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    transport: Literal["stdio", "http", "sse"] = "stdio"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables of a program, or headers for an address. `${NAME}` in a value, in the command or in the
    address is filled in from the caller's environment when the agent is started, so that secrets need not be written
    down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a workflow may use before it pauses; None or 0 is without limit."""

    tasks: int | None = None
    """Tasks after which a run pauses."""
    seconds: float | None = None
    """Since it was started, or last let go on."""
    tokens: int | None = None
    """Input and output of all its sessions, as far as the agents report them."""
    usd: float | None = None


class CommitPolicy(StrEnum):
    """When Segue commits the work to the workflow's branch."""

    NONE = "none"
    TASK = "task"
    """After each task that is done, tested and reviewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """How the work is tested after each task."""

    command: str
    seconds: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Who looks at each task when it is done, and how often."""

    agent: str = "same"
    """An agent's name, or `same` for the one that does the work."""
    personas: tuple[str, ...] = ("reviewer",)
    passes: int = 2
    """Reviews of one task before a person decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the user chose for a workflow: every conversation is opened so, and the work is done and stops so."""

    model: str | None = None
    mode: str | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    limits: Limits = Limits()
    setup: str | None = None
    """The command that makes the worktree ready; None is the server's own, and an empty one none."""
    approve_plan: bool = False
    """Whether a plan that the agent proposes is taken without asking."""
    verify: Verify | None = None
    commit: CommitPolicy = CommitPolicy.NONE
    review: Review | None = None
    fixer: str = "same"
    """The agent that is asked for a fix when a step keeps failing: a name, `same`, or `off`."""
    wait_for_quota: bool = False
    """Whether the work goes on by itself when a used-up quota is full again."""
    from_repository: tuple[str, ...] = ()
    """What of this the repository's own settings say, for people to read."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The caller's variables that the servers are filled in with."""
        values = (
            value for server in self.mcp_servers for value in (*server.variables.values(), *server.command, server.url)
        )
        return tuple(name for value in values for name in re.findall(r"\$\{(\w+)\}", value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """Where an agent runs that is kept apart from the rest of the machine."""

    image: str
    """It has the agent's program, a shell, `cat` and `mkfifo`; the engine must have it already."""
    mounts: tuple[str, ...] = ()
    """What else is in it, beside the worktree and its repository, as `PATH:PATH` or `PATH:PATH:ro`."""
    network: str = ""
    """The engine's own word, such as `none` or `host`."""
    user: str = ""
    """Who the agent is in there, as `UID:GID`; else who you are."""
    home: str = ""
    """Its `HOME` in there; else the image's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfiguration:
    """A driver, the program it starts, and which of the caller's variables that program may see."""

    name: str
    command: tuple[str, ...]
    """The program and its arguments, found on the PATH of whoever gives the command."""
    driver: str = "acp"
    """How Segue talks to it."""
    environment: tuple[str, ...] = ()
    """Patterns such as `ANTHROPIC_*`, beside the variables every agent gets."""
    native_resume: bool = True
    """Whether its own way back into a conversation may be used; false where it was seen to lose them."""
    native_fork: bool = False
    """Whether a fork may begin with a copy of its own conversation, in another directory; true where it was seen to
    work there and to leave the original alone."""
    history: bool = True
    """Whether the history of a lost conversation may be put into the first prompt of a new one."""
    compacts: bool = False
    """Whether it replaces a conversation that grows too long by a summary, by itself; then it is neither handed over
    nor paused because its window is full."""
    plans: bool = True
    """Whether it can be asked for something else than the work, and only reads meanwhile: a plan, a review, advice or a
    report. One that cannot gets its issue as one task, and nobody asks it."""
    modes: Mapping[Permissions, str] = field(default_factory=dict[Permissions, str])
    """The agent's own mode for each of Segue's permissions; where none is named, its default stays."""
    counts_since_start: bool = False
    """Whether the tokens that it reports with each turn are those of all turns since its program started."""
    capacity: Mapping[str, float] = field(default_factory=dict[str, float])
    """What the agent does otherwise than the setting `capacity` says."""
    model_capacity: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    """The same for single models, by the name that `--model` gives them."""
    serves: frozenset[Service] = frozenset()
    """What Segue does for it if it asks: `files`, `terminals`."""
    keep_conversations: bool = False
    """Whether Segue keeps a copy of its conversations, without secrets, and gives it back where the agent's own is
    gone; the agent has to ask for it, and of those built in only `claude-sdk` does."""
    container: Container | None = None
    """The container that it runs in, if it does; an agent whose driver knows no containers is refused then."""
    needs: str = ""
    """The program that must be there, where the command begins with another one that starts it."""
    install: str = ""
    """The command that installs its program."""
    login: str = ""
    """The command that logs in with its vendor."""

    @property
    def program(self) -> str:
        """What must be found on the PATH."""
        return self.needs or self.command[0]
