"""What the successor reads."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.model.checkpoint import FileChange, GitState, TaskMark
from segue.model.events import AgentMessage, ToolCalled, ToolFinished
from segue.model.facts import ReviewFact, SessionFacts
from segue.model.ids import CheckpointId, TaskId, WorkflowId
from segue.model.plan import Issue, TaskStatus
from segue.model.transcript import Said, UserSaid, WorkLocation
from segue.resume.budget import budget_for
from segue.resume.compiler import compile_context, document
from segue.resume.handover import Handover
from segue.resume.tokens import tokens
from segue.snapshot.facts import facts_of
from tests.recordings import DIRECTORY, edited, facts, ran
from tests.recordings.kettle import kettle_lines

HANDOVER = Handover(
    workflow_id=WorkflowId("wf-1"),
    session_number=2,
    session_count=2,
    issue=Issue(title="Stop at the boiling point", description="It goes on for ever."),
    tasks=(
        TaskMark(id=TaskId("a"), title="Write the test", status=TaskStatus.COMPLETED),
        TaskMark(id=TaskId("b"), title="Make it pass", status=TaskStatus.PENDING),
    ),
    next_task=TaskId("b"),
    pause_reason="the context was full",
    snapshot_id=CheckpointId("cp-1"),
)


def sections(text: str) -> list[str]:
    return [line.removeprefix("### ").split(" (#")[0] for line in text.split("\n") if line.startswith("### ")]


def test_compile_minimal_context() -> None:
    text = compile_context(facts(UserSaid(text="Build a boat that floats."))).text
    assert sections(text) == ["Where it stands", "Original request", "Rules of the user", "Key decisions", "Errors"]
    assert "Build a boat that floats." in text
    assert "(no rules stated)" in text
    assert "(no significant decisions recorded)" in text
    assert "(no errors encountered)" in text


def test_compile_a_workflow_in_the_order_of_the_seed() -> None:
    text = compile_context(SessionFacts(), handover=HANDOVER).text
    expected = ["Original issue", "Rules of the user", "Plan status", "Key decisions", "Errors", "What to do next"]
    assert sections(text) == expected
    assert "You are resuming workflow wf-1 (session 2 of 2)." in text
    assert "  ✓ [a] Write the test" in text
    assert "  ○ [b] Make it pass" in text
    assert 'Continue from task "Make it pass". The previous session ended because: the context was full.' in text


def test_the_closing_note_names_only_what_the_agent_can_call() -> None:
    command = "SEGUE_HOME=/data segue context wf-1 --expand 12"
    assert "NOTE" not in compile_context(SessionFacts(), handover=HANDOVER).text
    assert command in compile_context(SessionFacts(), handover=replace(HANDOVER, retrieval=(command,))).text


def test_the_current_task_is_named_only_where_there_is_one() -> None:
    assert "Current task" not in compile_context(SessionFacts(), handover=HANDOVER).text
    current = replace(HANDOVER, current_task=TaskId("b"))
    assert "- Current task: b" in compile_context(SessionFacts(), handover=current).text


def test_compile_a_plan_that_is_all_open_or_all_done() -> None:
    open_, done = (
        replace(HANDOVER, tasks=(TaskMark(id=TaskId("a"), title="T", status=status),), next_task=None, pause_reason="")
        for status in (TaskStatus.PENDING, TaskStatus.COMPLETED)
    )
    assert "(none yet)" in compile_context(SessionFacts(), handover=open_).text
    assert "(all complete)" in compile_context(SessionFacts(), handover=done).text
    told = compile_context(SessionFacts(), handover=done).text
    assert "All tasks are done." in told and "The previous session ended" not in told


def test_a_plan_that_is_too_long_tells_what_comes_next() -> None:
    tasks = tuple(TaskMark(id=TaskId(f"t{n}"), title="Dig " * 20, status=TaskStatus.PENDING) for n in range(60))
    text = compile_context(SessionFacts(), 700, replace(HANDOVER, tasks=tasks, next_task=TaskId("t0"))).text
    assert "- Total tasks: 60" in text
    assert "[t9]" in text
    assert "… and 50 more" in text


def test_an_issue_is_told_word_for_word_up_to_half_of_the_budget() -> None:
    description = "Print each line as `name=value`, sorted, with exit code 3 on a clash. " * 12
    told = compile_context(
        SessionFacts(), 2000, replace(HANDOVER, issue=Issue(title="T", description=description))
    ).text
    assert description.strip() in told
    cut = replace(HANDOVER, issue=Issue(title="T", description=description * 20))
    shortened = compile_context(SessionFacts(), 2000, cut)
    assert shortened.tokens <= 2000
    assert "more characters of the request" in shortened.text


def test_a_long_request_is_shortened_along_its_headings_and_never_within_a_sentence() -> None:
    parts = [f"## Part {n}\n\nThe first sentence of part {n}. " + f"More about part {n}. " * 60 for n in range(12)]
    text = compile_context(facts(UserSaid(text="\n\n".join(parts))), 1200).text
    request = text.split("### Original request")[1].split("### ")[0]
    for n in range(12):
        assert f"## Part {n}" in request
    sentences = [line for line in request.split("\n") if line.startswith(("The first", "More"))]
    assert sentences and all(line.endswith(".") for line in sentences)


def test_a_greeting_is_no_request() -> None:
    text = compile_context(facts(UserSaid(text="hi"), UserSaid(text="Build a boat that floats on the lake."))).text
    assert "### Original request (#2)\nBuild a boat" in text


def test_an_attached_file_is_named_with_its_place() -> None:
    known = facts(
        UserSaid(text="Build it."), UserSaid(text="Use this plan."), UserSaid(text="[attached file: plan.md]")
    )
    assert "[attached file: plan.md, #3]" in compile_context(known).text


def test_compile_context_with_decisions() -> None:
    text = compile_context(facts(AgentMessage(text="I decided to glue the hull rather than nailing it."))).text
    assert "- [approach] I decided to glue the hull rather than nailing it. (#1)" in text


def test_a_decision_that_was_taken_back_says_so() -> None:
    chosen = AgentMessage(text="I decided to use copper plates for the bottom of the kettle, because they spread heat.")
    text = compile_context(facts(chosen, AgentMessage(text="I reverted the copper plates, the kettle got heavy."))).text
    assert "(superseded in #2)" in text


def test_compile_context_with_errors() -> None:
    broken = ran("1", "make hull", "error: no glue in the workshop", failed=True)
    fixed = ran("2", "make mast", "error: no wood in the workshop", failed=True) + ran("3", "make mast")
    text = compile_context(facts(*broken, *fixed, *ran("4", "make sail"))).text
    assert "⚠ UNRESOLVED: `make hull`: error: no glue in the workshop" in text
    assert "✓ `make mast`: error: no wood in the workshop" in text
    assert text.index("UNRESOLVED") < text.index("✓ `make mast`")


def test_an_error_stands_with_the_sentence_that_explains_it() -> None:
    known = facts(
        *ran("1", "make hull", "error: undefined reference to glueHull", failed=True),
        AgentMessage(text="The undefined reference comes from glueHull: it is missing because hull.c was not linked."),
        *ran("2", "make hull"),
    )
    text = compile_context(known).text
    assert "fixed: The undefined reference comes from glueHull" in text


def test_compile_context_with_test_state() -> None:
    red = [
        *edited("1", "tests/test_a.py", "def test_b(): ..."),
        *ran("2", "pytest -q", "FAILED tests/test_a.py::test_b"),
    ]
    text = compile_context(facts(*red)).text
    assert "UNRESOLVED" not in text
    assert "- Phase: red" in text
    assert "- Failing tests: tests/test_a.py::test_b" in text
    assert "- Expected failures (red phase): tests/test_a.py::test_b" in text


def test_a_passed_run_says_how_many_edits_came_after_it() -> None:
    known = facts(*ran("1", "pytest -q", "3 passed"), *edited("2", "a.py", "x"), *edited("3", "b.py", "y"))
    assert "The last test run, `pytest -q`, passed (3 passed), before 2 later edits." in compile_context(known).text


def test_an_outcome_that_a_pipe_hides_is_unknown() -> None:
    text = compile_context(facts(*ran("1", "make test | tail -1", "done"))).text
    assert "`make test`, has an unknown outcome" in text
    assert "succeeded" not in text and "passed" not in text


def test_compile_context_with_reviewer_feedback() -> None:
    review = ReviewFact(reviewer="Ada", severity="high", approved=False, comments=("one", "two", "three", "four"))
    done, agreed = replace(review, reviewer="Bob", addressed=True), replace(review, reviewer="Eve", approved=True)
    text = compile_context(SessionFacts(), handover=replace(HANDOVER, feedback=(review, done, agreed))).text
    assert "From Ada (high):\n  - one\n  - two\n  - three\n  … and 1 more" in text
    assert "Bob" not in text and "Eve" not in text


def test_git_is_told_as_it_is_now_and_divergence_comes_first() -> None:
    changes = (FileChange(path="x", action="modified"),)
    committed = (FileChange(path="y", action="created"),)
    git = GitState(branch="b", head="c0ffee", base=None, changes=changes, committed=committed)
    live = replace(HANDOVER, git=git, git_read_at="12:00", divergence=("src/hull.py changed",))
    text = compile_context(SessionFacts(), handover=live).text
    assert sections(text)[0] == "Changed since the snapshot"
    assert "- Branch: b (read at 12:00)" in text
    assert "- Files modified: 2" in text
    assert "- Uncommitted changes: yes" in text


def test_what_is_left_out_is_stated_with_its_size() -> None:
    said = [AgentMessage(text=f"The plank {n} was painted in colour {n} because it had no colour.") for n in range(200)]
    text = compile_context(facts(UserSaid(text="Paint."), *said), 600).text
    assert " more (about " in text


def test_what_the_user_said_over_and_over_is_told_once() -> None:
    again = UserSaid(text="Return findings, ordered by severity.")
    text = compile_context(facts(UserSaid(text="Build a boat."), again, UserSaid(text="Go on."), again)).text
    said = text.split("### What the user said since")[1].split("###")[0]
    assert said.count(again.text) == 1


def test_a_short_answer_stands_with_its_question() -> None:
    known = facts(
        UserSaid(text="Store the settings of the boat."),
        AgentMessage(text="Two ways:\n\n1. One JSON file per boat.\n2. A table in the database.\n\nWhich one?"),
        UserSaid(text="2"),
    )
    assert "2. A table in the database." in compile_context(known).text


def test_an_agreement_that_is_not_in_the_code_comes_with_what_was_proposed() -> None:
    known = facts(
        UserSaid(text="Add an export."),
        AgentMessage(text="I propose the flag `--as-json` with exit code 4 for an empty export. Shall I?"),
        UserSaid(text="yes"),
    )
    text = compile_context(known).text
    agreed = text.split("### Agreed, and not in the code yet")[1].split("###")[0]
    assert "`--as-json`" in agreed and "exit code 4" in agreed


def test_an_agreement_that_was_carried_out_is_history() -> None:
    known = facts(
        UserSaid(text="Add an export."),
        AgentMessage(text="I propose the flag `--as-json`. Shall I?"),
        UserSaid(text="yes"),
        *edited("1", "cli.py", 'parser.add_argument("--as-json")'),
        UserSaid(text="Now describe it in the manual."),
    )
    assert "Agreed, and not in the code yet" not in compile_context(known).text


def test_a_renamed_file_has_both_names() -> None:
    known = facts(WorkLocation(directory=DIRECTORY), *ran("1", "git mv src/old.py src/new.py"))
    assert "M src/new.py (moved from src/old.py)" in compile_context(known).text


def test_a_result_that_nobody_spoke_of_is_told() -> None:
    known = facts(
        UserSaid(text="Find the limit."),
        AgentMessage(text="Let me ask the service for its largest batch:"),
        *ran("1", "curl -s http://localhost:9/limits", "max_batch_rows: 731"),
        *edited("2", "a.py", "x"),
    )
    assert "max_batch_rows: 731" in compile_context(known).text


def test_the_report_of_a_sub_agent_is_told() -> None:
    call = ToolCalled(call_id="1", title="Task", tool="delegate", input={"description": "look"})
    report = "The parser drops the last line because the buffer of 4096 bytes is flushed too early."
    done = ToolFinished(call_id="1", status="completed", output=report)
    assert report in compile_context(facts(UserSaid(text="Look."), call, done)).text


@pytest.mark.parametrize("budget", [500, 1000, 4000])
def test_little_of_the_budget_is_left_when_there_is_more_to_tell(budget: int) -> None:
    planks = [f"The plank {n} of the deck was painted in colour {n * 7}, and dried." for n in range(600)]
    context = compile_context(facts(UserSaid(text="Paint."), *(AgentMessage(text=each) for each in planks)), budget)
    assert context.left_out
    assert 0.93 * budget <= context.tokens <= budget


def test_a_made_up_session_can_be_taken_over(tmp_path: Path) -> None:
    text = compile_context(facts_of(kettle_lines(tmp_path)), 1000).text
    for needed in (
        "use the interrupt instead",
        "M src/boil_controller.py",
        "[~] Describe the change for users",
        "`python -m pytest tests/test_boil.py`, passed",
        "error: src/parts.py:3: undefined name waterLevelSensor",
        "- Branch: stop-at-boil",
        "1a2b3c4 Stop at the boiling point",
    ):
        assert needed in text


def test_the_document_has_the_source_of_each_line(tmp_path: Path) -> None:
    context = compile_context(facts_of(kettle_lines(tmp_path)), 1000)
    found = document(context)
    assert found["context"] == context.text
    assert [section.name for section in context.sections][:2] == ["state", "request"]
    lines = [line for section in context.sections for line in section.lines if section.name in ("said", "story")]
    assert lines and all(line.sources for line in lines)


@pytest.mark.parametrize(
    ("window", "budget"), [(None, 12_000), (32_000, 4_000), (200_000, 12_000), (1_000_000, 16_000)]
)
def test_the_budget_follows_the_window_of_the_successor(window: int | None, budget: int) -> None:
    assert budget_for(window) == budget


words = st.text(alphabet="abcdeXYZ_/. \n", max_size=300)
things: st.SearchStrategy[Said] = st.one_of(
    st.builds(UserSaid, text=words),
    st.builds(AgentMessage, text=words),
    st.builds(lambda text, path: edited("1", path, text)[0], words, words),
)


@given(st.lists(things, max_size=40), st.integers(min_value=400, max_value=5000))
def test_a_context_takes_no_more_than_its_budget_and_is_always_the_same(said: list[Said], budget: int) -> None:
    known = facts(*said)
    context = compile_context(known, budget)
    assert tokens(context.text) <= budget or context.text.startswith("The user's rules and the request")
    assert compile_context(known, budget) == context
