"""The tests that need an agent's real program, which the development environment does not have."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from certify import installed_programs

ROOT = Path(__file__).parent.parent
WITHIN = 1200.0


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests of an agent, and the variable that contains the path of its program."""

    variable: str
    program: Callable[[], str]
    tests: tuple[str, ...]
    least: int
    """Least number of passed tests, so that an empty run is not a success."""
    skips: frozenset[str] = frozenset()
    """Allowed reasons of skipped tests: the agent does not support the subject of the check."""
    what: str = "the tests with its real program"


_ALMOST_ALL = frozenset(f"its agent does not play {act}" for act in ("SayLate", "Mistake"))
SUITES = {
    "claude-sdk": Suite(
        "SEGUE_CLAUDE_PROGRAM",
        lambda: str(installed_programs.claude_code()),
        ("tests/drivers/test_conformance.py", "tests/drivers/test_claude_code.py", "-k", "claude and not stand"),
        least=35,
        skips=_ALMOST_ALL,
        what="the driver's conformance suite",
    ),
    "auggie": Suite(
        "SEGUE_AUGGIE_PROGRAM",
        lambda: installed_programs.install("auggie")[0],
        ("tests/drivers/test_conformance.py", "tests/drivers/test_auggie_itself.py", "-k", "auggie"),
        least=25,
        # It reports no tokens, and of an error only the number.
        skips=_ALMOST_ALL | {f"its agent does not {what}" for what in ("play Fail", "play Use", "offer: fork")},
        what="the driver's conformance suite and the tests of its own",
    ),
    "amp": Suite(
        "SEGUE_AMP_PROGRAM",
        lambda: installed_programs.install("amp")[0],
        ("tests/drivers/test_amp_itself.py",),
        least=9,
    ),
}


@dataclass(frozen=True, slots=True)
class Examined:
    """Result of the tests."""

    passed: bool
    summary: str
    what: str = "the driver's conformance suite"
    seen: tuple[str, ...] = ()
    """Names of its own passed tests, as sentences."""


def examine(agent: str) -> Examined | None:
    """Run an agent's tests; return None if it has none."""
    if (suite := SUITES.get(agent)) is None:
        return None
    words = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:xdist", "-p", "no:cacheprovider", *suite.tests]
    environment = {**os.environ, suite.variable: suite.program(), "PATH": installed_programs.path()}
    ended = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WITHIN, check=False
    )
    lines = ended.stdout.strip().splitlines()
    problems = list(_problems(suite, ended.returncode, lines))
    if problems:
        sys.stderr.write(ended.stdout)
    summary = "; ".join([lines[-1] if lines else ended.stderr.strip(), *problems])
    return Examined(not problems, summary, suite.what, tuple(_sentences(lines)))


def _problems(suite: Suite, code: int, lines: list[str]) -> Iterator[str]:
    """Yield the reasons for which the run is not a success: too few passed tests, unexpected skips."""
    if code:
        yield f"exit code {code}"
    passed = sum(line.startswith("PASSED ") for line in lines)
    if passed < suite.least:
        yield f"{passed} passed where {suite.least} must"
    said = [found[1] for line in lines if (found := re.fullmatch(r"SKIPPED \[\d+\] .*?:\d+: (.*)", line))]
    for reason in dict.fromkeys(said):
        if reason not in suite.skips:
            yield f"skipped because {reason}"


def _sentences(lines: list[str]) -> Iterator[str]:
    """Yield the names of passed tests as sentences."""
    for line in lines:
        if line.startswith("PASSED ") and "_itself.py::" in line:
            yield line.partition("::test_")[2].replace("_", " ").replace("[", ": ").rstrip("]")
