"""The agent of the example driver: it says one JSON object per line, and plays the lines of its file."""

import json
import sys
from pathlib import Path
from secrets import token_hex
from typing import Any


class LinesAgent:
    def __init__(self, lines: dict[str, Any], memory: Path) -> None:
        self._lines = lines
        self._memory = memory

    def serve(self) -> None:
        while heard := hear():
            if "prompt" in heard:
                earlier = self._memory.read_text()
                with self._memory.open("a") as memory:
                    memory.write(f"{heard['prompt']}\n")
                self._play(heard["prompt"], earlier)

    def _play(self, prompt: str, earlier: str) -> None:
        act, given = next((act for words, act in self._lines.items() if words in prompt), ("Recall", [earlier]))
        getattr(self, f"_{act.lower()}")(*given)

    def _recall(self, text: str) -> None:
        self._say(f"I remember: {text}")

    def _say(self, text: str) -> None:
        say(say=text)
        end("end_turn")

    def _use(self, input: int, output: int) -> None:
        say(used=input + output)
        end("end_turn")

    def _fail(self, message: str) -> None:
        end("failed", message)

    def _saylate(self, text: str) -> None:
        end("end_turn")
        say(say=text)

    def _hang(self) -> None:
        say(say="Hanging.")
        while not hear().get("cancel"):
            pass
        end("cancelled")

    def _write(self, path: str, content: str) -> None:
        say(call="call-1", path=path)
        answer = hear()
        if answer.get("allowed"):
            Path(path).write_text(content)
        say(called="call-1", status="completed" if answer.get("allowed") else "failed")
        end("cancelled" if "cancel" in answer else "end_turn")


def hear() -> dict[str, Any]:
    return json.loads(sys.stdin.readline() or "{}")


def say(**words: object) -> None:
    sys.stdout.write(f"{json.dumps(words)}\n")
    sys.stdout.flush()


def end(reason: str, why: str = "") -> None:
    say(end=reason, why=why)


def main(script: str, *words: str) -> None:
    lines, home = json.loads(Path(script).read_text()), Path(script).parent
    token = words[1] if words else token_hex(8)
    memory = home / f"{token}.txt"
    if words and not memory.exists():
        return
    memory.touch()
    say(conversation="another" if words and "" in lines else token)
    LinesAgent({prompt: act for prompt, act in lines.items() if prompt}, memory).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
