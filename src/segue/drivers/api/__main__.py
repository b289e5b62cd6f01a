"""Starts the agent."""

import sys
from typing import TYPE_CHECKING

from segue import __version__
from segue.drivers.skeleton.entry import run
from segue.drivers.skeleton.payloads import Payload, introduction

if TYPE_CHECKING:
    from segue.drivers.skeleton.agent_program import Starter


def main() -> int:
    """Run the agent program for models of pydantic-ai; return its exit code."""
    return run(_introduce, _load)


def _introduce() -> Payload:
    """Return name, version and capabilities."""
    return introduction("api", __version__, images=True, sessions=("close", "fork", "list", "resume"))


def _load() -> "Starter":
    """Import the agent, and return its starter."""
    from segue.drivers.api.agent import start

    return start


if __name__ == "__main__":
    sys.exit(main())
