"""Results that stand only in outputs: the lines of an output that matter to a reader.

Failures stand among the errors and test runs in the state, so neither is repeated here.
"""

import re

from segue.model.events import ToolCalled
from segue.model.facts import Outcome
from segue.snapshot.facts.commands import commands_of, headline, purpose
from segue.snapshot.facts.text import clipped, flattened
from segue.snapshot.facts.versions import is_scratch

MOST_LINES = 6
LONGEST = 260
READ_OF_AN_OUTPUT = 20_000
_TELLING = re.compile(
    r"error|fail|fatal|panic|denied|refus|cannot|not found|timed? ?out|exception|warn|\bpass|\btotal|\bcount|limit"
    r"|version|status|result|"
    r"https?://|\b\d+(?:\.\d+)? ?(?:%|ms|s|MB|GB|KB|MiB|GiB|rows?|files?|tests?|commits?|items?|requests?)\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"(?:^|\s)(?:curl|wget|psql|mysql|sqlite3|redis-cli|docker|podman|kubectl|ssh|ps|lsof|netstat|ss|env|printenv"
    r"|uname|df|free|date|ping|dig"
    r"|nslookup|systemctl|journalctl|which|type)\b|(?:^|\s)(?:~|/(?:etc|var|tmp|usr|opt|home|Users|proc|sys|mnt"
    r"|srv)\b)|\.\./"
)
_COUNTED = re.compile(
    r"\bwc\b|--version\b|\bgit (?:rev-parse|rev-list --count|log -1|describe|remote -v|merge-base)|\bgo env\b|\bdu -"
)
# The state of git tells it, or anyone can read it again.
_KNOWN_OTHERWISE = re.compile(
    r"\bg(?:h|lab) (?:pr|mr) create\b|\bgit\b[^|;&]*\bpush\b"
    r"|/(?:pkg/mod|node_modules|site-packages|\.cargo|go-mod-cache|vendor)/"
)
_EMPTY = re.compile(
    r"^Shell cwd was reset|^[0-9a-f]{8}: "
    r"|^[{\[].{160,}|^^\W*(?:ok|done|true|null|none|\d{1,2})?\W*$|^(?:To see|Use |Usage:|hint:)",
    re.IGNORECASE,
)


def result_of(call: ToolCalled, outcome: Outcome, output: str, directory: str) -> str:
    """Return what a call printed, if neither the worktree nor another fact shows it; else an empty text."""
    commands = commands_of(call)
    if not commands:
        return _fetched(output) if call.tool == "fetch" else ""
    command = commands[0]
    kind, line = purpose(command), clipped(headline(command), 90)
    if outcome == "failed":
        return ""
    if kind == "test":
        return ""
    if _KNOWN_OTHERWISE.search(command) or is_scratch(command):
        return ""
    if kind in ("look", "git") and not _COUNTED.search(command) and not _outside(command, directory):
        return ""
    found = _lines(output)
    return f"`{line}` printed: {found}" if found else ""


def _outside(command: str, directory: str) -> bool:
    """Return True if a command reads something outside the worktree."""
    own = command.replace(directory, "") if directory else command
    return _ELSEWHERE.search(own) is not None


def _lines(output: str) -> str:
    """Return the output's lines in one; of many only the last that matter."""
    lines = [line for line in map(flattened, output[:READ_OF_AN_OUTPUT].split("\n")) if line and not _EMPTY.match(line)]
    if len(lines) > MOST_LINES:
        lines = [line for line in lines if _TELLING.search(line)][-3:]
    text = " / ".join(clipped(line, 120) for line in lines)
    return clipped(text, LONGEST)


def _fetched(output: str) -> str:
    """Return the first long lines of a fetched page, or an empty text."""
    lines = [line for line in map(flattened, output[:READ_OF_AN_OUTPUT].split("\n")) if len(line) > 30]
    return f"The page told: {clipped(' '.join(lines[:3]), LONGEST)}" if lines else ""
