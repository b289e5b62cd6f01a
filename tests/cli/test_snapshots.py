import json
from dataclasses import replace
from typing import Any

import pytest

from segue.cli.output import moment
from segue.model.checkpoint import FileChange, GitState, OpenCall, Usage
from segue.model.findings import TestState
from segue.model.ids import CheckpointId, PromptId, Seq, TaskId
from segue.model.plan import TaskStatus
from segue.model.snapshots import Message, Snapshot
from segue.model.status import Trigger
from segue.resume.handover import PARTS
from tests.server.standin_service import DECISION, ERROR, EXAM, FINDINGS, ID, NOON, REVIEW, SNAPSHOT, Standin

AT = moment(NOON.isoformat())
FIXED = replace(ERROR, id="error-8", error_message="TypeError: two is not one", resolution="fixed")
TESTS = TestState(
    phase="red",
    failing_tests=("test_a", "test_b"),
    expected_failures=("test_b",),
    last_test_run_at=NOON,
    last_test_command="pytest -q",
    last_test_output_summary="2 failed, 3 passed in 0.10s",
    passing=3,
    failing=2,
)
TORN = Snapshot(
    checkpoint=replace(
        SNAPSHOT,
        id=CheckpointId("ckpt-2026-01-02-004"),
        trigger=Trigger.CRASH,
        reason="",
        clean_boundary=False,
        git=GitState(
            branch="segue/add-parser",
            head="b" * 40,
            base="a" * 40,
            changes=(FileChange(path="b.py", action="modified", staged=True),),
            committed=(FileChange(path="a.py", action="created"),),
        ),
        commit="c" * 40,
        left_out=(".env",),
        open_calls=(OpenCall(call_id="1", title="Run make all", tool="execute"),),
        in_flight_prompt=PromptId("prompt-1"),
        usage=Usage(context_tokens=12_000, input_tokens=1_200, output_tokens=300, turns=1, tool_calls=2, cost_usd=0.5),
    ),
    findings=replace(
        FINDINGS, tests=TESTS, decisions=(DECISION,), errors=(FIXED, ERROR), feedback=(REVIEW,), problem="No model."
    ),
)
PAUSED = Snapshot(checkpoint=SNAPSHOT, findings=FINDINGS)


@pytest.fixture(autouse=True)
def two(service: Standin) -> None:
    service.kept = [TORN, PAUSED]


def test_snapshots_are_listed_in_columns(segue: Any, service: Standin) -> None:
    service.kept[0] = replace(TORN, findings=None)
    assert segue("snapshots", "list").stdout == (
        f"snapshot             session  trigger  {'taken':19}  done  left  exam  boundary\n"
        f"ckpt-2026-01-02-001        1  pause    {AT}     1     1   90%  clean\n"
        f"ckpt-2026-01-02-004        1  crash    {AT}     1     1     -  torn\n"
    )
    listed = json.loads(segue("snapshots", "list", "-w", "add-parser", "--json").stdout)
    assert [each["id"] for each in listed["snapshots"]] == [TORN.checkpoint.id, SNAPSHOT.id]


def test_a_workflow_without_a_snapshot_says_how_to_get_one(segue: Any, service: Standin) -> None:
    service.kept = []
    assert segue("snapshots", "list").stdout == (
        "add-parser has no snapshot yet; a pause makes one: segue pause add-parser\n"
    )
    shown = segue("snapshots", "show")
    assert (shown.exit_code, shown.stderr) == (
        1, "segue: This workflow has no snapshot yet.\n  A pause makes one: segue pause\n",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["001", "1", "previous", SNAPSHOT.id])
def test_a_snapshot_is_shown_on_a_page(segue: Any, name: str) -> None:
    assert segue("snapshots", "show", name).stdout == (
        "Snapshot ckpt-2026-01-02-001 of add-parser\n"
        "  stopped  pause: lunch (between two tasks)\n"
        f"  taken    {AT}, in session 1\n"
        "  tasks    1 done, 1 remaining\n"
        "           ✓ [t1] Write the parser\n"
        "           ○ [t2] Test the parser  (next)\n"
        "  git      unknown\n"
        "  used     0 turns, 0 tool calls, 0 tokens in, 0 out\n"
        "  exam     90% of what matters is in the context made from it (20 of 4,000 tokens)\n"
        "           missing: a changed file: a.py\n"
    )


def test_a_torn_snapshot_shows_what_was_left_open(segue: Any) -> None:
    assert segue("snapshots", "show").stdout == (
        "Snapshot ckpt-2026-01-02-004 of add-parser\n"
        "  stopped      crash (in the middle of the work)\n"
        f"  taken        {AT}, in session 1\n"
        "  tasks        1 done, 1 remaining\n"
        "               ✓ [t1] Write the parser\n"
        "               ○ [t2] Test the parser  (next)\n"
        "  git          segue/add-parser at bbbbbbbbbbbb, from aaaaaaaaaaaa\n"
        "               created a.py (committed)\n"
        "               modified b.py (staged)\n"
        "               the whole worktree is kept as cccccccccccc\n"
        "               not kept, because they may be secrets: .env\n"
        "  tests        red, 3 passing, 2 failing\n"
        f"               pytest -q ({AT})\n"
        "               ✗ test_a\n"
        "               ✗ test_b (expected)\n"
        "  decisions    library: Use re rather than a generator because it is there.\n"
        "  open errors  OSError: the disk is full (make all)\n"
        "  reviews      Security (not approved, high): Check the length.; And the type.\n"
        "  open calls   Run make all (nobody saw it end)\n"
        "  on its way   prompt-1 (it is not known whether the agent got it)\n"
        "  used         1 turn, 2 tool calls, 1,200 tokens in, 300 out, $0.50; 12,000 tokens in its window\n"
        "  exam         90% of what matters is in the context made from it (20 of 4,000 tokens)\n"
        "               missing: a changed file: a.py\n"
        "  ! problem    No model.\n"
    )


def test_a_long_page_is_cut_and_says_so(segue: Any, service: Standin) -> None:
    many = tuple(replace(DECISION, description=f"Choice {number}.") for number in range(15))
    service.kept[0] = replace(TORN, findings=replace(FINDINGS, decisions=many))
    page = segue("snapshots", "show").stdout
    assert "… and 5 more" in page and "Choice 14." in page and "Choice 4." not in page


def test_what_an_agent_wrote_cannot_move_the_cursor(segue: Any, service: Standin) -> None:
    evil = replace(DECISION, description="Use \x1b[2Jre.")
    service.kept[0] = replace(TORN, findings=replace(FINDINGS, decisions=(evil,)))
    assert "\x1b" not in segue("snapshots", "show").stdout
    service.messages = (Message(seq=Seq(1), at=NOON, session_id=None, role="agent", text="a\x1b[2Jb"),)
    assert "\x1b" not in segue("snapshots", "show", "--part", "messages").stdout


def test_decisions_are_told_in_full(segue: Any, service: Standin) -> None:
    back = replace(DECISION, description="Use lark.", rationale="", alternatives_considered=(), superseded_by=Seq(12))
    service.kept[0] = replace(TORN, findings=replace(FINDINGS, decisions=(back, replace(DECISION, by="user"))))
    assert segue("snapshots", "show", "004", "-w", ID, "--part", "decisions").stdout == (
        f"{AT}  library: Use lark. (taken back)\n"
        "    task: t1\n"
        "    event: 7\n"
        "    taken back in event: 12\n"
        f"{AT}  library, the user's: Use re rather than a generator because it is there.\n"
        "    because: it is there\n"
        "    instead of: a generator\n"
        "    task: t1\n"
        "    event: 7\n"
    )


def test_errors_reviews_tests_and_git_are_told_in_full(segue: Any) -> None:
    def part(name: str) -> str:
        return segue("snapshots", "show", "--part", name).stdout

    assert part("errors") == (
        f"{AT}  fixed: TypeError: two is not one\n"
        "    kind: OSError\n    context: make all\n    task: t1\n    event: 9\n"
        f"{AT}  unresolved: OSError: the disk is full\n"
        "    kind: OSError\n    context: make all\n    task: t1\n    event: 9\n"
    )
    assert part("reviewer-feedback") == (
        f"{AT}  Security (not approved, high)\n    Check the length.\n    And the type.\n"
    )
    assert part("tests") == (
        f"red, 3 passing, 2 failing\npytest -q ({AT})\n✗ test_a\n✗ test_b (expected)\n2 failed, 3 passed in 0.10s\n"
    )
    assert part("git-changes") == (
        f"branch segue/add-parser\ncommit {'b' * 40}, from {'a' * 40}\n"
        "created a.py (committed)\nmodified b.py (staged)\n"
        f"the whole worktree is kept as {'c' * 40}\nnot kept, because it may be a secret: .env\n"
    )


def test_messages_are_told_with_who_said_them(segue: Any, service: Standin) -> None:
    service.messages = (
        Message(seq=Seq(3), at=NOON, session_id=None, role="user", text="Go.\nNow.", task_id=TaskId("t1")),
        Message(seq=Seq(5), at=NOON, session_id=None, role="agent", text="Gone."),
    )
    assert segue("snapshots", "show", "--part", "messages").stdout == (
        f"── user, task t1  {AT}  (event 3)\nGo.\nNow.\n── agent  {AT}  (event 5)\nGone.\n"
    )


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_a_hand_over_is_shown_as_text_and_as_json(segue: Any, service: Standin, part: str) -> None:
    service.kept[0] = replace(PAUSED, checkpoint=replace(SNAPSHOT, problem="There is no worktree yet."))
    command = ("snapshots", "show", SNAPSHOT.id, "-w", ID, "--part", part)
    text = "! There is no worktree yet.\n" if part == "git-changes" else "nothing\n"
    assert segue(*command).stdout == text
    assert segue(*command, "--json").exit_code == 0


def test_a_part_that_there_is_not_is_wrong_use(segue: Any) -> None:
    result = segue("snapshots", "show", "--part", "poems")
    assert result.exit_code == 2
    assert "A snapshot has no part 'poems'. It has: decisions, errors, git-changes," in result.stderr


@pytest.mark.parametrize("name", ["../x", "a b", "?"])
def test_what_cannot_be_a_name_is_refused_at_once(segue: Any, name: str) -> None:
    for command in (("show", name), ("diff", name), ("diff", "latest", name)):
        result = segue("snapshots", *command)
        assert (result.exit_code, result.stderr) == (
            1, f"segue: No snapshot is called {name!r}.\n  List them with: segue snapshots list add-parser\n",
        )  # fmt: skip


def test_an_unknown_snapshot_gets_a_sentence_and_what_to_do(segue: Any) -> None:
    result = segue("snapshots", "show", "77")
    assert (result.exit_code, result.stderr) == (
        1, "segue: This workflow has no snapshot '77'.\n  `segue snapshots list` lists those it has.\n",
    )  # fmt: skip
    assert json.loads(segue("snapshots", "show", "77", "--json").stdout)["error"]["code"] == "checkpoint_not_found"


def test_a_snapshot_is_shown_as_json(segue: Any) -> None:
    shown = json.loads(segue("snapshots", "show", "001", "--json").stdout)
    assert (shown["checkpoint"]["reason"], shown["findings"]["exam"]["score"]) == ("lunch", EXAM.score)


def test_two_snapshots_are_compared(segue: Any, service: Standin) -> None:
    first, second = SNAPSHOT.tasks
    service.kept[0] = replace(
        TORN,
        checkpoint=replace(TORN.checkpoint, tasks=(first, replace(second, status=TaskStatus.IN_PROGRESS))),
        findings=replace(FINDINGS, decisions=(DECISION,)),
    )
    service.kept[1] = replace(
        PAUSED,
        checkpoint=replace(SNAPSHOT, usage=Usage(cost_usd=0.2)),
        findings=replace(FINDINGS, errors=(ERROR,)),
    )
    told = segue("snapshots", "diff").stdout
    assert told == (
        "ckpt-2026-01-02-001 → ckpt-2026-01-02-004 of add-parser\n"
        "tasks\n"
        "  ~ [t2] Test the parser: pending → in progress\n"
        "decisions\n"
        "  + Use re rather than a generator because it is there. (library)\n"
        "errors\n"
        "  - OSError: the disk is full (unresolved)\n"
        "files\n"
        "  + a.py (created, committed)\n"
        "  + b.py (modified, staged)\n"
        "usage\n"
        "  + context tokens (12,000)\n"
        "  ~ input tokens: 0 → 1,200 (+1,200)\n"
        "  ~ output tokens: 0 → 300 (+300)\n"
        "  ~ cost usd: 0.2 → 0.5 (+0.3)\n"
        "  ~ turns: 0 → 1 (+1)\n"
        "  ~ tool calls: 0 → 2 (+2)\n"
    )
    assert segue("snapshots", "diff", "1", "latest", "-w", ID).stdout == told


def test_a_snapshot_does_not_differ_from_itself(segue: Any) -> None:
    assert segue("snapshots", "diff", "4", "4").stdout == (
        "ckpt-2026-01-02-004 → ckpt-2026-01-02-004 of add-parser\nnothing changed\n"
    )
    assert json.loads(segue("snapshots", "diff", "4", "latest", "--json").stdout)["changes"] == []


def test_the_first_snapshot_has_none_before_it(segue: Any, service: Standin) -> None:
    service.kept = [PAUSED]
    result = segue("snapshots", "diff")
    assert (result.exit_code, result.stderr) == (1, "segue: This workflow has one snapshot, and none before it.\n")
