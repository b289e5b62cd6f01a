"""Options of the SDK for a conversation."""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, McpServerConfig

from segue.drivers.claude.setup import Setup
from segue.drivers.skeleton.agent_program import pairs
from segue.drivers.skeleton.jsonrpc import Message, invalid_params
from segue.workspace.private import private_directory, write_private

MODE = "default"
"""Permission mode until the user chooses another."""

# A line of Claude Code's holds a whole tool result, and that may be a picture.
_LONGEST_LINE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedConversation:
    """Conversation that is to be opened."""

    token: str
    cwd: str
    resume: bool = False
    at: str | None = None
    """The message up to which it is wanted, where that is not the last."""
    model: str | None = None
    mcp_servers: Sequence[Message] = ()


def options(setup: Setup, wanted: WantedConversation, **callbacks: Any) -> ClaudeAgentOptions:
    """Return the SDK's options: the chosen ones and the callbacks."""
    return ClaudeAgentOptions(**chosen(setup, wanted), **callbacks)


def chosen(setup: Setup, wanted: WantedConversation) -> dict[str, Any]:
    """Return the options that are chosen; others are absent."""
    model, added = wanted.model or setup.model, setup.system_prompt
    return {
        "cwd": wanted.cwd,
        "system_prompt": {"type": "preset", "preset": "claude_code", **({"append": added} if added else {})},
        "include_partial_messages": True,
        # Otherwise a file of the repository could switch permission requests off.
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
def servers_file(servers: Sequence[Message]) -> Generator[Path | None]:
    """Write the MCP servers into a private file, since command lines are public; yield its path, or None for no
    servers."""
    with private_directory("segue-claude") as place:
        file = place / "servers.json"
        if servers:
            write_private(file, json.dumps({"mcpServers": dict(map(_server, servers))}))
        yield file if servers else None


def _server(server: Message) -> tuple[str, McpServerConfig]:
    """Return the name and the definition of an MCP server for Claude Code; raise an error for an unknown transport."""
    match server.get("type", "stdio"):
        case "http":
            return server["name"], {"type": "http", "url": server["url"], "headers": pairs(server["headers"])}
        case "sse":
            return server["name"], {"type": "sse", "url": server["url"], "headers": pairs(server["headers"])}
        case "stdio":
            variables = pairs(server["env"])
            return server["name"], {"command": server["command"], "args": server["args"], "env": variables}
        case other:
            raise invalid_params(f"Claude Code takes no MCP servers over {other}.")
