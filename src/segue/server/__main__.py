"""`python -m segue.server`: the server's process."""

import gc
import os
import sys


def main() -> int:
    """Run the server with the orchestrator as its service; return the exit code."""
    if os.name == "nt":
        sys.stderr.write("segue: Segue runs on Linux and macOS; on Windows, run it inside WSL.\n")
        return 1
    # Until the server is ready nearly all that is made stays; looking for garbage meanwhile costs a fifth of the start.
    gc.disable()
    from segue.orchestrator import open_orchestrator
    from segue.server import process

    return process.main(sys.argv[1:], open_orchestrator)


if __name__ == "__main__":
    sys.exit(main())
