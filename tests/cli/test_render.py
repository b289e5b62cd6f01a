from dataclasses import replace
from typing import Any, get_args

import pytest

from segue.cli.follow import fit
from segue.cli.output import block, moment, plain, reason, table
from segue.cli.render import MILESTONES, TABLE, Names, line
from segue.model import events as e
from segue.model.agents import Limits
from segue.model.checkpoint import CheckpointType
from segue.model.codec import adapter
from segue.model.events import PermissionRequested as Asked
from segue.model.events import UsageReported as Used
from segue.model.findings import ReviewerFeedback, TestState
from segue.model.ids import CheckpointId, PromptId, Seq, TaskId
from segue.model.plan import Plan, Task
from segue.model.status import Failure, Purpose, Trigger, Way
from segue.model.status import WorkflowStatus as W
from tests.server.standin_service import NOON

NAMES = Names("add-parser", {"t1": "Write the parser"})

# Steps of the machinery that a reader of the log learns from other lines.
SILENT = {"run.started", "standing", "token.captured", "prompt.sent", "prompt.acknowledged"}


def shown(event: Any, **options: Any) -> str | None:
    fields = adapter(type(event)).dump_python(event, mode="json")
    return line({"kind": event.kind, "event": fields}, NAMES, **options)


TASK_DONE = e.CheckpointCreated(
    checkpoint_id="ckpt-2",
    type=CheckpointType.TASK_COMPLETE,
    snapshot=False,
    clean_boundary=True,
    commit=None,
    after=1,
)


def ran(*failing: str, passed: bool) -> e.TestsRan:
    tests = TestState(phase="unknown", failing_tests=failing)
    return e.TestsRan(task_id="t1", command="pytest", passed=passed, tests=tests, exit_code=0 if not failing else 1)


def test_every_kind_of_event_has_a_line_or_is_silent_on_purpose() -> None:
    kinds = {kind.__dataclass_fields__["kind"].default for kind in get_args(e.Event)}
    assert set(TABLE) | SILENT == kinds
    assert not set(TABLE) & SILENT
    assert set(MILESTONES) < set(TABLE)


def test_unknown_kinds_and_unknown_fields_are_passed_over() -> None:
    assert line({"kind": "from.the.future", "event": {}}, NAMES) is None
    assert line({"kind": "task.started", "event": {"task": "t1"}}, NAMES) is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (e.TaskFailed(task_id="t1", attempt="a", reason="no luck"), "✗ Write the parser: no luck"),
        (e.TaskFailed(task_id="t9", attempt="a", reason=""), "✗ t9"),
        (
            Asked(request_id="r", call_id="c", title="Delete old files?", tool="delete", options=()),
            "? Delete old files?",
        ),
        (e.PermissionAnswered(request_id="r", outcome="denied", by="timeout"), "  denied by timeout"),
        (e.AgentExited(code=0), None),
        (e.AgentExited(code=3, detail="ouch"), "The agent's process ended with code 3: ouch"),
        (Used(context_tokens=12000, window=200000), "Context: 12,000 of 200,000 tokens"),
        (Used(), None),
        (
            e.PauseRequested(trigger=Trigger.PAUSE, reason="lunch", force_at=NOON),
            f"Pause requested: lunch (at the end of the task, at the latest {moment(NOON.isoformat())})",
        ),
        (
            e.CheckpointCreated(
                checkpoint_id="ckpt-1",
                type=CheckpointType.PAUSE,
                snapshot=True,
                clean_boundary=True,
                commit=None,
                after=1,
            ),
            "Snapshot ckpt-1",
        ),
        (TASK_DONE, "Checkpoint ckpt-2"),
        (e.LimitsChanged(limits=Limits(usd=2.5)), "Limits: usd 2.5"),
        (
            e.LimitsChanged(limits=Limits(tasks=0, seconds=0, tokens=4_000_000, usd=5)),
            "Limits: tasks none, seconds none, tokens 4,000,000, usd 5",
        ),
        (e.LimitsChanged(limits=Limits(), wait_for_quota=True), "Limits: none; a used-up quota is waited for"),
        (
            e.RetryScheduled(step="t1", attempt=2, of=3, at=NOON, reason="It went away."),
            f"↻ It went away: attempt 2 of 3 at {moment(NOON.isoformat())}. Call it off with: segue pause add-parser",
        ),
        (
            e.RetryScheduled(step="t1", attempt=1, of=1, at=NOON, reason="the fixer advises: Do it.", rewind=True),
            f"↻ the fixer advises: Do it: a new beginning at {moment(NOON.isoformat())}, from the last checkpoint and "
            "with a new plan. Call it off with: segue pause add-parser",
        ),
        (
            e.FixerAdvised(step="t1", verdict="escalate", advice="Look at it."),
            "The fixer says (escalate): Look at it.",
        ),
        (
            e.FixerAdvised(step="t1", verdict="escalate", advice=""),
            "A second agent was asked and gave no advice that could be used",
        ),
        (ran(passed=True), "✓ Tests pass"),
        (ran("test_a", "test_b", passed=True), "✓ Only tests fail that were expected to: test_a, test_b"),
        (ran("test_a", passed=False), "✗ Tests fail (test_a)"),
        (ran(passed=False), "✗ Tests fail"),
    ],
)
def test_an_event_becomes_a_line(event: Any, expected: str | None) -> None:
    assert shown(event) == expected


def test_whoever_follows_is_told_of_snapshots_alone() -> None:
    assert shown(TASK_DONE, writers=MILESTONES) is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (e.RunQueued(way=Way.FIRST, reason="new"), None),
        (e.RunQueued(way=Way.FIRST, reason="new", purpose=Purpose.TALK), "The agent is started, to talk"),
        (
            e.RunQueued(
                way=Way.NATIVE, reason="it can", prices=(e.Price(way=Way.NATIVE, possible=True, tokens=40_000),)
            ),
            "Goes on in the same conversation (40,000 tokens): it can",
        ),
        (
            e.RunQueued(way=Way.HISTORY, reason="it forgot", purpose=Purpose.TALK),
            "The agent is brought back to talk, in a new conversation that is told the history: it forgot",
        ),
        (
            e.WayChanged(before=Way.FORK, after=Way.CONTEXT, reason="it forgot"),
            "! Goes on in a new conversation that begins with a compiled context instead: it forgot",
        ),
        (
            e.ContextCarried(prompt_id="p", way=Way.HISTORY, text="x" * 1200),
            "It is told what was said before (1,200 characters)",
        ),
        (
            e.TurnFailed(prompt_id="p", failure=Failure.QUOTA, message="no more", reset_at=NOON),
            f"! The agent could not go on (quota): no more; full again at {moment(NOON.isoformat())}",
        ),
        (e.Compacted(), "The agent summarised its own conversation"),
        (
            e.Compacted(tokens_before=9000, tokens_after=500),
            "The agent summarised its own conversation (9,000 → 500 tokens)",
        ),
    ],
)
def test_how_an_agent_comes_back_and_what_fails_becomes_a_line(event: Any, expected: str | None) -> None:
    assert shown(event) == expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            e.SessionImported(agent="claude", file="/x.jsonl", sha256="", size=9, lines=1200, unread_lines=0),
            "Imported from /x.jsonl (1,200 things said or done)",
        ),
        (
            e.SessionImported(
                agent="codex", file="/x", sha256="", size=9, lines=3, unread_lines=2, began="monday", ended="friday"
            ),
            "Imported from /x (3 things said or done, held monday to friday); lines that could not be read: 2",
        ),
        (e.UserSpoke(text="Boil\nit."), "User: Boil it."),
        (e.AgentSummarised(text="It boiled."), "The agent summarised its own conversation: It boiled."),
        (e.ToolProgressed(call_id="c", output="half\n"), "  … half"),
        (e.FilesChanged(changes=(("a.py", "created"), ("b.py", "deleted"))), "  created a.py, deleted b.py"),
        (e.ToolCalled(call_id="c", title="Bash", tool="execute", input={"command": "make"}), "→ Bash: make"),
        (e.ToolCalled(call_id="c", title="`make`", tool="execute", input={"command": "make"}), "→ `make`"),
        (e.ToolCalled(call_id="c", title="shell", tool="execute", input={"command": ["make"]}), "→ shell"),
        (e.WorkLocation(directory="/x"), None),
    ],
)
def test_a_conversation_held_elsewhere_becomes_lines(event: Any, expected: str | None) -> None:
    assert shown(event) == expected


def test_columns_are_aligned() -> None:
    assert table([("a", "1", "x"), ("bbb", "100", "")], right=(1,)) == ["a      1  x", "bbb  100"]
    assert table([]) == []


def test_a_question_tells_whoever_follows_how_to_answer() -> None:
    question = Asked(request_id="r", call_id="c", title="Delete old files?", tool="delete", options=())
    answer = "Answer with: segue approve add-parser, or: segue reject add-parser"
    assert shown(question, writers=MILESTONES) == f"? Delete old files?\n  {answer}"


def test_chatter_is_not_a_milestone() -> None:
    assert shown(Used(context_tokens=1, window=2), writers=MILESTONES) is None


def test_what_an_agent_writes_cannot_move_the_cursor() -> None:
    assert plain("one\x1b[2Jtwo\r\nthree\x07\u202efour") == "one [2Jtwo three four"
    assert plain("x" * 300, 10) == "x" * 9 + "…"


def test_of_a_long_reason_the_end_is_shown_too() -> None:
    files = "  File x\n" * 90
    shown = reason(f"The agent's process ended: Traceback\n{files}ModuleNotFoundError: No module named 'y'")
    assert shown.startswith("The agent's process ended: Traceback File x") and len(shown) == 200
    assert shown.endswith("File x ModuleNotFoundError: No module named 'y'")
    assert reason("It ended:\n no more.") == "It ended: no more."


def test_several_lines_of_an_agent_stay_as_they_are_but_for_what_moves_the_cursor() -> None:
    assert block("one\r\n\ttwo\x1b[2J\n") == "one\n\ttwo [2J\n"


def test_a_line_is_cut_to_the_columns_it_has() -> None:
    assert fit("short", 10) == "short"
    assert fit("exactly10!", 10) == "exactly10!"
    assert fit("longer than ten", 10) == "longer th…"
    assert fit("漢字漢字", 5) == "漢…"


def test_a_plan_ticks_what_was_done_before_and_counts_what_is_new() -> None:
    tasks = (Task(id=TaskId("t1"), title="Lexer"), Task(id=TaskId("t2"), title="Parser", depends_on=(TaskId("t1"),)))
    proposed = e.PlanProposed(prompt_id=PromptId("p"), plan=Plan(tasks=tasks), done=(TaskId("t1"),))
    assert shown(proposed, writers=MILESTONES) == "Plan of 1 new task:\n  1. ✓ Lexer\n  2. Parser (after t1)"
    assert shown(proposed) == "Plan: 1. ✓ Lexer; 2. Parser (after t1)"
    whole = shown(replace(proposed, done=()), writers=MILESTONES)
    assert whole is not None and whole.startswith("Plan of 2 tasks:\n  1. Lexer\n")


def test_the_question_about_a_task_is_printed_once() -> None:
    asked = e.PersonAsked(task_id=TaskId("t1"), question="“Lexer” fails. Is it done all the same?")
    moved = e.WorkflowMoved(before=W.IN_PROGRESS, after=W.REVIEW, reason="“Lexer” fails", trigger=Trigger.PAUSE)
    assert shown(asked, writers=MILESTONES) == "? “Lexer” fails. Is it done all the same?"
    assert shown(moved, writers=MILESTONES) == "Needs a look"
    lost = replace(moved, reason="the conversation is lost", trigger=Trigger.CRASH)
    assert shown(lost, writers=MILESTONES) == "Needs a look: the conversation is lost"


def test_what_was_undone_stands_below_the_going_back() -> None:
    names = {name: CheckpointId(f"ckpt-{name}") for name in ("1", "2")}
    back = e.WorkflowRewound(
        checkpoint_id=names["1"], after=Seq(4), saved=names["2"], tasks={}, undone=("A plan was proposed.",)
    )
    told = "Taken back to ckpt-1; what was there before is ckpt-2\n  - Undone: A plan was proposed."
    assert shown(back) == told


@pytest.mark.parametrize(
    ("persona", "who"), [("security", "security reviewer"), ("code reviewer", "code reviewer"), ("user", "user")]
)
def test_a_review_says_who_gave_it(persona: str, who: str) -> None:
    feedback = ReviewerFeedback(review_id="r", reviewer_persona=persona, timestamp=NOON, approved=True, severity="low")
    assert shown(e.ReviewGiven(task_id=TaskId("t1"), round=1, feedback=feedback)) == f"Review 1: the {who} approves"
