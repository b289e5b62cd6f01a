"""The tests that need an agent's real program, which the development environment does not have."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from certify import programs

ROOT = Path(__file__).parent.parent
WITHIN = 1200.0


@dataclass(frozen=True, slots=True)
class Suite:
    """Some tests, and the variable that tells them where the program is."""

    variable: str
    program: Callable[[], str]
    tests: tuple[str, ...]
    what: str = "the tests with its real program"


SUITES = {
    "claude-sdk": Suite(
        "SEGUE_CLAUDE_PROGRAM",
        lambda: str(programs.claude_code()),
        ("tests/drivers/test_conformance.py", "tests/drivers/test_claude_code.py", "-k", "claude"),
        "the driver's conformance suite",
    ),
    "auggie": Suite(
        "SEGUE_AUGGIE_PROGRAM",
        lambda: programs.install("auggie")[0],
        ("tests/drivers/test_conformance.py", "tests/drivers/test_auggie_itself.py", "-k", "auggie"),
        "the driver's conformance suite and the tests of its own",
    ),
    "amp": Suite("SEGUE_AMP_PROGRAM", lambda: programs.install("amp")[0], ("tests/drivers/test_amp_itself.py",)),
}


@dataclass(frozen=True, slots=True)
class Examined:
    """How the tests ended."""

    passed: bool
    summary: str
    what: str = "the driver's conformance suite"
    seen: tuple[str, ...] = ()
    """What its own tests say."""


def examine(agent: str) -> Examined | None:
    """Run them; None where there are none."""
    if (suite := SUITES.get(agent)) is None:
        return None
    words = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:xdist", "-p", "no:cacheprovider", *suite.tests]
    environment = {**os.environ, suite.variable: suite.program(), "PATH": programs.path()}
    ended = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WITHIN, check=False
    )
    if ended.returncode:
        sys.stderr.write(ended.stdout)
    lines = ended.stdout.strip().splitlines()
    summary = lines[-1] if lines else ended.stderr.strip()
    return Examined(ended.returncode == 0, summary, suite.what, tuple(_sentences(lines)))


def _sentences(lines: list[str]) -> Iterator[str]:
    """A test's name is a sentence."""
    for line in lines:
        if line.startswith("PASSED ") and "_itself.py::" in line:
            yield line.partition("::test_")[2].replace("_", " ").replace("[", ": ").rstrip("]")
