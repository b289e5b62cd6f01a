"""The user's own tests, run by Segue after each task."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import anyio

from segue.model.agents import Verify
from segue.model.events import TestsRan
from segue.model.findings import TestPhase, TestState
from segue.model.plan import Task
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.runtime.concurrency import alongside, cancel_after
from segue.snapshot.facts.outcomes import every_failing_test, failing_targets, test_summary
from segue.snapshot.findings import counts_in
from segue.workspace.processes import PART, CompletedRun, run_guarded

LAST_LINES = 40
LONGEST_TAIL = 6_000
MOST_KEPT = 50
"""Names of failing tests that are written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Result of the tests; the end of their output is for the agent alone."""

    ran: TestsRan
    tail: str
    reason: str


async def run_tests(lease: Lease, environment: Mapping[str, str], verify: Verify, task: Task) -> Verified:
    """Run the command in the worktree and judge its result; at the end of its time the whole tree of processes is
    ended."""
    limit = anyio.CancelScope()
    async with alongside(lambda: cancel_after(lease.services.clock, verify.seconds, limit)):
        done = await run_guarded(
            ["/bin/sh", "-c", verify.command],
            directory=Path(lease.workflow.worktree),
            environment=environment,
            execution=f"{lease.attempt}{PART}tests",
            timeout=limit,
        )
    return judged(done, verify, task, lease.services.clock.now())


def judged(done: CompletedRun, verify: Verify, task: Task, at: datetime) -> Verified:
    """Judge a test run: the task may count as done if nothing failed, or only expected tests."""
    failing = () if done.code == 0 else every_failing_test(done.output) or failing_targets(done.output)
    summary = test_summary(done.output)
    counts = counts_in(summary)
    unexpected = tuple(name for name in failing if not _is_expected(name, task.expected_failures))
    # Where the runner counts more failures than it names, it is not known whether the others were expected.
    named = bool(failing) and len(failing) >= counts.get("failing", 0)
    as_planned = named and not unexpected and not done.timed_out
    phase: TestPhase = "green" if done.code == 0 else "red" if as_planned else "unknown"
    tests = TestState(
        phase=phase,
        failing_tests=failing[:MOST_KEPT],
        expected_failures=task.expected_failures,
        last_test_run_at=at,
        last_test_command=verify.command,
        last_test_output_summary=summary,
        passing=counts.get("passing"),
        failing=counts.get("failing", 0 if counts else None),
        pending=counts.get("pending"),
    )
    ran = TestsRan(
        task_id=task.id,
        command=verify.command,
        passed=done.code == 0 or as_planned,
        tests=tests,
        unexpected=unexpected[:MOST_KEPT],
        exit_code=done.code,
    )
    tail = "\n".join(done.output.splitlines()[-LAST_LINES:])[-LONGEST_TAIL:]
    return Verified(ran=ran, tail=tail, reason=_reason(done, verify, unexpected))


def _is_expected(name: str, expected: Sequence[str]) -> bool:
    """Return True if a test's name matches an expected one at whole identifiers; runners print names at different
    lengths."""
    return any(
        re.search(rf"(?<!\w){re.escape(each)}(?!\w)", name) or re.search(rf"(?<!\w){re.escape(name)}\Z", each)
        for each in expected
    )


def _reason(done: CompletedRun, verify: Verify, unexpected: Sequence[str]) -> str:
    """Describe in one clause why a test run failed: timeout, unexpected failures or exit code."""
    if done.timed_out:
        return f"the tests did not finish within {verify.seconds:g} seconds"
    if unexpected:
        return f"tests fail: {', '.join(unexpected[:5])}{' …' if len(unexpected) > 5 else ''}"
    return f"the tests end with exit code {done.code}"
