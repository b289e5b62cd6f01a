"""An agent that knows nothing: it sends the lines its file holds for each method. Standard library only."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def main(path: str) -> None:
    answers = json.loads(Path(path).read_text())
    with Path(f"{path}.heard").open("a") as heard:
        for line in sys.stdin:
            heard.write(line)
            heard.flush()
            message = json.loads(line)
            for each in answers.get(message.get("method"), []) if "method" in message else react(answers):
                send(each, message.get("id"))


def react(answers: Any) -> list[Any]:
    """What comes after an answer: the next of `responses`, or `response` each time."""
    following = answers.get("responses")
    return following.pop(0) if following else answers.get("response", [])


def send(each: Any, request_id: Any) -> None:
    if each == "close stdout":
        os.close(1)
    elif each == "close stdin":
        os.close(0)
        Path(f"{sys.argv[1]}.closed").touch()
        signal.pause()
    elif isinstance(each, str):
        os.write(1, f"{each}\n".encode())
    elif "one of" in each:
        send(each["one of"].pop(0), request_id)
    else:
        os.write(1, json.dumps(each).replace('"$id"', json.dumps(request_id)).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])
