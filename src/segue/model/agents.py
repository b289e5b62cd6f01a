"""Configuration of agents, and the user's choices for their conversations."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from segue.model.status import Permissions

Service = Literal["files", "terminals"]
"""Service of an Agent Client Protocol client for its agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """Tool server for the agent: a program or an address."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    transport: Literal["stdio", "http", "sse"] = "stdio"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables of a program, or headers for an address. `${NAME}` in a value, in the command or in the
    address is replaced from the caller's environment when the agent starts, so that secrets need not be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a workflow at which it pauses; None or 0 is no limit."""

    tasks: int | None = None
    """Tasks after which a run pauses."""
    seconds: float | None = None
    """Time since the work was started or last resumed by a person."""
    tokens: int | None = None
    """Input and output tokens of all its sessions, as far as the agents report them."""
    usd: float | None = None


class CommitPolicy(StrEnum):
    """Time at which Segue commits the work to the workflow's branch."""

    NONE = "none"
    TASK = "task"
    """After each task that is completed, tested and reviewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """Test command that runs after each task."""

    command: str
    seconds: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Review after each completed task."""

    agent: str = "same"
    """Name of an agent, or `same` for the one that does the work."""
    personas: tuple[str, ...] = ("reviewer",)
    passes: int = 2
    """Number of reviews of one task before a person decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Choices of the user for a workflow; they hold for every conversation of it."""

    model: str | None = None
    mode: str | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    limits: Limits = Limits()
    setup: str | None = None
    """Command that prepares the worktree; None is the server's default, an empty text is none."""
    approve_plan: bool = False
    """True if a plan of the agent is adopted without asking."""
    verify: Verify | None = None
    commit: CommitPolicy = CommitPolicy.NONE
    review: Review | None = None
    fixer: str = "same"
    """Agent that is asked for advice if a step fails repeatedly: a name, `same`, or `off`."""
    wait_for_quota: bool = False
    """True if the work resumes by itself once an exhausted quota is full again."""
    from_repository: tuple[str, ...] = ()
    """Choices that come from the repository's own settings, as text."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the names of the caller's variables that the tool servers use."""
        values = (
            value for server in self.mcp_servers for value in (*server.variables.values(), *server.command, server.url)
        )
        return tuple(name for value in values for name in re.findall(r"\$\{(\w+)\}", value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """Container in which an agent runs isolated from the rest of the machine."""

    image: str
    """Image with the agent's program, a shell, `cat` and `mkfifo`; the engine must have it already."""
    mounts: tuple[str, ...] = ()
    """Further mounts, beside the worktree and its repository, as `PATH:PATH` or `PATH:PATH:ro`."""
    network: str = ""
    """Name of the network in the engine, such as `none` or `host`."""
    user: str = ""
    """User in the container, as `UID:GID`; the default is the user of the server."""
    home: str = ""
    """Value of `HOME` in the container; the default is that of the image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfiguration:
    """Configuration of an agent: its driver, its program, and the caller's variables that the program may see."""

    name: str
    command: tuple[str, ...]
    """Program and arguments; the program is found on the caller's PATH."""
    driver: str = "acp"
    """Name of the driver."""
    environment: tuple[str, ...] = ()
    """Patterns of variables such as `ANTHROPIC_*`, beside those that every agent gets."""
    native_resume: bool = True
    """True if its own resume of a conversation may be used; false where it was seen to lose conversations."""
    native_fork: bool = False
    """True if a fork may start with a copy of its own conversation in another directory; only where this was seen to
    work and to leave the original alone."""
    history: bool = True
    """True if the history of a lost conversation may be put into the first prompt of a new one."""
    compacts: bool = False
    """True if it compacts long conversations by itself; then it is neither handed over nor paused because its window is
    full."""
    plans: bool = True
    """True if it can do read-only requests beside the work: a plan, a review, advice or a report. Without this its
    issue is one task."""
    modes: Mapping[Permissions, str] = field(default_factory=dict[Permissions, str])
    """Agent's own mode for each of Segue's permissions; without one its default mode is used."""
    counts_since_start: bool = False
    """True if the tokens it reports for a turn are the sum of all turns since its program started."""
    capacity: Mapping[str, float] = field(default_factory=dict[str, float])
    """Values of the setting `capacity` that differ for this agent."""
    model_capacity: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    """The same for single models, by the name used with `--model`."""
    serves: frozenset[Service] = frozenset()
    """Services that Segue offers the agent: `files`, `terminals`."""
    keep_conversations: bool = False
    """True if Segue stores a copy of its conversations, without secrets, and returns it when the agent's own copy is
    gone; the agent must ask for it, and of the built-in ones only `claude-sdk` does."""
    container: Container | None = None
    """Container in which it runs, if any; an agent is refused if its driver does not support containers."""
    needs: str = ""
    """Program that must be installed, if the command starts with a wrapper."""
    install: str = ""
    """Command that installs its program."""
    login: str = ""
    """Command that logs in with its vendor."""

    @property
    def program(self) -> str:
        """Return the program that must be on the PATH."""
        return self.needs or self.command[0]
