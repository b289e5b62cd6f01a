"""`segue context`: what a successor would read now, of a workflow or of a session file."""

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from segue import client
from segue.cli import find
from segue.cli.follow import events
from segue.cli.output import Output

TIMEOUT = 120.0


def is_file(source: str) -> bool:
    """Return True if a name means a session file: it exists, has a path separator, or ends in .jsonl."""
    return os.path.exists(source) or os.sep in source or source.endswith(".jsonl")  # noqa: PTH110


def show_context(view: dict[str, Any], budget: int | None, exam: bool, out: Output, *, document: bool) -> None:
    """Print the context of a workflow, or the whole document as JSON; `exam` adds the exam's result on stderr."""
    found = _compiled(view, budget)
    if document and not out.as_json:
        sys.stdout.write(json.dumps(found, ensure_ascii=True) + "\n")
        return
    out.result(found)
    if out.as_json:
        return
    sys.stdout.buffer.write(found["context"].encode(errors="replace"))
    if exam:
        sys.stdout.flush()
        sys.stderr.write(report(found["exam"]))


def expand(view: dict[str, Any], numbers: Sequence[int]) -> None:
    """Print events of a workflow's journal in full as JSON; exit with 1 at the first number that is no event."""
    for number in sorted(set(numbers)):
        page = events(view["id"], number - 1, 0)["events"]
        if not page or page[0]["seq"] != number:
            sys.stderr.write(f"segue: The journal has no event {number} (it reaches to {view['head']}).\n")
            sys.exit(1)
        sys.stdout.write(f"#{number}\n{json.dumps(page[0], indent=2, ensure_ascii=False)}\n")


def show_difference(before: str, after: str, budget: int | None) -> None:
    """Print a unified diff of two contexts, each of a workflow or a file; print nothing if they are equal."""
    old, new = (_text_of(source, budget).splitlines() for source in (before, after))
    for line in difflib.unified_diff(old, new, before, after, lineterm=""):
        sys.stdout.buffer.write(f"{line}\n".encode(errors="replace"))


def _text_of(source: str, budget: int | None) -> str:
    """Return the context of a workflow from the server, or of a file from a process; exit with its code if that
    fails."""
    if not is_file(source):
        return _compiled(find.latest(source), budget)["context"]
    size = [] if budget is None else ["--budget", str(budget)]
    command = [sys.executable, "-P", "-m", "segue.contextfile", *size, "--", source]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        sys.stderr.buffer.write(done.stderr)
        sys.exit(done.returncode)
    return done.stdout.decode(errors="replace")


def _compiled(view: dict[str, Any], budget: int | None) -> dict[str, Any]:
    """Return a workflow's context document from the server; without a budget the server chooses one."""
    params = {} if budget is None else {"budget": str(budget)}
    return client.call("GET", f"/api/workflows/{view['id']}/context", params=params, timeout=TIMEOUT)


def report(exam: dict[str, Any]) -> str:
    """Return the result of a context's exam, in lines."""
    lines = [f"exam: {exam['score']:.0%}, about {exam['tokens']} of {exam['budget']} tokens"]
    lines += [f"  {category}: {score:.0%}" for category, score in exam["by_category"].items()]
    lines += [f"  missing: {about}" for about in exam["missing"]]
    return "\n".join(lines) + "\n"
