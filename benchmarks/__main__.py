"""Measure, write `build/bench.json` and print a table; `--page` puts the figures into the documentation."""

import argparse
import asyncio
import json
import os
import platform
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks import report

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
FIGURES = BUILD / "bench.json"
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"

MEASUREMENTS: Mapping[str, str] = {
    "appends": "benchmarks.appends:measure",
    "one_event": "benchmarks.appends:measure_one",
    "recovery": "benchmarks.recovery:measure",
    "cycles": "benchmarks.cycles:measure",
    "doors": "benchmarks.doors:measure",
    "resume": "benchmarks.resumes:measure",
    "live_session": "benchmarks.live:measure",
    "tasks": "benchmarks.tasks:measure",
    "crowd": "benchmarks.crowd:measure",
    "capacity": "benchmarks.capacity:measure",
    "replay": "benchmarks.replay:measure",
    "context": "benchmarks.context:measure",
    "context_speed": "benchmarks.context_speed:measure",
    "checkpoint": "benchmarks.checkpoint:measure",
    "recall": "benchmarks.recall:measure",
}
WITHIN = 900.0
"""Timeout of one measurement, in seconds."""
CLEAN_UP = 20.0


def main() -> int:
    arguments = _arguments()
    if arguments.here:
        sys.stdout.write(json.dumps(measure_here(arguments.here)))
        return 0
    if arguments.page:
        return write_page()
    document = measure_all(arguments.names or list(MEASUREMENTS))
    sys.stdout.write("\n" + report.as_text(document))
    return 1 if any("error" in document.get(name, {}) for name in MEASUREMENTS) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(MEASUREMENTS)}")
    parser.add_argument("--page", action="store_true", help="put the figures of build/bench.json into the docs")
    parser.add_argument("--here", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in MEASUREMENTS:
            parser.error(f"there is no measurement {name!r}; known: {', '.join(MEASUREMENTS)}")
    return arguments


def write_page() -> int:
    """Write the figures into the documentation; only of a whole run, so that all are of one day."""
    document = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    missing = [name for name in MEASUREMENTS if "error" in document.get(name, {"error": ""})]
    if missing:
        sys.stderr.write(f"build/bench.json has no figures for {', '.join(missing)}: run `make bench` first\n")
        return 1
    PAGE.write_text(report.put_into(PAGE.read_text(), document))
    return 0


def measure_all(names: Sequence[str]) -> dict[str, Any]:
    """Run each measurement in a process of its own."""
    BUILD.mkdir(exist_ok=True)
    document: dict[str, Any] = {}
    load_before = os.getloadavg()[0]
    for name in names:
        start = perf_counter()
        document[name] = measure(name)
        failed = f": {document[name]['error']}" if "error" in document[name] else ""
        sys.stdout.write(f"measured {name} in {perf_counter() - start:.0f} s{failed}\n")
        sys.stdout.flush()
    document["taken_at"] = f"{datetime.now(UTC):%Y-%m-%d}"
    document["machine"] = machine() | {"load_before": load_before, "load_after": os.getloadavg()[0]}
    FIGURES.write_text(json.dumps(document, indent=1) + "\n")
    return document


def measure(name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks", "--here", name]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            answer, _ = process.communicate(timeout=WITHIN)
        except subprocess.TimeoutExpired:
            _interrupt(process)
            return {"error": f"took longer than {WITHIN:.0f} s"}
    return json.loads(answer) if process.returncode == 0 else {"error": f"exit code {process.returncode}"}


def _interrupt(process: "subprocess.Popen[str]") -> None:
    """Send SIGINT, so that the process can clean up, and kill it after a timeout."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(CLEAN_UP)
    except subprocess.TimeoutExpired:
        process.kill()


def measure_here(name: str) -> dict[str, Any]:
    """Run a measurement in this process, on the repository's disk: a temporary directory may be in memory."""
    module, _, function = MEASUREMENTS[name].partition(":")
    work: Callable[[Path], Awaitable[dict[str, Any]]] = getattr(import_module(module), function)
    with TemporaryDirectory(prefix="bench-", dir=BUILD) as directory:
        return asyncio.run(_run(work, Path(directory)))


async def _run(work: Callable[[Path], Awaitable[dict[str, Any]]], directory: Path) -> dict[str, Any]:
    return await work(directory)


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


if __name__ == "__main__":
    sys.exit(main())
