"""Tests that were not run have shown nothing."""

from pathlib import Path

import pytest

from certify import suite
from certify.suite import Examined, Suite, examine

PASSES = "def test_passes() -> None: pass\n"
FAILS = "def test_fails() -> None: assert False\n"
SKIPS = "import pytest\ndef test_skips() -> None: pytest.skip('{}')\n"
DECLARED = "its agent does not play Mistake"


def examined(root: Path, tests: str, monkeypatch: pytest.MonkeyPatch, least: int = 1) -> Examined:
    (file := root / "test_itself.py").write_text(tests)
    own = Suite("NOBODY_READS_THIS", str, (str(file),), least=least, skips=frozenset({DECLARED}))
    monkeypatch.setitem(suite.SUITES, "mine", own)
    found = examine("mine")
    assert found is not None
    return found


def test_what_passed_but_for_what_was_declared_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(tmp_path, PASSES + SKIPS.format(DECLARED), monkeypatch)
    assert found.passed and found.summary.startswith("1 passed, 1 skipped in ")


@pytest.mark.parametrize(
    ("tests", "least", "problem"),
    [
        (SKIPS.format(DECLARED), 1, "; 0 passed where 1 must"),
        (PASSES, 2, "; 1 passed where 2 must"),
        (PASSES + SKIPS.format("Claude Code is not here"), 1, "; skipped because Claude Code is not here"),
        (PASSES + FAILS, 1, "; exit code 1"),
    ],
    ids=["all skipped", "too few", "another reason", "a failure"],
)
def test_anything_else_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tests: str, least: int, problem: str
) -> None:
    found = examined(tmp_path, tests, monkeypatch, least)
    assert not found.passed and found.summary.endswith(problem)


def test_an_agent_without_tests_of_its_own_is_not_examined() -> None:
    assert examine("codex") is None
