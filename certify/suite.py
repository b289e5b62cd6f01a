"""The tests that need an agent's real program, which the development environment does not have."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from certify import programs

ROOT = Path(__file__).parent.parent
WITHIN = 1200.0
TESTS = {"claude-sdk": ("tests/drivers/test_conformance.py", "tests/drivers/test_claude_code.py", "-k", "claude")}


@dataclass(frozen=True, slots=True)
class Examined:
    """How the tests ended."""

    passed: bool
    summary: str


def examine(agent: str) -> Examined | None:
    """Run them; None where there are none."""
    if agent not in TESTS:
        return None
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *TESTS[agent]]
    environment = {**os.environ, "SEGUE_CLAUDE_PROGRAM": str(programs.claude_code())}
    ended = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WITHIN, check=False
    )
    if ended.returncode:
        sys.stderr.write(ended.stdout)
    lines = ended.stdout.strip().splitlines()
    return Examined(ended.returncode == 0, lines[-1] if lines else ended.stderr.strip())
