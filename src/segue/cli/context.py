"""`segue context WORKFLOW`: what a successor would read now."""

import sys
from typing import Any

from segue import client
from segue.cli.output import Output


def show_context(view: dict[str, Any], budget: int | None, exam: bool, out: Output) -> None:
    params = {} if budget is None else {"budget": str(budget)}
    found = client.call("GET", f"/api/workflows/{view['id']}/context", params=params, timeout=120)
    out.result(found)
    if out.as_json:
        return
    sys.stdout.buffer.write(found["context"].encode(errors="replace"))
    if exam:
        sys.stdout.flush()
        sys.stderr.write(report(found["exam"]))


def report(exam: dict[str, Any]) -> str:
    """Return the result of a context's exam, in lines."""
    lines = [f"exam: {exam['score']:.0%}, about {exam['tokens']} of {exam['budget']} tokens"]
    lines += [f"  {category}: {score:.0%}" for category, score in exam["by_category"].items()]
    lines += [f"  missing: {about}" for about in exam["missing"]]
    return "\n".join(lines) + "\n"
