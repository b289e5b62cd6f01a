"""The tests that need an agent's real program, which the development environment does not have."""

import os
import re
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
    least: int
    """How many of them must pass: a suite that was not run has shown nothing."""
    skips: frozenset[str] = frozenset()
    """What the tests may say where they skip: that the agent does not play, or offer, what a check is about."""
    what: str = "the tests with its real program"


_ALMOST_ALL = frozenset(f"its agent does not play {act}" for act in ("SayLate", "Mistake"))
SUITES = {
    "claude-sdk": Suite(
        "SEGUE_CLAUDE_PROGRAM",
        lambda: str(programs.claude_code()),
        ("tests/drivers/test_conformance.py", "tests/drivers/test_claude_code.py", "-k", "claude and not stand"),
        least=35,
        skips=_ALMOST_ALL,
        what="the driver's conformance suite",
    ),
    "auggie": Suite(
        "SEGUE_AUGGIE_PROGRAM",
        lambda: programs.install("auggie")[0],
        ("tests/drivers/test_conformance.py", "tests/drivers/test_auggie_itself.py", "-k", "auggie"),
        least=25,
        # It tells no tokens, and of an error the number and not the words.
        skips=_ALMOST_ALL | {f"its agent does not {what}" for what in ("play Fail", "play Use", "offer: fork")},
        what="the driver's conformance suite and the tests of its own",
    ),
    "amp": Suite(
        "SEGUE_AMP_PROGRAM", lambda: programs.install("amp")[0], ("tests/drivers/test_amp_itself.py",), least=9
    ),
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
    lines = ended.stdout.strip().splitlines()
    problems = list(_problems(suite, ended.returncode, lines))
    if problems:
        sys.stderr.write(ended.stdout)
    summary = "; ".join([lines[-1] if lines else ended.stderr.strip(), *problems])
    return Examined(not problems, summary, suite.what, tuple(_sentences(lines)))


def _problems(suite: Suite, code: int, lines: list[str]) -> Iterator[str]:
    """What keeps the tests from showing anything; that they did not fail is not enough."""
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
    """A test's name is a sentence."""
    for line in lines:
        if line.startswith("PASSED ") and "_itself.py::" in line:
            yield line.partition("::test_")[2].replace("_", " ").replace("[", ": ").rstrip("]")
