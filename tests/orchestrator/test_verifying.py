"""Which outcomes of a test command let a task pass."""

from datetime import UTC, datetime

import pytest

from segue.model.agents import Verify
from segue.model.ids import TaskId
from segue.model.plan import Task
from segue.orchestrator.run.test_runs import judged
from segue.workspace.processes import CompletedRun

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PYTEST = (
    "FAILED tests/test_a.py::test_sum - assert 1 == 2\nFAILED tests/test_a.py::test_total[3]\n2 failed, 5 passed in 1s"
)
GO = "--- FAIL: TestSum (0.00s)\nFAIL\nFAIL\texample.org/sum\t0.1s"
UNITTEST = "FAIL: test_sum (tests.test_a.SumTest)\n\nRan 3 tests in 0.1s\n\nFAILED (failures=1)"
MANY = "\n".join(f"FAILED tests/test_a.py::test_{number}" for number in range(40)) + "\n40 failed in 1s"


def verdict(output: str, *expected: str, code: int | None = 1):
    done = CompletedRun(code, output, timed_out=code is None)
    task = Task(id=TaskId("a"), title="Do A", expected_failures=expected)
    return judged(done, Verify(command="test", seconds=5), task, NOW)


def test_what_ends_well_passes_and_is_green() -> None:
    ran = verdict("7 passed in 1s", code=0).ran
    assert (ran.passed, ran.tests.phase, ran.tests.passing, ran.tests.failing) == (True, "green", 7, 0)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (PYTEST, ("test_sum", "test_total")),
        (PYTEST, ("tests/test_a.py",)),
        (PYTEST, ("tests/test_a.py::test_sum", "test_total[3]")),
        (GO, ("TestSum",)),
        (UNITTEST, ("test_sum",)),
        (MANY, ("tests/test_a.py",)),
    ],
)
def test_failures_that_were_expected_pass_and_are_red(output: str, expected: tuple[str, ...]) -> None:
    ran = verdict(output, *expected).ran
    assert (ran.passed, ran.tests.phase, ran.unexpected) == (True, "red", ())
    assert ran.tests.expected_failures == expected


@pytest.mark.parametrize(
    ("output", "expected", "unexpected"),
    [
        (PYTEST, ("test_sum",), ("tests/test_a.py::test_total[3]",)),
        # Half a word excuses nothing.
        (PYTEST, ("test_sum", "test_tot"), ("tests/test_a.py::test_total[3]",)),
        (GO, (), ("TestSum",)),
        # It counts more than it names.
        ("FAILED tests/test_a.py::test_sum\n3 failed in 1s", ("test_sum",), ()),
        # It names nothing.
        ("Segmentation fault", ("test_sum",), ()),
    ],
)
def test_what_was_not_expected_fails(output: str, expected: tuple[str, ...], unexpected: tuple[str, ...]) -> None:
    ran = verdict(output, *expected).ran
    assert (ran.passed, ran.tests.phase, ran.unexpected) == (False, "unknown", unexpected)


def test_tests_that_were_ended_fail_whatever_they_said_before() -> None:
    verified = verdict("FAILED tests/test_a.py::test_sum\n1 failed", "test_sum", code=None)
    assert not verified.ran.passed and verified.ran.exit_code is None
    assert verified.reason == "the tests did not finish within 5 seconds"


def test_the_end_of_a_long_output_is_what_the_agent_gets() -> None:
    verified = verdict("\n".join(f"line {number}" for number in range(10_000)))
    assert verified.tail.endswith("line 9999") and len(verified.tail) < 10_000
