"""Choices of the user's environment. Nothing here imports the SDK, so they are read before the program begins."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_TURNS = 20
"""How often Claude is asked to go on by itself, where it stopped in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Values from the user's environment."""

    home: Path
    program: str | None = None
    """Claude Code itself; None takes the one that comes with the SDK, or the one on the PATH."""
    model: str | None = None
    max_turns: int = MAX_TURNS
    max_requests: int | None = None
    """How often the model is asked for one answer, tool calls included; None is as often as it takes."""
    system_prompt: str | None = None
    """Text that is appended to Claude Code's own."""

    @staticmethod
    def of(environment: Mapping[str, str]) -> "Setup":
        """Read the setup from the environment; end the program with a message if a number is invalid."""
        return Setup(
            home=_home(environment),
            program=environment.get("SEGUE_CLAUDE_PROGRAM") or None,
            model=environment.get("SEGUE_CLAUDE_MODEL") or None,
            max_turns=_whole(environment, "SEGUE_CLAUDE_MAX_TURNS") or MAX_TURNS,
            max_requests=_whole(environment, "SEGUE_CLAUDE_MAX_REQUESTS"),
            system_prompt=environment.get("SEGUE_CLAUDE_SYSTEM_PROMPT") or None,
        )


def _home(environment: Mapping[str, str]) -> Path:
    """Return the directory of the register, from the environment."""
    if own := environment.get("SEGUE_CLAUDE_HOME"):
        return Path(own)
    data = environment.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path(environment.get("HOME", "/")) / ".local" / "share"
    return base / "segue-claude"


def _whole(environment: Mapping[str, str], name: str) -> int | None:
    """Return a variable as a positive integer, None if unset; end the program with a message for any other value."""
    value = environment.get(name, "")
    if value and not (value.isdecimal() and int(value)):
        sys.exit(f"{name} must be a number above zero, not {value!r}.")
    return int(value) if value else None
