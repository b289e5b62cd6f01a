"""Rules for calls that need the user's permission, whatever rules Claude Code finds in its settings.

A repository's own settings may allow a tool to everyone who works in it. So Claude Code must ask for each call that
does more than read; Segue itself answers those that the user has allowed in advance.
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
    """Return True if a call needs the user's permission; `mode` is the user's own choice, never one from a file."""
    if tool in _READING | _TALKING:
        return False
    if tool == "Bash":
        return not only_looks(given.get("command"))
    return not (mode == "acceptEdits" and tool in _EDITING)


def only_looks(command: object) -> bool:
    """Return True if a command line consists only of known programs that print; False if in doubt."""
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
