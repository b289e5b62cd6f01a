"""Session files of any size, made up from nothing: the story of the kettle, and after it more and more work."""

import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.recordings import DIRECTORY, ClaudeFile, CodexFile
from tests.recordings.kettle import BRANCH, told

_DEEDS = ("measure", "heat", "pour", "drain", "descale", "count", "announce", "refuse", "remember", "calibrate")
_THINGS = ("water", "lid", "sensor", "steam", "element", "timer", "handle", "filter", "display", "cable", "limescale")
_MANNERS = ("Slowly", "Twice", "Safely", "AtBoil", "WhenEmpty", "ByHand", "Overnight", "InSteps", "OnDemand", "Early")
_REASONS = (
    "because the reading comes late when the kettle is full",
    "since the old way forgot the last cup",
    "so that nobody burns a finger",
    "because two of them at once would trip the fuse",
)

_ENVELOPE = {
    **{name: f"{name}-0123456789abcdef0123456789abcdef" for name in ("parentUuid", "sessionId", "requestId", "slug")},
    "isSidechain": False,
    "userType": "external",
    "version": "2.0.0",
    "timestamp": "2026-01-01T12:00:00.000Z",
    "usage": {
        "input_tokens": 4,
        "cache_creation_input_tokens": 1234,
        "cache_read_input_tokens": 123456,
        "output_tokens": 123,
        "cache_creation": {"ephemeral_5m_input_tokens": 1234, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
    },
}

File = ClaudeFile | CodexFile
FORMATS: Mapping[str, Callable[[], File]] = {
    "Claude Code": lambda: told(ClaudeFile(branch=BRANCH)),
    "Codex": lambda: told(CodexFile(branch=BRANCH)),
}


def written(folder: Path, size: int, agent: str = "Claude Code", name: str = "session.jsonl") -> Path:
    """Make a session file of at least this many bytes; the same in every run."""
    file = FORMATS[agent]()
    lines: list[str] = []
    bytes_so_far = 0
    for number in count(1):
        new = [json.dumps(_wrapped(line)) for line in file.lines[len(lines) :]]
        lines += new
        bytes_so_far += sum(len(line) + 1 for line in new)
        if bytes_so_far >= size:
            break
        _work_on(file, number)
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def _wrapped(line: dict[str, Any]) -> dict[str, Any]:
    """Add the fields that Claude Code repeats on each line, and the second copy of tool results."""
    if "message" not in line:
        return line
    answered = line["message"]["content"][0].get("content")
    return line | _ENVELOPE | ({"toolUseResult": {"stdout": answered, "stderr": ""}} if answered else {})


def turns(how_many: int) -> list[str]:
    """Yield the messages and outputs of such sessions, for an index."""
    found: list[str] = []
    for number in range(1, how_many + 1):
        random = Random(number)
        thing, name = random.choice(_THINGS), _name(random)
        found.append(_wish(thing, name) if number % 5 == 0 else _reason(random, thing, name))
    return found


def questions(how_many: int) -> list[str]:
    """Make queries from half of a turn's terms."""
    random = Random(how_many)
    return [f"why does {random.choice(_THINGS)} use {_name(random)}" for _ in range(how_many)]


def _work_on(file: File, number: int) -> None:
    """Yield one stretch: requests, a look at a file, a change, a failed and a passed test."""
    random = Random(number)
    thing, name = random.choice(_THINGS), _name(random)
    path, test = f"{DIRECTORY}/src/{thing}/part_{number}.py", f"tests/{thing}/test_part_{number}.py"
    if number % 8 == 0:
        file.user(_wish(thing, name))
    file.says(_reason(random, thing, name))
    file.reads(path, _code(random, 160))
    file.runs(f"grep -rn {name} src | head -40", _code(random, 40))
    file.edits(path, _code(random, 3), _code(random, 8))
    command = f"cd {DIRECTORY} && python -m pytest {test}"
    file.runs(command, f"{_code(random, 60)}\nFAILED {test}::test_{thing}_{number} - AssertionError\n1 failed", code=1)
    file.edits(path, _code(random, 2), _code(random, 4))
    if number % 5:
        file.runs(command, f"{test} .\n1 passed in 0.11s")
    if number % 10 == 0:
        file.plans({f"Let the {each} be part {number}": "pending" for each in random.sample(_THINGS, 4)})


def _wish(thing: str, name: str) -> str:
    return f"Please look after the {thing} too: {name} must never be called while the lid is open."


def _reason(random: Random, thing: str, name: str) -> str:
    return f"I will let the {thing} call {name} and not {_name(random)}, {random.choice(_REASONS)}."


def _name(random: Random) -> str:
    return f"{random.choice(_DEEDS)}{random.choice(_THINGS).title()}{random.choice(_MANNERS)}"


def _code(random: Random, lines: int) -> str:
    return "\n".join(_line(random) for _ in range(lines))


def _line(random: Random) -> str:
    """Make a line of code; every second one is a comment."""
    if random.random() < 0.5:
        return f"    # The {random.choice(_THINGS)} has to {random.choice(_DEEDS)} {random.choice(_REASONS)}."
    return f"    {_name(random)}({random.choice(_THINGS)}_{random.randrange(40)}, limit={random.randrange(100)})"
