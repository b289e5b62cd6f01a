"""The folder with recorded sessions and their scorers, which is not part of the project: `SEGUE_BENCH_DATA`."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

VARIABLE = "SEGUE_BENCH_DATA"


class NotMeasured(Exception):
    """Data of the benchmark are missing on this machine."""


def folder(*needed: str) -> Path:
    """Return the data folder if it contains these files."""
    given = os.environ.get(VARIABLE)
    if not given:
        raise NotMeasured(f"{VARIABLE} was not set")
    for name in needed:
        if not Path(given, name).exists():
            raise NotMeasured(f"{VARIABLE} has no {name}; the README there says how it is made")
    return Path(given).resolve()


def or_why_not(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the figures, or the reason for their absence, which the page shows."""
    try:
        return measure()
    except NotMeasured as reason:
        return {"not_measured": str(reason)}


def printed_by(command: Sequence[str | Path], directory: Path) -> str:
    """Run a scorer and return its output."""
    done = subprocess.run([str(word) for word in command], cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[1]} failed: {done.stderr.strip()[-400:]}")
    return done.stdout
