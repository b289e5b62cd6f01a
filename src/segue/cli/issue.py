"""What the user hands over in files: the issue and the plan."""

import sys
from pathlib import Path

from segue.model.errors import BadInput, BadPlan

ISSUE_SUFFIXES = frozenset({".md", ".txt"})
PLAN_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".markdown": "markdown"}


def read_issue(given: str) -> dict[str, str]:
    """Text, `@file`, the path of a .md or .txt file, or `-` for standard input: the first line is the title."""
    if not is_text(given):
        raise BadInput("The issue is not UTF-8 text.")
    lines = _issue_text(given).strip().splitlines()
    if not lines:
        raise BadInput("The issue is empty.", hint="Say in one line what is to be done.")
    title = lines[0].lstrip("#").strip()
    if not title:
        raise BadInput("The issue has no title.", hint="Its first line says what is to be done.")
    return {"title": title, "description": "\n".join(lines[1:]).strip()}


def _issue_text(given: str) -> str:
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "Standard input")
    if given.startswith("@"):
        return _file_text(Path(given[1:]))
    if "\n" not in given and Path(given).suffix in ISSUE_SUFFIXES and Path(given).is_file():
        return _file_text(Path(given))
    return given


def read_plan(file: Path) -> dict[str, str]:
    """A plan file; its suffix says how it is written."""
    form = PLAN_FORMATS.get(file.suffix.lower())
    if form is None:
        raise BadPlan(f"The plan {file} has a suffix that means nothing here.", hint="Plans are .yaml, .yml or .md.")
    return {"format": form, "text": _file_text(file)}


def is_text(given: str) -> bool:
    """Whether what the system handed over is text: bytes that are none arrive as lone surrogates."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def _file_text(file: Path) -> str:
    try:
        return _decoded(file.read_bytes(), str(file))
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from error


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{source} is not UTF-8 text.") from error
