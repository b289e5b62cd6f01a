"""Commands: how they are told, and what they are for."""

import re
from typing import Any, Literal

from segue.model.events import ToolCalled

Purpose = Literal["test", "work", "git", "look"]

_SETUP = re.compile(r"^(?:(?:cd|source|\.)\s+\S+|export\s+\S+|set\s+-\S+)\s*(?:&&|;)\s*")
_REST = re.compile(
    r"\s*2>&1.*$|\s*\|\s*(?:tail|head|grep|rg|sed|awk|tee|wc|cat|sort|uniq|less|jq)\b.*$|\s*>\s*/dev/null.*$"
)
_RUNNERS = re.compile(
    r"\b(?:pytest|py\.test|unittest|vitest|jest|mocha|rspec|phpunit|ctest|gotestsum|nextest|tox|nox|runtests?\.\w+)\b"
    r"|\b(?:go|cargo|npm|npx|pnpm|yarn|bun|deno|make|just|task|mise|mvn|gradle|gradlew|dotnet|swift|mix|bazel|rake"
    r"|composer|hatch|uv|poetry|zig|sbt)\b[^|;&]*?[\s:]tests?(?![\w./])"
    r"|(?:^|\s|/)bin/test\b"
)
_LOOKING = frozenset(
    "ls cat head tail grep rg ag find fd sed awk wc sort uniq tree stat file which type pwd echo printf env date "
    "whoami ps top df du less more diff cmp jq yq column xxd hexdump strings true sleep cd nl tr cut tee basename "
    "dirname realpath readlink test [ id uname printenv history man help wait kill lsof".split()
)
_ASSIGNMENT = re.compile(r"^(?:[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|\S*)\s+)+")


def commands_of(call: ToolCalled) -> list[str]:
    """The shell commands that a call runs."""
    if call.tool != "execute":
        return []
    several: Any = call.input.get("commands")
    if isinstance(several, list):
        found: list[object] = several
        return [each for each in found if isinstance(each, str)]
    command: Any = call.input.get("command") or call.input.get("cmd")
    return [command] if isinstance(command, str) and command.strip() else []


def headline(command: str) -> str:
    """The command on one line, without where it ran and what became of its output: two runs of it look alike."""
    line = command.strip().split("<<", 1)[0].split("\n", 1)[0].strip()
    for _ in range(3):
        line = _SETUP.sub("", line)
    return re.sub(r"\s+", " ", _REST.sub("", line)).strip(" ;&")


def purpose(line: str) -> Purpose:
    if is_test(line):
        return "test"
    words = _ASSIGNMENT.sub("", line).split()
    program = words[0].rsplit("/", 1)[-1] if words else ""
    if program == "git":
        return "git"
    return "look" if not program or program in _LOOKING else "work"


def is_test(line: str) -> bool:
    found = _RUNNERS.search(line)
    return found is not None and (line.split() or [""])[0] not in _LOOKING | {"git"}
