"""How the SDK is asked for a conversation."""

import json
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer
from claude_agent_sdk import ClaudeAgentOptions, McpServerConfig

from segue.workspace.private import private_directory, write_private

MODE = "default"
"""How much Claude Code may do unasked, until the user says otherwise."""

MAX_TURNS = 20
"""How often Claude is asked to go on by itself, where it stopped in the middle."""

# A line of Claude Code's holds a whole tool result, and that may be a picture.
_LONGEST_LINE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the user's environment says."""

    home: Path
    program: str | None = None
    """Claude Code itself; None takes the one that comes with the SDK, or the one on the PATH."""
    model: str | None = None
    max_turns: int = MAX_TURNS
    max_requests: int | None = None
    """How often the model is asked for one answer, tool calls included; None is as often as it takes."""
    system_prompt: str | None = None
    """What is added to Claude Code's own."""

    @staticmethod
    def of(environment: Mapping[str, str]) -> "Setup":
        return Setup(
            home=_home(environment),
            program=environment.get("SEGUE_CLAUDE_PROGRAM") or None,
            model=environment.get("SEGUE_CLAUDE_MODEL") or None,
            max_turns=_whole(environment, "SEGUE_CLAUDE_MAX_TURNS") or MAX_TURNS,
            max_requests=_whole(environment, "SEGUE_CLAUDE_MAX_REQUESTS"),
            system_prompt=environment.get("SEGUE_CLAUDE_SYSTEM_PROMPT") or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which conversation is wanted."""

    token: str
    cwd: str
    resume: bool = False
    at: str | None = None
    """The message up to which it is wanted, where that is not the last."""
    model: str | None = None
    mcp_servers: Sequence[Any] = ()


def options(setup: Setup, wanted: Wanted, **callbacks: Any) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(**chosen(setup, wanted), **callbacks)


def chosen(setup: Setup, wanted: Wanted) -> dict[str, Any]:
    """Only what is chosen is in it: an option that says nothing is not there."""
    model, added = wanted.model or setup.model, setup.system_prompt
    return {
        "cwd": wanted.cwd,
        "system_prompt": {"type": "preset", "preset": "claude_code", **({"append": added} if added else {})},
        "include_partial_messages": True,
        # Else a file of the repository's could say that nobody need be asked.
        "permission_mode": MODE,
        # Prompts hold what agents and files said: no name in them may make Claude Code read a file or run a command.
        "verbatim_prompts": True,
        # Nobody sits before it.
        "disallowed_tools": ["AskUserQuestion"],
        "max_buffer_size": _LONGEST_LINE,
        "client_app": "segue",
        **({"resume": wanted.token} if wanted.resume else {"session_id": wanted.token}),
        **({"resume_session_at": wanted.at} if wanted.resume and wanted.at else {}),
        **({"model": model} if model else {}),
        **({"max_turns": setup.max_requests} if setup.max_requests else {}),
        **({"cli_path": setup.program} if setup.program else {}),
    }


@contextmanager
def servers_file(servers: Sequence[Any]) -> Generator[Path | None]:
    """The servers of tools in a file, until Claude Code has read it: everybody can read the words of a command."""
    with private_directory("segue-claude") as place:
        file = place / "servers.json"
        if servers:
            write_private(file, json.dumps({"mcpServers": dict(map(_server, servers))}))
        yield file if servers else None


def _server(server: Any) -> tuple[str, McpServerConfig]:
    match server:
        case HttpMcpServer():
            return server.name, {"type": "http", "url": server.url, "headers": _pairs(server.headers)}
        case SseMcpServer():
            return server.name, {"type": "sse", "url": server.url, "headers": _pairs(server.headers)}
        case McpServerStdio():
            return server.name, {"command": server.command, "args": server.args, "env": _pairs(server.env)}
        case _:
            raise TypeError(f"no MCP server: {server!r}")


def _pairs(given: Sequence[EnvVariable] | Sequence[HttpHeader]) -> dict[str, str]:
    return {each.name: each.value for each in given}


def _home(environment: Mapping[str, str]) -> Path:
    if own := environment.get("SEGUE_CLAUDE_HOME"):
        return Path(own)
    data = environment.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path(environment.get("HOME", "/")) / ".local" / "share"
    return base / "segue-claude"


def _whole(environment: Mapping[str, str], name: str) -> int | None:
    value = environment.get(name, "")
    if value and not (value.isdecimal() and int(value)):
        sys.exit(f"{name} must be a number above zero, not {value!r}.")
    return int(value) if value else None
