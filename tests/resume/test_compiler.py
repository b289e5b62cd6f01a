"""What the successor reads."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.model.checkpoint import FileChange, GitState, TaskMark
from segue.model.events import AgentMessage
from segue.model.facts import ReviewFact, SessionFacts
from segue.model.ids import CheckpointId, TaskId, WorkflowId
from segue.model.plan import Issue, TaskStatus
from segue.model.transcript import Said, UserSaid, WorkLocation
from segue.resume.compiler import compile_context
from segue.resume.exam import compile_examined, examine, probes
from segue.resume.handover import Handover
from segue.resume.tokens import tokens
from segue.snapshot.facts import facts_of
from tests.recordings import DIRECTORY, edited, facts, ran, todo
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
    return [line.removeprefix("### ") for line in text.split("\n") if line.startswith("### ")]


def test_compile_minimal_context() -> None:
    text = compile_context(facts(UserSaid(text="Build a boat that floats."))).text
    assert sections(text) == ["Original request"]
    assert "Build a boat that floats." in text


def test_compile_a_workflow_in_the_order_of_the_seed() -> None:
    text = compile_context(SessionFacts(), handover=HANDOVER).text
    assert sections(text) == ["Original issue", "Plan status", "What to do next"]
    assert "You are resuming workflow wf-1 (session 2 of 2)." in text
    assert "  ✓ [a] Write the test" in text
    assert "  ○ [b] Make it pass" in text
    assert 'Continue from task "Make it pass". The previous session ended because: the context was full.' in text
    assert "GET /api/workflows/wf-1/snapshots/cp-1/decisions" in text


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
    text = compile_context(SessionFacts(), 600, replace(HANDOVER, tasks=tasks, next_task=TaskId("t0"))).text
    assert "- Total tasks: 60" in text
    assert "[t9]" in text
    assert "… and 50 more" in text


@pytest.mark.parametrize(("length", "cut"), [(500, False), (501, True)])
def test_an_issue_is_cut_only_when_it_is_too_long(length: int, cut: bool) -> None:
    issue = Issue(title="T", description="x" * length)
    text = compile_context(SessionFacts(), handover=replace(HANDOVER, issue=issue)).text
    assert ("x" * 500 + "…" in text) is cut


def test_compile_context_with_decisions() -> None:
    text = compile_context(facts(AgentMessage(text="I decided to glue the hull rather than nailing it."))).text
    assert "- [approach] I decided to glue the hull rather than nailing it. (#1)" in text


def test_compile_context_with_errors() -> None:
    broken = ran("1", "make hull", "error: no glue in the workshop", failed=True)
    fixed = ran("2", "make mast", "error: no wood in the workshop", failed=True) + ran("3", "make mast")
    text = compile_context(facts(*fixed, *broken)).text
    assert "⚠ UNRESOLVED: error: no glue in the workshop" in text
    assert "✓ cleared: error: no wood in the workshop" in text
    assert text.index("UNRESOLVED") < text.index("cleared")


def test_compile_context_with_test_state() -> None:
    red = [
        *edited("1", "tests/test_a.py", "def test_b(): ..."),
        *ran("2", "pytest -q", "FAILED tests/test_a.py::test_b"),
    ]
    text = compile_context(facts(*red)).text
    assert "- Phase: red\n- Last run: `pytest -q` → FAILED" in text
    assert "- Failing tests: tests/test_a.py::test_b" in text
    assert "- Expected failures (red phase): tests/test_a.py::test_b" in text
    assert "TDD state" not in compile_context(facts(UserSaid(text="Build a boat."))).text


def test_compile_context_with_reviewer_feedback() -> None:
    review = ReviewFact(reviewer="Ada", severity="high", approved=False, comments=("one", "two", "three", "four"))
    done = replace(review, reviewer="Bob", addressed=True)
    text = compile_context(SessionFacts(), handover=replace(HANDOVER, feedback=(review, done))).text
    assert "From Ada (high):\n  - one\n  - two\n  - three\n  … and 1 more" in text
    assert "Bob" not in text


def test_git_is_told_as_it_is_now_and_divergence_comes_first() -> None:
    git = GitState(branch="b", head="c0ffee", base=None, changes=(FileChange(path="x", action="modified"),))
    live = replace(HANDOVER, git=git, git_read_at="12:00", divergence=("src/hull.py changed",))
    text = compile_context(SessionFacts(), handover=live).text
    assert sections(text)[0] == "Changed since the snapshot"
    assert "- Branch: b (read at 12:00)" in text
    assert "- Uncommitted changes: yes" in text


def test_what_is_left_out_is_said() -> None:
    said = [UserSaid(text=f"Wish number {n}: paint the boat in colour {n} and dry it in the sun.") for n in range(40)]
    text = compile_context(facts(*said), 200).text
    assert "… " in text
    assert " more\n" in text


def test_lines_of_one_file_stand_indented_under_its_name() -> None:
    read = ran("1", "cat src/hull.py", "def set_keel_depth(boat): # how deep the keel of a boat hangs\n")
    said = AgentMessage(text="The mast is measured by mast_height, which is wrong when the wind blows from behind.")
    text = compile_context(facts(*read, said)).text
    assert "\nsrc/hull.py:\n · def set_keel_depth(boat): # how deep the keel of a boat hangs\n- The mast" in text


def test_what_the_user_said_over_and_over_is_told_once() -> None:
    again = UserSaid(text="Return findings only, ordered by severity.")
    text = compile_context(facts(UserSaid(text="Build a boat."), again, UserSaid(text="Go on."), again)).text
    assert text.count(again.text) == 1


def test_short_answers_give_way_to_what_says_something() -> None:
    said = [(f"Paint plank number {n} in colour {n}, and let it dry.", f"yes, {n}") for n in range(20)]
    text = compile_context(facts(*(UserSaid(text=text) for both in said for text in both)), 400).text
    assert "- yes, 19" in text
    assert text.count("- Paint") == 19


def test_a_file_that_was_read_and_changed_is_told_once() -> None:
    here = WorkLocation(directory=DIRECTORY)
    known = facts(here, *ran("1", "cat README.md", "# Boat"), *edited("2", f"{DIRECTORY}/README.md", "# Boats"))
    text = compile_context(known).text
    assert "M …/kettle/README.md" in text
    assert "R README.md" not in text


@pytest.mark.parametrize("budget", [500, 1000, 4000])
def test_little_of_the_budget_is_left_when_there_is_more_to_tell(budget: int) -> None:
    planks = [[f"Paint plank {n} in colour {m}, and let it dry before the next." for m in range(9)] for n in range(60)]
    context = compile_context(facts(*(UserSaid(text=" ".join(each)) for each in planks)), budget)
    assert context.left_out
    assert 0.97 * budget <= context.tokens <= budget


def test_names_are_told_in_the_words_that_explain_them(tmp_path: Path) -> None:
    text = compile_context(facts_of(kettle_lines(tmp_path)), 1000).text
    line = next(line for line in text.split("\n") if "onBoilInterrupt" in line)
    assert "sensor" in line or "describe" in line


def test_a_made_up_session_can_be_taken_over(tmp_path: Path) -> None:
    context, grade = compile_examined(facts_of(kettle_lines(tmp_path)), 1000)
    assert grade.score > 0.9
    for needed in (
        "use the interrupt instead",
        "M src/boil_controller.py",
        "[~] in progress: Describe the change for users",
        "`python -m pytest tests/test_boil.py` → passed",
        "⚠ UNRESOLVED: error: src/parts.py:3: undefined name waterLevelSensor",
        "- Branch: stop-at-boil",
        "1a2b3c4 Stop at the boiling point",
    ):
        assert needed in context.text


def test_the_exam_names_what_is_missing() -> None:
    known = facts(UserSaid(text="Build a boat."), todo(Glue_the_hull_with_resin="pending"))
    grade = examine("Build a boat.", probes(known))
    assert grade.by_category == {"request": 1.0, "tasks": 0.0}
    assert [probe.about for probe in grade.missing] == ["an open to-do: Glue the hull with resin"]
    assert grade.score == 0.5


def test_the_exam_repairs_a_context(tmp_path: Path) -> None:
    known = facts_of(kettle_lines(tmp_path, rounds=40))
    questions = probes(known)
    plain = examine(compile_context(known, 400).text, questions)
    context, repaired = compile_examined(known, 400)
    assert repaired.score >= plain.score
    assert examine(context.text, questions) == repaired
    assert context.tokens <= 400


words = st.text(alphabet="abcdeXYZ_/. \n", max_size=300)
things: st.SearchStrategy[Said] = st.one_of(
    st.builds(UserSaid, text=words),
    st.builds(AgentMessage, text=words),
    st.builds(lambda text, path: edited("1", path, text)[0], words, words),
)


@given(st.lists(things, max_size=40), st.integers(min_value=100, max_value=5000))
def test_a_context_never_takes_more_than_its_budget_and_is_always_the_same(said: list[Said], budget: int) -> None:
    known = facts(*said)
    context = compile_context(known, budget)
    assert tokens(context.text) <= budget
    assert compile_context(known, budget) == context
