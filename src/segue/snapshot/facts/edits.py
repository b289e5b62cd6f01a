"""Which files a call changes."""

import re
from dataclasses import dataclass
from typing import Any

from segue.model.events import FileAction, JsonObject, ToolCalled
from segue.snapshot.facts.commands import commands_of
from segue.snapshot.facts.text import flattened

_PATCH = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_WRITTEN = re.compile(r"(?:cat|tee)\s*(?:-a\s*)?>{0,2}\s*['\"]?([\w./~+-]+\.\w+)['\"]?\s*<<")
_IN_PLACE = re.compile(
    r"\bsed -i(?:\.\w+)?(?:\s+''|\s+-E|\s+\"\"|\s+-e)*\s+(?:'[^']*'|\"[^\"]*\")((?:\s+[\w./~+-]+\.\w+)+)"
)
_REMOVED = re.compile(r"(?:^|&&|;)[ \t]*(?:git )?rm +(?:-\w+ +)*([\w./~+-]+\.\w+)[ \t]*(?=$|&&|;)", re.MULTILINE)
_ELSEWHERE = ("/tmp/", "/dev/", "/private/tmp", "/var/folders/")
_OWN = re.compile(r"/\.(?:claude|codex|gemini|cursor)/")
_ACTIONS: dict[str, FileAction] = {"Add": "created", "Update": "modified", "Delete": "deleted"}
WRITTEN_TEXT = ("content", "new_string", "new_source", "new_str", "file_text", "newText")
LONGEST_CHANGE = 160


@dataclass(frozen=True, slots=True)
class Edit:
    """Change of a file by a call."""

    path: str
    action: FileAction
    change: str = ""


def edits_of(call: ToolCalled) -> list[Edit]:
    """Return the files that a call changes or deletes, by edit tools, patches and shell commands."""
    found: list[Edit] = []
    if call.tool in ("edit", "delete"):
        found += _tool_edits(call)
    for command in commands_of(call):
        found += _patched(command)
        in_place = [path for files in _IN_PLACE.findall(command) for path in files.split()]
        found += [Edit(path, "modified") for path in _WRITTEN.findall(command) + in_place]
        found += [Edit(path, "deleted") for path in _REMOVED.findall(command)]
    return found


def elsewhere(path: str) -> bool:
    """Return True if a path is no part of the work: a scratch file, or no file at all."""
    return path.startswith(_ELSEWHERE) or _OWN.search(path) is not None


def change_told(output: str) -> str:
    """Return the beginning of the lines that a diff in the output adds; empty without a diff."""
    if "+++ " not in output:
        return ""
    added = (line[1:] for line in output[: 8 * LONGEST_CHANGE].split("\n") if line[:1] == "+" != line[1:2])
    return flattened(" ".join(added))[:LONGEST_CHANGE]


def _tool_edits(call: ToolCalled) -> list[Edit]:
    """Return the files that an edit tool changes or deletes, by its patch or its paths."""
    patch = call.input.get("input") or call.input.get("patch")
    if isinstance(patch, str) and (patched := _patched(patch)):
        return patched
    action: FileAction = "deleted" if call.tool == "delete" else "modified"
    return [Edit(path, action, written_text(call)) for path in call.paths]


def written_text(call: ToolCalled) -> str:
    """Return the beginning of the text that a call wrote."""
    several: Any = call.input.get("edits")
    first: Any = several[0] if isinstance(several, list) and several else None  # pyright: ignore[reportUnknownVariableType]
    given: JsonObject = first if isinstance(first, dict) else call.input  # pyright: ignore[reportUnknownVariableType]
    text = next((given[key] for key in WRITTEN_TEXT if isinstance(given.get(key), str)), "")
    return _beginning(text[: 4 * LONGEST_CHANGE])


def _beginning(text: str) -> str:
    """Return the text on one line, marked if it is cut."""
    text = flattened(text)
    return text if len(text) <= LONGEST_CHANGE else f"{text[:LONGEST_CHANGE].rsplit(' ', 1)[0]}…"


def _patched(patch: str) -> list[Edit]:
    """Return the files that a patch changes; empty if the text holds none."""
    marks = list(_PATCH.finditer(patch)) if "*** " in patch else []
    if not marks:
        return []
    found: list[Edit] = []
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        body = patch[mark.end() : following.start() if following else len(patch)][: 4 * LONGEST_CHANGE]
        lines = [line[1:] for line in body.split("\n") if line[:1] in ("+", "-", " ")]
        found.append(Edit(mark[2].strip(), _ACTIONS[mark[1]], _beginning(" ".join(lines))))
    return found
