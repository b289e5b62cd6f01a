"""Text that a client adds under the user's name: environment, plugin lists, instructions, reminders, hook output.

`own_words` keeps what the person typed. A known block is removed wherever it stands; a block whose tag no person would
type (`snake_case`, `kebab-case`, capitals) is removed where the message begins or ends with it.
"""

import re

_KNOWN = (
    "system-reminder|environment_context|user_instructions|permissions instructions|recommended_plugins"
    "|plugins_instructions|skills_instructions|apps_instructions|available_plugins|INSTRUCTIONS|collaboration_mode|personality(?:_spec)?"
    "|turn_aborted|subagent_notification|user_shell_command|skill|local-command-caveat|local-command-stdout"
    "|local-command-stderr|command-message|command-name|command-args|command-contents|bash-input|bash-stdout|bash-stderr"
    "|task-notification|user-memory-input|ide_opened_file|ide_selection|ide_diagnostics|teammate-message"
    "|user-prompt-submit-hook|session_context|current_datetime|hook_context|EXTREMELY_IMPORTANT|EXTREMELY-IMPORTANT"
)
_BLOCK = re.compile(rf"<({_KNOWN})\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL)
_UNTYPED = re.compile(r"\s*<((?:[a-z]+[_-])+[a-z]+|[A-Z][A-Z_-]{3,})(?:\s[^>\n]*)?>.*?</\1>\s*", re.DOTALL)
_HEADED = re.compile(r"\s*# AGENTS\.md instructions\b[^\n]*\n")
_IDE = re.compile(r"\A\s*# Context from my IDE setup:.*?^## My request for \w+:[ \t]*\n", re.DOTALL | re.MULTILINE)
_WHOLE = re.compile(
    r"\s*(?:Caveat:|\[Request interrupted|Operation stopped by hook\b|\w+ hook (?:feedback|error|blocked"
    r"|success|additional context)\b|Base directory for this skill:|<!-- |Your task is to create a detailed summary of)"
)
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


def own_words(text: str) -> str:
    """Return what the person typed, or an empty text if the client wrote all of it."""
    if _WHOLE.match(text):
        return ""
    if "<command-name>" in text:
        return slash_command(text)
    text = _IDE.sub("", text)
    headed = _HEADED.match(text) is not None
    if "<" in text:
        text = _BLOCK.sub("", text)
        while found := _UNTYPED.match(text):
            text = text[found.end() :]
    # The instructions of a repository stand under their heading, in a block of their own where the client knows one.
    return "" if headed else text.strip()


def slash_command(text: str) -> str:
    """Return a slash command with its arguments; empty if it has none, since then it concerns the client only."""
    name, arguments = _COMMAND.search(text), _ARGUMENTS.search(text)
    if name is None or arguments is None or not arguments[1].strip():
        return ""
    return f"{name[1].strip()} {arguments[1].strip()}"
