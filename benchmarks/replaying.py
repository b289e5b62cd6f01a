"""`python benchmarks/replaying.py UPDATES MOMENT`: an agent that remembers aloud, as fast as it can be listened to.

It sends the lines of UPDATES when a conversation is loaded, and notes in MOMENT when it was asked to. Standard library
only.
"""

import json
import sys
from pathlib import Path
from time import monotonic
from typing import Any

TOKEN = "replayed"
# The replay contains the same id: some agents number their calls from one again.
CALL = "call-1"
WORDS, TITLE, OUTPUT = "I go on.", "pytest -q", "1 passed"
ABILITIES = {"loadSession": True}
TURN: tuple[dict[str, Any], ...] = (
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": WORDS}},
    {"sessionUpdate": "tool_call", "toolCallId": CALL, "title": TITLE, "kind": "execute", "status": "in_progress"},
    {
        "sessionUpdate": "tool_call_update",
        "toolCallId": CALL,
        "status": "completed",
        "content": [{"type": "content", "content": {"type": "text", "text": OUTPUT}}],
    },
)


def main(updates: Path, moment: Path) -> None:
    """Serve as an agent that replays a long conversation."""
    memory = updates.read_bytes()
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                answer(message, {"protocolVersion": 1, "agentCapabilities": ABILITIES})
            case "session/load":
                moment.write_text(f"{monotonic():.6f}")
                sys.stdout.buffer.write(memory)
                answer(message, {})
            case "session/prompt":
                sys.stdout.buffer.writelines(line_of(update) for update in TURN)
                answer(message, {"stopReason": "end_turn"})
            case _:
                pass


def line_of(update: dict[str, Any]) -> bytes:
    parameters = {"sessionId": TOKEN, "update": update}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": parameters}).encode() + b"\n"


def answer(message: dict[str, Any], result: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
