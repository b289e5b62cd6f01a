"""Settings of a turn: the user's own, and the rule that makes Amp ask.

Without a terminal Amp asks for nothing. A rule of its own can delegate each decision to a program; that is the only
way in, and it is read from a settings file.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from segue.drivers.amp.command import fields
from segue.drivers.skeleton.jsonrpc import INTERNAL_ERROR, RequestError

FREE = ("Read", "Glob", "Grep", "finder", "get_diagnostics", "view_media", "skill", "get_current_time")
"""Tools that only look at the worktree; agents that ask do not ask for these."""

_STRING = r'("(?:\\.|[^"\\])*")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])")


def ruled(own: Mapping[str, Any], delegate: str) -> dict[str, Any]:
    """Return the user's settings, with every tool but those that only read handed to `delegate`.

    Only those of the user's rules stay that refuse: permission is requested for everything else.
    """
    rules: Sequence[Any] = own.get("amp.permissions") or ()
    refusing = [rule for rule in rules if fields(rule).get("action") == "reject"]
    free = [{"tool": tool, "action": "allow"} for tool in FREE]
    asking = {"tool": "*", "action": "delegate", "to": delegate}
    return {**own, "amp.permissions": [*refusing, *free, asking], "amp.dangerouslyAllowAll": False}


def own_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the user's settings for Amp, which ours must include; empty if there are none."""
    file = _own_file(environment)
    try:
        return json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise RequestError(
            INTERNAL_ERROR,
            f"Amp's settings in {file} are not plain JSON, so Segue cannot add the rule that makes it ask.",
        ) from error


def refuse_what_allows_all(directory: Path) -> None:
    """Raise an error if the repository's own settings allow everything or cannot be read, since they win over ours."""
    for file in filter(Path.is_file, _of_repository(directory)):
        try:
            allows_all = fields(_with_comments(file.read_text("utf-8"))).get("amp.dangerouslyAllowAll")
        except (OSError, ValueError) as error:
            raise RequestError(
                INTERNAL_ERROR, f"{file} cannot be read as JSON, so nobody knows whether Amp would ask; mend it first."
            ) from error
        if allows_all:
            raise RequestError(
                INTERNAL_ERROR,
                f"{file} says amp.dangerouslyAllowAll, so Amp would ask for nothing; take that out first.",
            )


def _with_comments(text: str) -> Any:
    """Parse JSON with comments and trailing commas."""
    for pattern in (_COMMENT, _LAST_COMMA):
        text = pattern.sub(lambda found: found[1] or " ", text)
    return json.loads(text)


def _own_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the user's settings for Amp, whether it exists or not."""
    if named := environment.get("AMP_SETTINGS_FILE"):
        return Path(named)
    home = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", ""), ".config")
    plain = Path(home, "amp", "settings.json")
    commented = plain.with_suffix(".jsonc")
    return commented if commented.exists() and not plain.exists() else plain


def _of_repository(directory: Path) -> Iterator[Path]:
    """Yield the possible settings files of a directory and those above it up to the repository's root."""
    for place in (directory, *directory.parents):
        yield from (place / ".amp" / name for name in ("settings.json", "settings.jsonc"))
        if (place / ".git").exists():
            return
