"""Commands: how they are told, and what they are for."""

import re
from typing import Any, Literal

from segue.model.events import ToolCalled
from segue.model.naming import words

Purpose = Literal["test", "work", "git", "talk", "look"]
"""What a command is for: checking, building and running, versions, asking others, or only looking around."""

_SETUP = re.compile(r"^(?:(?:cd|source|\.)\s+\S+|export\s+\S+|set\s+-\S+)\s*(?:&&|;)\s*")
# Lines of a script that do nothing by themselves: comments, and what only prepares the next.
_NOTHING = re.compile(r"#|(?:cd\s+\S+|set\s+-\S+|export\s+\S+)\s*$")
_REST = re.compile(r"2>&1.*$|\|\s*(?:tail|head|grep|rg|sed|awk|tee|wc|cat|sort|uniq|less|jq)\b.*$|>\s*/dev/null.*$")
_RUNNERS = re.compile(
    r"\b(?:pytest|py\.test|unittest|vitest|jest|mocha|rspec|phpunit|ctest|gotestsum|nextest|tox|nox|runtests?\.\w+)\b"
    r"|\b(?:go|cargo|npm|npx|pnpm|yarn|bun|deno|make|just|task|mise|mvn|gradle|gradlew|dotnet|swift|mix|bazel|rake"
    r"|composer|hatch|uv|poetry|zig|sbt)\b[^|;&]*?[\s:]tests?(?![\w./])"
    r"|(?:^|\s|/)bin/test\b"
)
_LOOKING = words(
    "ls cat head tail grep rg ag find fd sed awk wc sort uniq tree stat file which type pwd echo printf date "
    "whoami ps top df du less more diff cmp jq yq column xxd hexdump strings true sleep cd nl tr cut tee "
    "basename dirname realpath readlink test [ id uname printenv history man help wait kill lsof source . read "
    "eval trap for done if fi while case esac { } # local return exit break continue function export set"
)
_SEARCHING = words("rg grep egrep ag ack find fd ls tree")
_TALKING = words("gh glab hub curl wget http ssh scp rsync ping nc telnet aws gcloud az kubectl")
_HANDLING = words("rm mkdir rmdir cp mv ln touch chmod chown open")
_BY_IMPORTANCE: tuple[Purpose, ...] = ("test", "work", "git", "talk", "look")
_PREFIX = re.compile(
    r"^(?:(?:do|then|else|!|time|timeout \S+|nice(?: -n \S+)?|sudo|exec|env|[A-Za-z_]\w*=\S*)(?:\s+|$))*"
)
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'", re.DOTALL)
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
LONGEST_LOOKED_AT = 5000
_SHOWN = re.compile(
    r"(?:cat|nl|head|tail|bat|less|sed -n)(?:\s+(?:-[\w-]+|\d+|'[^']*p'|\"[^\"]*p\"|\d[\d,]*p))*"
    r"\s+([\w./@+~-]+\.\w{1,6})"
)
_EVERYTHING = frozenset({"./...", ".", "-v", "-q", "--all", "-count=1", "-race"})
"""Arguments with which a command does as much or more than without."""
_STEP = re.compile(r"&&|\|\||[;\n]")


def commands_of(call: ToolCalled) -> list[str]:
    """The shell commands that a call runs."""
    if call.tool != "execute":
        return []
    several: Any = call.input.get("commands")
    if isinstance(several, list):
        found: list[object] = several  # pyright: ignore[reportUnknownVariableType]
        return [each for each in found if isinstance(each, str)]
    command: Any = call.input.get("command") or call.input.get("cmd")
    if isinstance(command, list):
        given = [str(word) for word in command]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        command = given[-1] if given[1:2] in (["-lc"], ["-c"]) else " ".join(given)
    return [command] if isinstance(command, str) and command.strip() else []


def file_shown(command: str) -> str:
    """The file whose text a command prints, where it prints one and nothing else."""
    found = _SHOWN.fullmatch(_bare(command)) if "\n" not in command.strip() else None
    return found[1] if found else ""


def headline(command: str) -> str:
    """The command on one line, without where it ran and what became of its output: two runs of it look alike."""
    text = command.strip().split("<<", 1)[0]
    lines = (line.strip() for line in text.split("\n"))
    line = _bare(next((line for line in lines if line and not _NOTHING.match(line)), ""))
    if purpose(command) != "test" or purpose(line) == "test":
        return line
    # The tests come later in it, and they are what it was run for.
    return next((part for part in map(_bare, _STEP.split(text)) if purpose(part) == "test"), line)


def covers(line: str, other: str) -> bool:
    """Whether a run that went well says that the other would, too: it is the same, or picks out less."""
    if line == other:
        return True
    asked, others = line.split(), _last_step(other).split()
    return len(asked) > 1 and asked[:2] == others[:2] and set(asked[2:]) - _EVERYTHING <= set(others[2:])


def _last_step(line: str) -> str:
    return _STEP.split(line)[-1].strip()


def _bare(line: str) -> str:
    for _ in range(3):
        line = _SETUP.sub("", line)
    return _REST.sub("", re.sub(r"\s+", " ", line)).strip(" ;&")


def purpose(command: str) -> Purpose:
    """What the most important of its parts is for."""
    kinds = {_kind(part) for part in _parts(command)}
    for kind in _BY_IMPORTANCE:
        if kind in kinds:
            return kind
    return "look"


def searches(command: str) -> bool:
    """Whether a command that only looks around looks for something, rather than at it."""
    return any(_program(part) in _SEARCHING for part in _parts(command))


def _parts(command: str) -> list[str]:
    """The simple commands of a command line, without what stands in quotes."""
    return _SEPARATOR.split(_QUOTED.sub("''", command[:LONGEST_LOOKED_AT].split("<<", 1)[0]))


def _program(part: str) -> str:
    part = _PREFIX.sub("", part.strip())
    return part.split(maxsplit=1)[0].rsplit("/", 1)[-1] if part else ""


def _kind(part: str) -> Purpose:
    program = _program(part)
    if not program or program in _LOOKING or program in _HANDLING:
        return "look"
    if program == "git":
        return "git"
    if program in _TALKING:
        return "talk"
    return "test" if _RUNNERS.search(part) else "work"
