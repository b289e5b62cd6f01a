"""Starts the agent."""

import os
import sys
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from segue.drivers.claude.setup import Setup
from segue.drivers.skeleton.entry import run
from segue.drivers.skeleton.payloads import Payload, introduction

if TYPE_CHECKING:
    from segue.drivers.skeleton.agent_program import Starter


def main() -> int:
    """Run the agent program for Claude Code; return its exit code."""
    return run(_introduce, partial(_load, Setup.of(os.environ)))


def _introduce() -> Payload:
    """Return name, version of the SDK, and capabilities."""
    sdk, sessions = version("claude-agent-sdk"), ("close", "fork", "list", "resume")
    return introduction("claude-sdk", sdk, images=True, mcp=("http", "sse"), sessions=sessions)


def _load(setup: Setup) -> "Starter":
    """Import the agent, and return its starter."""
    from segue.drivers.claude.agent import start

    return partial(start, setup)


if __name__ == "__main__":
    sys.exit(main())
