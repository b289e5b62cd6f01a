"""Starts the agent."""

import argparse
import asyncio
import sys

from segue.drivers.amp.agent import serve
from segue.drivers.amp.program import Amp


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -P -m segue.drivers.amp", description="Speak for Amp.")
    parser.add_argument("command", nargs="*", default=["amp"], help="Amp's own program; without it: amp")
    given = parser.parse_args()
    asyncio.run(serve(Amp(tuple(given.command))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
