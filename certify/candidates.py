"""Homes and environments of the agents, with the scripted model in place of each vendor. No key here is real."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from certify import installed_programs
from segue.testing.model import Call, Shell

KEY = "not-a-key"
SERVER = "its vendor's server cannot be had here"


@dataclass(frozen=True, slots=True)
class Housing:
    """Directories and model address of one agent."""

    home: Path
    model: str
    """The address of the scripted model."""
    worktree: Path
    """Directory of the work."""

    def put(self, name: str, content: str | Mapping[str, object]) -> None:
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedAgent:
    """An agent to be certified."""

    name: str
    patterns: tuple[str, ...]
    """Patterns of the caller's variables that it receives, in addition to those of every agent."""
    furnish: Callable[[Housing], dict[str, str]]
    """Function that writes the agent's configuration and returns its variables."""
    asking: Callable[[str], Call | Shell] = Shell
    """A shell command that the agent asks permission for."""
    full: int | None = None
    """Tokens in use after which it compacts its conversation; None if it ignores the usage that the model reports."""
    native: bool = True
    """Segue may resume its conversation by token."""
    files: str = ""
    """Its conversations, as a pattern below its home."""
    lacking: str = ""
    """Missing part of the environment; results without it certify nothing."""
    plays: bool = True
    """A stand-in replaces the missing part, so that the agent can play."""


def environment(candidate: CertifiedAgent, housing: Housing) -> dict[str, str]:
    """Return the environment of a user of this agent."""
    temporary = housing.home.parent / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    housing.home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": installed_programs.path(),
        "HOME": str(housing.home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **candidate.furnish(housing),
    }


def _claude(housing: Housing) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": housing.model,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _claude_sdk(housing: Housing) -> dict[str, str]:
    return {**_claude(housing), "SEGUE_CLAUDE_PROGRAM": str(installed_programs.claude_code())}


CODEX = """
model = "gpt-5.1-codex"
model_provider = "scripted"
approval_policy = "on-request"

[model_providers.scripted]
name = "scripted"
base_url = "{model}/v1"
env_key = "CODEX_SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


def _codex(housing: Housing) -> dict[str, str]:
    housing.put(".codex/config.toml", CODEX.format(model=housing.model))
    return {
        "CODEX_HOME": str(housing.home / ".codex"),
        "CODEX_SCRIPTED_KEY": KEY,
    }


def _codex_asking(command: str) -> Call:
    # Commands inside its sandbox need no permission.
    given = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May this run?"}
    return Call("exec_command", given)


def _opencode(housing: Housing) -> dict[str, str]:
    model = {"name": "scripted", "limit": {"context": 64_000, "output": 4_096}, "tool_call": True}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{housing.model}/v1", "apiKey": KEY},
        "models": {"scripted": model},
    }
    housing.put(
        ".config/opencode/opencode.json",
        {
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "share": "disabled",
            "autoupdate": False,
            "permission": {"edit": "ask", "bash": "ask"},
            "provider": {"scripted": provider},
        },
    )
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


def _copilot(housing: Housing) -> dict[str, str]:
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_MODEL": "scripted",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_BASE_URL": f"{housing.model}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "64000",
        "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "4096",
    }


def _gemini(housing: Housing) -> dict[str, str]:
    housing.put(
        ".gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
            # Without a name it calls a classifier first to select the model.
            "model": {"name": "gemini-2.5-flash"},
        },
    )
    return {
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": housing.model,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _auggie(housing: Housing) -> dict[str, str]:
    # Its index is on its vendor's server, which the play must not call.
    housing.put(".augment/settings.json", {"indexingDenyDirs": [str(housing.worktree)]})
    login = {"accessToken": KEY, "tenantURL": f"{housing.model}/", "scopes": ["email"]}
    return {"AUGMENT_SESSION_AUTH": json.dumps(login)}


def _amp(housing: Housing) -> dict[str, str]:
    # No server listens there.
    return {"AMP_URL": "http://127.0.0.1:1/", "AMP_API_KEY": KEY}


def _api(housing: Housing) -> dict[str, str]:
    return {
        "SEGUE_API_MODEL": "openai-chat:scripted",
        "OPENAI_BASE_URL": f"{housing.model}/v1",
        "OPENAI_API_KEY": KEY,
    }


def _langgraph(housing: Housing) -> dict[str, str]:
    graph = Path(__file__).with_name("graph.py")
    return {"SEGUE_LANGGRAPH_GRAPH": f"{graph}:graph", "SCRIPTED_MODEL": f"{housing.model}/v1/chat/completions"}


CANDIDATES = {
    candidate.name: candidate
    for candidate in (
        CertifiedAgent(
            name="claude",
            patterns=("ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER"),
            furnish=_claude,
            full=990_000,
        ),
        CertifiedAgent(
            name="codex",
            patterns=("OPENAI_*", "CODEX_*"),
            furnish=_codex,
            asking=_codex_asking,
            full=260_000,
        ),
        CertifiedAgent(
            name="opencode",
            patterns=("OPENCODE_*",),
            furnish=_opencode,
            full=62_000,
        ),
        CertifiedAgent(name="copilot", patterns=("COPILOT_*", "GH_*", "GITHUB_*"), furnish=_copilot),
        CertifiedAgent(
            name="gemini",
            patterns=("GEMINI_*", "GOOGLE_*"),
            furnish=_gemini,
            native=False,
            files=".gemini/tmp/*/chats/*",
        ),
        CertifiedAgent(name="auggie", patterns=("AUGMENT_*",), furnish=_auggie, lacking=SERVER),
        CertifiedAgent(name="amp", patterns=("AMP_*",), furnish=_amp, lacking=SERVER, plays=False),
        CertifiedAgent(
            name="claude-sdk",
            patterns=("SEGUE_CLAUDE_*", "ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER"),
            furnish=_claude_sdk,
            full=990_000,
        ),
        CertifiedAgent(name="api", patterns=("SEGUE_API_*", "OPENAI_*"), furnish=_api),
        CertifiedAgent(name="langgraph", patterns=("SEGUE_LANGGRAPH_*", "SCRIPTED_MODEL"), furnish=_langgraph),
    )
}
