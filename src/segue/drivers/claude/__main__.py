"""Starts the agent."""

import asyncio
import os
import sys

from segue.drivers.claude.agent import serve
from segue.drivers.claude.options import Setup


def main() -> int:
    asyncio.run(serve(Setup.of(os.environ)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
