"""Starts the agent."""

import sys
from typing import TYPE_CHECKING

from segue import __version__
from segue.drivers.skeleton.entry import run
from segue.drivers.skeleton.payloads import Payload, introduction

if TYPE_CHECKING:
    from segue.drivers.skeleton.agent_program import Starter


def main() -> int:
    return run(_introduce, _load)


def _introduce() -> Payload:
    return introduction("api", __version__, images=True, sessions=("close", "fork", "list", "resume"))


def _load() -> "Starter":
    from segue.drivers.api.agent import start

    return start


if __name__ == "__main__":
    sys.exit(main())
