"""Starts the agent."""

import asyncio
import os
import sys

from segue.drivers.api.agent import serve
from segue.drivers.api.history import home
from segue.drivers.api.models import Models


def main() -> int:
    asyncio.run(serve(home(os.environ), Models(os.environ)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
