"""The tests that the specification names, and where they are here."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

NAMED = {
    "test_extract_decisions_from_messages": "snapshot/test_extraction.py::test_decisions_are_extracted_from_messages",
    "test_extract_errors_from_messages": "snapshot/test_extraction.py::test_errors_are_extracted_from_messages",
    "test_handles_empty_messages": "orchestrator/test_extracting.py::test_without_messages_nobody_is_asked",
    "test_handles_no_decisions": ("snapshot/test_extraction.py::test_no_decisions_and_no_errors_leave_the_lists_empty"),
    "test_compile_minimal_context": "resume/test_compiler.py::test_compile_minimal_context",
    "test_compile_context_with_decisions": "resume/test_compiler.py::test_compile_context_with_decisions",
    "test_compile_context_with_errors": "resume/test_compiler.py::test_compile_context_with_errors",
    "test_compile_context_with_test_state": "resume/test_compiler.py::test_compile_context_with_test_state",
    "test_compile_context_with_reviewer_feedback": (
        "resume/test_compiler.py::test_compile_context_with_reviewer_feedback"
    ),
    "test_create_snapshot_from_state": (
        "orchestrator/test_studies.py::test_a_snapshot_is_made_from_the_state_it_was_taken_in"
    ),
    "test_serialize_snapshot_to_json": (
        "snapshot/test_forms.py::test_a_checkpoint_loses_nothing_on_its_way_through_json"
    ),
    "test_deserialize_snapshot_from_json": (
        "snapshot/test_forms.py::test_findings_lose_nothing_on_their_way_through_json"
    ),
    "test_pause_workflow_creates_snapshot": (
        "orchestrator/test_workflows.py::test_pausing_twice_gives_the_same_snapshot"
    ),
    "test_pause_waits_for_task_boundary": (
        "orchestrator/test_workflows.py::test_a_pause_waits_for_the_task_boundary_and_resume_goes_on_with_the_next_task"
    ),
    "test_resume_workflow_restores_state": (
        "orchestrator/test_going_back.py::test_files_tasks_and_what_is_known_are_those_of_the_snapshot"
    ),
    "test_resume_continues_from_next_task": (
        "orchestrator/test_workflows.py::test_a_pause_waits_for_the_task_boundary_and_resume_goes_on_with_the_next_task"
    ),
    "test_multiple_pause_resume_cycles": (
        "orchestrator/test_many_breaks.py::test_work_that_is_paused_after_every_task_is_done_once_and_in_one_session"
    ),
    "test_auto_pause_on_exhaustion": "orchestrator/test_capacity.py::test_auto_pause_on_exhaustion",
    "test_capacity_warning_event": "orchestrator/test_capacity.py::test_a_warning_is_said_once_for_each_crossing",
    "test_cli_pause_resume_flow": ("faults/test_command_line.py::test_work_is_paused_and_resumed_by_commands_alone"),
    "test_resume_context_includes_decisions": (
        "orchestrator/test_capacity.py::test_at_the_soft_cap_a_new_session_goes_on_by_itself"
    ),
    "test_tdd_state_preserved_across_sessions": (
        "orchestrator/test_finishing.py::test_tdd_state_is_preserved_across_sessions"
    ),
    "test_recover_in_progress": (
        "faults/test_nobody_starts_an_agent.py::test_no_agent_runs_after_a_kill_and_a_restart_until_resume"
    ),
    "test_recover_blocked_restores_approval": (
        "faults/test_plans_that_wait.py::test_a_plan_that_waits_survives_the_server_and_is_announced_again"
    ),
    "test_recover_pending_unchanged": (
        "orchestrator/test_many_breaks.py::test_work_that_never_began_is_still_pending_after_a_restart"
    ),
    "test_resume_validates_checkpoint_exists": (
        "orchestrator/test_going_back.py::test_what_cannot_be_done_is_refused_before_anything_is_touched"
    ),
    "test_resume_validates_worktree_available": (
        "orchestrator/test_resuming.py::test_a_worktree_without_a_branch_is_not_replaced_by_another"
    ),
    "kill -9 at random points": "faults/test_random_kills.py::test_work_survives_ten_kills_at_random_moments",
    "the whole story": "faults/test_story.py::test_story_of_a_plan_a_review_a_full_window_and_two_crashes",
}


WAYS_OUT = {"skip", "skipif", "xfail", "importorskip"}


def test_what_the_specification_names_is_collected() -> None:
    """By pytest itself, with the options of `make test`."""
    wanted = sorted({*NAMED.values()})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *wanted],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    collected = {line.partition("[")[0].removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line}
    assert collected == set(wanted), done.stdout + done.stderr


@pytest.mark.parametrize("where", NAMED.values(), ids=NAMED.keys())
def test_what_the_specification_names_has_no_way_out_and_demands_something(where: str) -> None:
    file, _, name = where.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    (test,) = [
        each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name
    ]
    marks = [
        each for each in tree.body if isinstance(each, ast.Assign) and "pytestmark" in ast.unparse(each.targets[0])
    ]
    words = {node.attr for part in (test, *marks) for node in ast.walk(part) if isinstance(node, ast.Attribute)}
    assert not words & WAYS_OUT
    assert any(isinstance(node, ast.Assert) for node in ast.walk(test))
