"""Starts the agent."""

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from segue.drivers.amp.command import Amp
from segue.drivers.skeleton.entry import run
from segue.drivers.skeleton.payloads import Payload, introduction

if TYPE_CHECKING:
    from segue.drivers.skeleton.agent_program import Starter


def main() -> int:
    """Run the agent program for Amp; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -P -m segue.drivers.amp", description="Speak for Amp.")
    parser.add_argument("command", nargs="*", default=["amp"], help="Amp's own program; without it: amp")
    amp = Amp(tuple(parser.parse_args().command))
    return run(partial(_introduce, amp), partial(_load, amp))


def _introduce(amp: Amp) -> Payload:
    """Return name, version and capabilities; Amp itself is started for its version."""
    return introduction("amp", amp.version(), images=True, mcp=("http",), sessions=("resume",))


def _load(amp: Amp) -> "Starter":
    """Import the agent, and return its starter."""
    from segue.drivers.amp.agent import start

    return partial(start, amp)


if __name__ == "__main__":
    sys.exit(main())
