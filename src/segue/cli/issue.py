"""Input from files: the issue, the plan, texts, and the servers of tools."""

import json
import os
import sys
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import Any, BinaryIO, cast

from segue.cli.tracked import looks_like_json, tracked_issue
from segue.model.errors import BadInput, BadPlan

ISSUE_SUFFIXES = frozenset({".md", ".txt"})
MOST_READ = 10_000_000
"""Largest number of bytes of a text; a longer input may have no end."""
PLAN_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".markdown": "markdown"}


def read_issue(given: str) -> dict[str, str]:
    """Read an issue: text, `@file`, the path of a .md or .txt file, or `-` for standard input; its first line is the
    title.

    It may also be an issue of GitHub or GitLab, as JSON.
    """
    text = _issue_text(given).strip()
    if looks_like_json(text):
        return tracked_issue(text)
    lines = text.splitlines()
    if not lines:
        raise BadInput("The issue is empty.", hint="Say in one line what is to be done.")
    title = lines[0].lstrip("#").strip()
    if not title:
        raise BadInput("The issue has no title.", hint="Its first line says what is to be done.")
    return {"title": title, "description": "\n".join(lines[1:]).strip()}


def _issue_text(given: str) -> str:
    """Return the issue's text: of standard input (`-`), a file (`@file` or a .md or .txt path), or the argument
    itself."""
    if given == "-":
        return _typed()
    if given.startswith("@"):
        return _file_text(Path(given[1:]))
    # Path's own is_file raises at a text that is too long for a name.
    if "\n" not in given and Path(given).suffix in ISSUE_SUFFIXES and os.path.isfile(given):  # noqa: PTH113
        return _file_text(Path(given))
    return given


def read_plan(file: Path) -> dict[str, str]:
    """Read a plan file, whose suffix names its format."""
    content = read_file(file, MOST_READ)
    form = PLAN_FORMATS.get(file.suffix.lower())
    if form is None:
        raise BadPlan(f"The plan {file} has a suffix that means nothing here.", hint="Plans are .yaml, .yml or .md.")
    return {"format": form, "text": _decoded(content, str(file))}


def read_text(given: str) -> str:
    """Return a message to an agent, `-` from standard input; raise BadInput if it is empty."""
    text = (_typed() if given == "-" else given).strip()
    if not text:
        raise BadInput("There is nothing to say.", hint='Give the words: segue prompt "What is left to do?"')
    return text


def read_context(given: str) -> str:
    """Return the text for a new conversation from a file, or `-` for standard input; raise BadInput if it is empty."""
    text = _typed() if given == "-" else _file_text(Path(given))
    if not text.strip():
        raise BadInput("The context is empty.", hint="`segue context > FILE` writes one to begin with.")
    return text


def read_content(given: str) -> str:
    """Return the content of a memory entry: text, `@file`, or `-` for standard input; raise BadInput if it is empty."""
    text = _issue_text(given).strip()
    if not text:
        raise BadInput("There is nothing to memorize.", hint="Give the words, @FILE, or - for standard input.")
    return text


def is_text(given: str) -> bool:
    """Return True if a value is text; the system's bytes that are not text arrive as lone surrogates."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


# ── servers of tools ────────────────────────────────────────────────────────────────────────────────


def read_servers(file: Path) -> list[dict[str, Any]]:
    """Read the servers from a JSON file of the common form `{"mcpServers": {name: {"command": …} or {"url": …}}}`."""
    try:
        document = json.loads(_file_text(file))
    except ValueError as error:
        raise BadInput(f"{file} is not JSON: {error}.") from error
    except RecursionError as error:
        raise BadInput(f"{file} is nested too deeply.") from error
    servers = cast(dict[str, Any], document).get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        form = '{"mcpServers": {"name": {"command": "program", "args": ["word"], "env": {"NAME": "value"}}}}'
        raise BadInput(f'{file} names no "mcpServers".', hint=f"The form is: {form}")
    return [
        _server(f"The server {name!r} in {file}", name, entry) for name, entry in cast(dict[str, Any], servers).items()
    ]


def _server(where: str, name: str, entry: object) -> dict[str, Any]:
    """Read one server of tools from its JSON object; raise BadInput if it has an unknown type or key."""
    if not isinstance(entry, dict):
        raise BadInput(f"{where} must be an object.")
    fields = cast(dict[str, Any], entry)
    transport = fields.get("type", "http" if "url" in fields else "stdio")
    if transport not in SERVER_KEYS:
        raise BadInput(f"{where} has a type that means nothing here: {transport!r}.", hint="Types: stdio, http, sse.")
    keys = SERVER_KEYS[transport]
    if unknown := set(fields) - {"type", *keys}:
        raise BadInput(f"{where} has a key that means nothing here: {min(unknown)}.", hint=f"Keys: {', '.join(keys)}.")
    known: dict[str, Any] = {"name": name, "transport": transport}
    if transport == "stdio":
        words = [_word(where, "command", fields), *_words(where, fields.get("args", []))]
        return {**known, "command": words, "variables": _variables(where, "env", fields)}
    return {**known, "url": _word(where, "url", fields), "variables": _variables(where, "headers", fields)}


SERVER_KEYS = {
    "stdio": ("command", "args", "env"),
    "http": ("url", "headers"),
    "sse": ("url", "headers"),
}


def _word(where: str, key: str, fields: dict[str, Any]) -> str:
    """Return the text under this key; raise BadInput if it is missing, empty or no text."""
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{where} must have a {key}, which is a text.")
    return value


def _words(where: str, value: object) -> list[str]:
    """Return a list of texts; raise BadInput if the value is none."""
    if isinstance(value, list) and all(isinstance(word, str) for word in cast(list[object], value)):
        return cast(list[str], value)
    raise BadInput(f"{where}: args must be a list of texts.")


def _variables(where: str, key: str, fields: dict[str, Any]) -> dict[str, str]:
    """Return the object of texts under this key, empty if missing; raise BadInput, without the value, if it is none."""
    value = fields.get(key, {})
    if isinstance(value, dict) and all(isinstance(each, str) for each in cast(dict[str, object], value).values()):
        return cast(dict[str, str], value)
    # The value itself is not shown: it may be a secret.
    raise BadInput(f"{where}: {key} must be an object whose values are texts.")


# ── files ───────────────────────────────────────────────────────────────────────────────────────────


def read_file(file: Path, most: int) -> bytes:
    """Read a file or a pipe; a device is refused, since it may have no end."""
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            content = _up_to(most, opened, str(file)) if S_ISREG(mode) or S_ISFIFO(mode) else None
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from error
    if content is None:
        raise BadInput(f"{file} cannot be read: it is not a file.")
    return content


def _typed() -> str:
    """Return standard input as text; raise BadInput if it is too large or not UTF-8."""
    return _decoded(_up_to(MOST_READ, sys.stdin.buffer, "Standard input"), "Standard input")


def _up_to(most: int, opened: BinaryIO, source: str) -> bytes:
    """Return the content of an open file; raise BadInput if it has more than so many bytes."""
    content = opened.read(most + 1)
    if len(content) > most:
        raise BadInput(f"{source} is too large: {most / 1e6:g} MB is the most.")
    return content


def _file_text(file: Path) -> str:
    """Return a file's text; raise BadInput if it is too large, no file or not UTF-8."""
    return _decoded(read_file(file, MOST_READ), str(file))


def _decoded(content: bytes, source: str) -> str:
    """Return bytes as text without a byte order mark; raise BadInput if they are not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{source} is not UTF-8 text.") from error
