"""How much of a session its context keeps: by the exam, and by what the sessions' real continuations needed."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

from benchmarks import data, sample_sessions
from segue.contextfile import compiled_file

BUDGETS = (4000, 1000)
SIZE = 300_000
"""Bytes of the session that ships with the project: far more than a budget holds."""
MEASURES = {"STATE": "state", "FUTURE": "future", "FUTURE_OLD": "old", "FUTURE_GROUNDED": "grounded"}

_HEAD = re.compile(r"sessions (\d+); failed calls (\d+); over budget (\d+); mean (\d+) ms")
_TABLE = re.compile(r"^### (\w+) recall %\n.*\n.*\n\| \S+ \| (.*) \|$", re.MULTILINE)


async def measure(directory: Path, size: int = SIZE) -> dict[str, Any]:
    return {
        "synthetic": {
            agent: examined(sample_sessions.written(directory, size, agent)) for agent in sample_sessions.FORMATS
        },
        "recorded": data.or_why_not(recorded),
    }


def examined(file: Path) -> dict[str, Any]:
    """Return the exam's score of a session's contexts, and how many tokens they take."""
    found: dict[str, Any] = {"bytes": file.stat().st_size}
    for budget in BUDGETS:
        context, verdict, _ = compiled_file(file, budget)
        found[str(budget)] = {"score": verdict.score * 100 if verdict else None, "tokens": context.tokens}
    return found


def recorded() -> dict[str, Any]:
    """Run the scorer of the data folder, which calls `segue context` for each session at two cuts."""
    folder = data.folder("retention_cli.py", "transcripts", "venv/bin/python")
    segue = f"{shlex.quote(sys.executable)} -m segue context {{file}} --budget {{budget}}"
    budgets = ",".join(map(str, BUDGETS))
    python, scorer = folder / "venv/bin/python", folder / "retention_cli.py"
    return read_scores(data.printed_by([python, scorer, "--cmd", segue, "--budgets", budgets], folder))


def read_scores(printed: str) -> dict[str, Any]:
    """Parse the output of `retention_cli.py`: a line about the calls, and a table for each measure."""
    head, tables = _HEAD.search(printed), dict(_TABLE.findall(printed))
    if head is None or not MEASURES.keys() <= tables.keys():
        raise ValueError(f"retention_cli.py printed something else:\n{printed[:400]}")
    columns = {name: [float(cell) for cell in tables[title].split(" | ")] for title, name in MEASURES.items()}
    names = ("sessions", "failed", "over_budget", "call_ms")
    return dict(zip(names, map(int, head.groups()), strict=True)) | {
        str(budget): {name: column[place] for name, column in columns.items()} for place, budget in enumerate(BUDGETS)
    }
