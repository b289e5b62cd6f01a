"""Program that Amp starts to ask for permission: it sends the question to a socket, and returns the answer.

It runs without Segue's packages, because Amp waits for it before each call. Amp reads the exit code: 0 allows,
2 refuses. Any line on standard error would end the whole turn, so none is written.
"""

import json
import os
import socket
import sys

ALLOWED, REFUSED = 0, 2


def main(door: str) -> int:
    """Ask through the socket for permission for the tool that Amp's environment names; return the exit code for Amp."""
    question = {
        "tool": os.environ.get("AGENT_TOOL_NAME", ""),
        "call": os.environ.get("AGENT_TOOL_USE_ID", ""),
        "input": json.loads(sys.stdin.read() or "{}"),
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(door)
        connection.sendall(json.dumps(question).encode() + b"\n")
        answer = connection.makefile("rb").readline()
    return ALLOWED if answer.strip() == b"allow" else REFUSED


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except (OSError, ValueError, IndexError):
        # Nobody is there to ask.
        sys.exit(REFUSED)
