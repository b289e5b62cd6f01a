"""Shell commands: their short form and their purpose."""

import re
from typing import Any, Literal

from segue.model.events import ToolCalled
from segue.model.naming import words

Purpose = Literal["test", "work", "git", "talk", "look"]
"""Purpose of a command: checking, building and running, versions, asking others, or only looking around."""

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
_TALKING = words("gh glab hub curl wget http ssh scp rsync ping nc telnet aws gcloud az kubectl")
_HANDLING = words("rm mkdir rmdir cp mv ln touch chmod chown open")
_BY_IMPORTANCE: tuple[Purpose, ...] = ("test", "work", "git", "talk", "look")
_PREFIX = re.compile(
    r"^(?:(?:do|then|else|!|time|timeout \S+|nice(?: -n \S+)?|sudo|exec|env|[A-Za-z_]\w*=\S*)(?:\s+|$))*"
)
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'", re.DOTALL)
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
LONGEST_LOOKED_AT = 5000
_EVERYTHING = frozenset({"./...", ".", "--all", "--workspace"})
"""Arguments with which a command does all that there is."""
_STEP = re.compile(r"&&|\|\||[;\n]")


def commands_of(call: ToolCalled) -> list[str]:
    """Return the shell commands that a call runs; empty for other calls."""
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


def headline(command: str) -> str:
    """Return the command on one line, without its directory and redirections, so that two runs look alike."""
    text = command.strip().split("<<", 1)[0]
    lines = (line.strip() for line in text.split("\n"))
    line = _bare(next((line for line in lines if line and not _NOTHING.match(line)), ""))
    if purpose(command) != "test" or purpose(line) == "test":
        return line
    # The tests come later in it, and they are what it was run for.
    return next((part for part in map(_bare, _STEP.split(text)) if purpose(part) == "test"), line)


def covers(line: str, other: str) -> bool:
    """Return True if one command's success shows that the other would succeed: it is the same, runs everything, or has
    a place in common."""
    if line == other:
        return True
    asked, others = _last_step(line).split(), _last_step(other).split()
    if asked[:2] != others[:2] or len(asked) < 2:
        return False
    places, wanted = _named_places(asked[2:]), _named_places(others[2:])
    return not places or bool(_EVERYTHING & set(asked)) or bool(places & wanted)


def _named_places(words_given: list[str]) -> set[str]:
    """Return the words that are files or folders."""
    return {word.strip("'\"").rstrip("/.") for word in words_given if "/" in word or "." in word.strip("./")}


def _last_step(line: str) -> str:
    """Return the last command of a line."""
    return _STEP.split(line)[-1].strip()


def _bare(line: str) -> str:
    """Return a command line without setup before it and redirections after it."""
    for _ in range(3):
        line = _SETUP.sub("", line)
    return _REST.sub("", re.sub(r"\s+", " ", line)).strip(" ;&")


def purpose(command: str) -> Purpose:
    """Return the purpose of the most important part of a command line; `look` if none has another."""
    kinds = {_kind(part) for part in _parts(command)}
    for kind in _BY_IMPORTANCE:
        if kind in kinds:
            return kind
    return "look"


_HIDING = re.compile(r"(?<!\|)\|(?!\|)|\|\|\s*(?:true|:|echo\b)|;\s*(?:echo|true|exit 0)\b|&\s*$|;\s*$")
_HONEST = re.compile(r"\bset -\w*o pipefail|PIPESTATUS|pipefail")


def hides_outcome(command: str) -> bool:
    """Return True if the exit status of a command line may not be that of its main command."""
    bare = _QUOTED.sub("''", command[:LONGEST_LOOKED_AT].split("<<", 1)[0]).strip()
    return _HIDING.search(bare) is not None and _HONEST.search(command) is None


_MARK = re.compile(r"&&\s*echo\s+(?:-e\s+)?(?:\"([^\"]+)\"|'([^']+)'|([\w!.-]+))")


def marked_success(command: str, output: str) -> bool:
    """Return True if the output has the text that the command line prints only after success."""
    head = command.rsplit("||", 1)[0]
    marks = [found[1] or found[2] or found[3] for found in _MARK.finditer(head)]
    return bool(marks) and "$" not in marks[-1] and marks[-1] in output


def _parts(command: str) -> list[str]:
    """Split a command line into simple commands, without quoted text."""
    return _SEPARATOR.split(_QUOTED.sub("''", command[:LONGEST_LOOKED_AT].split("<<", 1)[0]))


def _program(part: str) -> str:
    """Return the name of the program that a simple command runs, or an empty text."""
    part = _PREFIX.sub("", part.strip())
    return part.split(maxsplit=1)[0].rsplit("/", 1)[-1] if part else ""


def _kind(part: str) -> Purpose:
    """Return the purpose of a simple command."""
    program = _program(part)
    if not program or program in _LOOKING or program in _HANDLING:
        return "look"
    if program == "git":
        return "git"
    if program in _TALKING:
        return "talk"
    return "test" if _RUNNERS.search(part) else "work"
