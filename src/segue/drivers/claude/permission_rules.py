"""Which calls are put to the user, whatever rules Claude Code finds in its settings.

A repository's own settings may allow a tool to everybody who works in it. So Claude Code is told that it must ask for
each call that does more than read; what the user allows unasked, Segue answers by itself.
"""

import shlex
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

_READING = frozenset({"Read", "NotebookRead", "Glob", "Grep", "LS", "ToolSearch"}) | frozenset(
    {"ListMcpResourcesTool", "ReadMcpResourceTool", "BashOutput", "TaskOutput"}
)
# They change nothing but the conversation; what a subagent does is asked for call by call.
_TALKING = frozenset({"Agent", "Task", "ListAgents", "ReportFindings", "EnterPlanMode", "ExitPlanMode"}) | frozenset(
    {"TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskStop", "KillShell"}
)
_EDITING = frozenset({"Edit", "Write", "NotebookEdit"})

# No option of theirs writes a file or starts a program.
_LOOKING = frozenset({"ls", "cat", "head", "tail", "wc", "grep", "pwd", "nl", "stat", "du", "basename", "dirname"})
# A shell does something of its own with these, quoted or not.
_EXPANDED = frozenset("$`\n\r")
_SIGNS = frozenset("();<>|&")


def must_ask(tool: str, given: Mapping[str, Any], mode: str) -> bool:
    """`mode` is the one that the user chose, and not one that was found in a file."""
    if tool in _READING | _TALKING:
        return False
    if tool == "Bash":
        return not only_looks(given.get("command"))
    return not (mode == "acceptEdits" and tool in _EDITING)


def only_looks(command: object) -> bool:
    """Whether a command line is nothing but a few well-known programs that print; whoever is in doubt says no."""
    if not isinstance(command, str) or _EXPANDED & set(command):
        return False
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        words = ["|", *reader]
    except ValueError:
        return False
    # A sign of the shell's is a word of its own, unless it is quoted among other characters.
    if any(set(word) <= _SIGNS for word in words if word not in ("|", "")):
        return False
    return all(word in _LOOKING for before, word in pairwise([*words, "|"]) if before == "|")
