"""Functions of values: readers of agents' answers, snapshots by name, ladders of models, outcomes of test commands."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.model import events as e
from segue.model.agents import AgentConfiguration, Choices, Limits, McpServer, Verify
from segue.model.errors import CheckpointNotFound
from segue.model.ids import CheckpointId, SessionId, TaskId
from segue.model.plan import Task
from segue.model.status import Role
from segue.orchestrator.opening import SystemClock
from segue.orchestrator.requests.secrets import refuse_secrets
from segue.orchestrator.requests.snapshots import meant
from segue.orchestrator.run.capacity_meter import ladder_of
from segue.orchestrator.run.fixer import Advice, read_advice
from segue.orchestrator.run.plan_proposals import read_proposal
from segue.orchestrator.run.reviews import Verdict, read_verdict
from segue.orchestrator.run.spending import SpendingMeter
from segue.orchestrator.run.test_runs import judged
from segue.orchestrator.settling.run_ends import RunStopped
from segue.protocol.accounts import sessions_of, total
from segue.snapshot.extraction import Unreadable
from segue.state.fold import WorkflowState, fold
from segue.workspace.processes import CompletedRun
from tests.orchestrator.test_planning import fenced
from tests.state.test_fold import records


def test_the_machines_clock_tells_sleep_from_waking() -> None:
    slept = 0.0
    clock = SystemClock(awake=lambda: time.monotonic() - slept)
    before = clock.now() - timedelta(seconds=1)
    assert clock.away_since(before) == timedelta()
    slept += 30
    assert clock.away_since(before) == timedelta()
    slept += 3600
    assert 3629 < clock.away_since(before).total_seconds() < 3631
    slept += 600
    assert 4229 < clock.away_since(before).total_seconds() < 4231
    assert clock.away_since(clock.now()) == timedelta()


def test_what_is_said_of_everybody_does_not_take_over_from_compaction_nor_from_a_window_that_is_known() -> None:
    said = {"fork": 0.5, "warn": 0.6, "known_window": 10_000}
    claude = AgentConfiguration(name="claude", command=("claude",), compacts=True)
    ladder = ladder_of(said, claude, "claude-opus-4-5")
    assert (ladder.warn, ladder.fork, ladder.known_window) == (0.6, None, 200_000)
    assert ladder_of(said, claude, None).known_window == 10_000
    assert ladder_of(said, replace(claude, capacity={"fork": 0.7}), None).fork == 0.7


def test_the_window_of_a_model_is_found_by_the_name_that_the_agent_gives_it() -> None:
    agent = AgentConfiguration(name="any", command=("any",), model_capacity={"best": {"warn": 0.5}})
    ladder = ladder_of({}, agent, "best", "claude-opus-4-5-20251101")
    assert (ladder.warn, ladder.known_window) == (0.5, 200_000)


def test_advice_is_read_from_whatever_stands_around_it() -> None:
    told = 'Here it is:\n```json\n{"verdict": "rewind", "advice": "Start over."}\n```'
    assert read_advice(told) == Advice(verdict="rewind", advice="Start over.")
    assert isinstance(read_advice('{"verdict": "perhaps", "advice": ""}'), Unreadable)
    assert isinstance(read_advice("No idea."), Unreadable)


def test_a_verdict_is_read_from_whatever_stands_around_it() -> None:
    told = 'Well.\n```json\n{"approved": false, "severity": null, "comments": ["x"]}\n```\nBye.'
    assert read_verdict(told) == Verdict(approved=False, severity="low", comments=("x",))


@pytest.mark.parametrize("told", ["fine", '{"approved": "perhaps"}', '{"approved": false, "comments": []}'])
def test_a_verdict_that_says_nothing_is_asked_for_again(told: str) -> None:
    assert isinstance(read_verdict(told), Unreadable)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Let me just begin.", "The answer holds no JSON object with tasks."),
        (fenced([]), "It has no tasks."),
        (fenced([{"id": "a"}]), "tasks.0.title: Field required"),
        (fenced([{"id": "a", "title": " "}]), "Task 'a' has no title."),
        (fenced([{"id": "an id", "title": "A"}]), "'an id' is no id."),
        (fenced([{"id": "@plan", "title": "A"}]), "'@plan' is no id."),
        (fenced([{"id": "a", "title": "A"}] * 2), "Two tasks of the plan are called 'a'."),
        (fenced([{"id": "done", "title": "A"}]), "Two tasks of the plan are called 'done'."),
        (fenced([{"id": "a", "title": "A", "depends_on": ["z"]}]), "Task 'a' depends on 'z'"),
        (
            fenced([{"id": "a", "title": "A", "depends_on": ["b"]}, {"id": "b", "title": "B", "depends_on": ["a"]}]),
            "circle",
        ),
        (fenced([{"id": f"t{n}", "title": "A"} for n in range(4)]), "It has 4 tasks, and there may be 3 at most."),
    ],
)
def test_a_proposal_is_checked_by_code(answer: str, reason: str) -> None:
    read = read_proposal(answer, [Task(id=TaskId("done"), title="Done")], 3)
    assert isinstance(read, Unreadable)
    assert reason in read.reason


IDS = [CheckpointId(f"ckpt-2026-01-0{day}-{number:03d}") for day, number in ((3, 12), (2, 7), (2, 2))]


@pytest.mark.parametrize(
    ("name", "number"),
    [("latest", 0), ("previous", 1), (IDS[2], 2), ("007", 1), ("7", 1), ("012", 0), ("12", 0)],
)
def test_a_snapshot_is_meant_by_its_id_its_number_or_its_place(name: str, number: int) -> None:
    assert meant(IDS, name) == IDS[number]


@pytest.mark.parametrize("name", ["1", "ckpt", "0", "last", "-007"])
def test_a_name_that_no_snapshot_has_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(CheckpointNotFound, match=f"This workflow has no snapshot '{name}'"):
        meant(IDS, name)


@pytest.mark.parametrize("name", ["GIT_AUTHOR_NAME", "KEYBOARD_LAYOUT", "MAX_TOKENS", "MONKEY", "tokenizer"])
def test_a_name_that_only_sounds_like_a_secret_is_taken(name: str) -> None:
    server = McpServer(name="x", command=("serve", f"--{name}=something"), variables={name: "something"})
    refuse_secrets(Choices(mcp_servers=(server,)))


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


# ── the meter of a run ─────────────────────────────────────────────────────────────────────────────

TODAY = datetime(2026, 11, 18, tzinfo=UTC)
WRITER = SessionId("writer")
HELPERS = tuple(map(SessionId, ("reviewer", "fixer")))
counts = st.none() | st.integers(0, 1000)
reports = st.builds(
    e.UsageReported,
    context_tokens=counts,
    input_tokens=counts,
    output_tokens=counts,
    cached_tokens=counts,
    cost_usd=st.none() | st.integers(0, 64).map(lambda eighths: eighths / 8),
    model=st.sampled_from([None, "claude-opus-5-5", "nobody-knows"]),
)
heard = st.lists(reports, max_size=5)


def folded(*told: tuple[SessionId, Any]) -> WorkflowState:
    # Prices are of a day.
    return fold(replace(record, at=TODAY) for record in records(*told))


@given(heard, heard, heard, heard)
def test_a_meter_equals_the_account(before: list[Any], first: list[Any], second: list[Any], after: list[Any]) -> None:
    begun = [(WRITER, e.SessionCreated(number=1, agent="any", parent=None)), *((WRITER, each) for each in before)]
    helped: list[tuple[SessionId, Any]] = []
    for helper, said in zip(HELPERS, (first, second), strict=True):
        helped.append((helper, e.SessionCreated(number=0, agent="any", parent=WRITER, role=Role.REVIEWER)))
        helped += [(helper, each) for each in said]
    now = [*helped, *((WRITER, each) for each in after)]

    meter = SpendingMeter(WRITER)
    meter.fill(Limits(), folded(*begun))
    for session_id, event in now:
        if isinstance(event, e.UsageReported):
            meter.add(session_id, event, TODAY)

    assert meter.used == total(each.account for each in sessions_of(folded(*begun, *now)))


@pytest.mark.parametrize("limits", [Limits(tokens=100), Limits(usd=2.0)])
def test_a_meter_that_is_empty_pays_for_no_further_turn(limits: Limits) -> None:
    meter = SpendingMeter(WRITER)
    meter.fill(limits, folded((WRITER, e.SessionCreated(number=1, agent="any", parent=None))))
    meter.pay_for_a_turn(TODAY)
    meter.add(WRITER, e.UsageReported(input_tokens=90, output_tokens=10, cost_usd=2.0), TODAY + timedelta(hours=1))
    with pytest.raises(RunStopped, match="the budget is"):
        meter.pay_for_a_turn(TODAY)
    meter.allow(Limits(tokens=101, usd=2.5))
    meter.pay_for_a_turn(TODAY)
