"""What Amp starts to ask whether a tool may be used: it carries the question to the door, and the answer back.

It runs by itself, without Segue's packages, because Amp waits for it before each call. Amp reads the exit code: 0
allows, 2 refuses. Anything on standard error would end the whole turn, so it says nothing.
"""

import json
import os
import socket
import sys

ALLOWED, REFUSED = 0, 2


def main(door: str) -> int:
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
