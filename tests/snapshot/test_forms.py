"""A snapshot through JSON and back, and in the two forms that are made from it."""

import json
from dataclasses import replace

from hypothesis import given, settings

from segue.model.checkpoint import SCHEMA_VERSION, Checkpoint, Usage
from segue.model.codec import decode_checkpoint, decode_findings, encode, encode_checkpoint, encode_findings
from segue.model.findings import FINDINGS_VERSION, Findings
from segue.model.ids import Seq
from segue.model.snapshots import Snapshot
from segue.snapshot.forms import (
    ChangedFile,
    DecisionTaken,
    SessionGit,
    SessionUsage,
    TestCounts,
    checkpoint_form,
    git_changes,
    session_form,
)
from tests.snapshot.kept import CHECKPOINT, DECISION, ERROR, FINDINGS, KEPT, REVIEW, kept
from tests.snapshot.strategies import any_of

FIRST_VERSION = """
{"schema_version": 1, "id": "ckpt-2026-01-02-001", "workflow_id": "workflow-1", "session_id": "session-1",
 "session_number": 1, "created_at": "2026-01-02T12:00:00Z", "type": "pause", "trigger": "pause", "reason": "lunch",
 "snapshot": true, "clean_boundary": true, "after": 12,
 "tasks": [{"id": "a", "title": "Do A", "status": "completed", "depends_on": []}],
 "current_task": null, "next_task": null,
 "git": {"branch": "main", "head": "beef", "base": null, "changes": []}, "commit": null, "left_out": [],
 "open_calls": [], "in_flight_prompt": null,
 "usage": {"context_tokens": null, "window": null, "input_tokens": 0, "output_tokens": 0, "cost_usd": null,
           "tool_calls": 0, "turns": 1},
 "problem": ""}
"""


@given(any_of(Checkpoint))
@settings(max_examples=50)
def test_a_checkpoint_loses_nothing_on_its_way_through_json(checkpoint: Checkpoint) -> None:
    assert decode_checkpoint(encode_checkpoint(checkpoint)) == checkpoint


@given(any_of(Findings))
@settings(max_examples=50)
def test_findings_lose_nothing_on_their_way_through_json(findings: Findings) -> None:
    assert decode_findings(encode_findings(findings)) == findings


def test_what_is_stored_says_which_version_of_the_form_it_has() -> None:
    assert json.loads(encode_checkpoint(CHECKPOINT))["schema_version"] == SCHEMA_VERSION
    assert json.loads(encode_findings(FINDINGS))["schema_version"] == FINDINGS_VERSION


def test_a_snapshot_of_the_first_version_is_read() -> None:
    old = decode_checkpoint(FIRST_VERSION)
    assert (old.schema_version, old.issue, old.step, old.can_resume, old.session_seconds) == (1, None, "", True, None)
    assert old.bookmark is None
    form = session_form(Snapshot(checkpoint=old, findings=None))
    assert (form.task_dag.original_issue, form.git_state and form.git_state.branch) == (None, "main")


def test_the_session_form_has_the_plan_with_the_issue_it_was_made_for() -> None:
    form = session_form(KEPT)
    assert (form.id, form.session_number, form.trigger, form.pause_reason) == (CHECKPOINT.id, 2, "pause", "lunch")
    assert form.task_dag.original_issue == CHECKPOINT.issue
    assert [(task.id, task.status, task.dependencies) for task in form.task_dag.tasks] == [
        ("red", "completed", ()),
        ("green", "pending", ("red",)),
    ]
    assert form.task_dag.tasks[0].description == "It must fail."
    assert (form.current_task_id, form.next_task_id, form.tasks_completed, form.tasks_remaining) == (
        None, "green", 1, 1,
    )  # fmt: skip


def test_the_session_form_has_git_findings_and_usage() -> None:
    form = session_form(KEPT)
    assert form.git_state == SessionGit(
        branch="segue/split-words",
        commit_at_workflow_start="a" * 40,
        commit_at_snapshot="b" * 40,
        files_modified=("words.py", "README.md", "tests/test_words.py"),
        files_staged=("words.py",),
        has_uncommitted_changes=True,
        uncommitted_summary="1 modified, 1 created",
    )
    assert (form.decisions, form.errors, form.reviewer_feedback) == ((DECISION,), (ERROR,), (REVIEW,))
    assert form.test_state == FINDINGS.tests
    assert form.usage == SessionUsage(
        tokens_used=1_200,
        tokens_remaining_estimate=188_000,
        context_utilization=0.06,
        llm_calls=1,
        tool_calls=2,
        cost_usd=0.02,
        session_duration_seconds=62,
    )


def test_what_is_not_known_stays_unknown_in_the_session_form() -> None:
    bare = Snapshot(
        checkpoint=replace(CHECKPOINT, git=None, usage=Usage(), session_seconds=None, reason=""), findings=None
    )
    form = session_form(bare)
    assert (form.pause_reason, form.git_state, form.test_state, form.reviewer_feedback) == (None, None, None, None)
    assert (form.usage.tokens_remaining_estimate, form.usage.context_utilization) == (None, None)
    assert form.usage.session_duration_seconds is None


def test_a_window_that_is_overfull_has_nothing_left() -> None:
    usage = session_form(kept(usage=Usage(context_tokens=210_000, window=200_000))).usage
    assert (usage.tokens_remaining_estimate, usage.context_utilization) == (0, 1.0)


def test_the_checkpoint_form_is_the_envelope_with_files_tests_and_decisions() -> None:
    form = checkpoint_form(KEPT)
    assert (form.checkpoint_id, form.session_id, form.timestamp) == (
        CHECKPOINT.id, CHECKPOINT.session_id, CHECKPOINT.created_at,
    )  # fmt: skip
    assert (form.gate, form.step, form.type, form.summary) == ("", "Write the test", "pause", "1 of 2 tasks are done")
    assert form.state.files_changed == (
        ChangedFile(path="words.py", action="modified"),
        ChangedFile(path="README.md", action="modified"),
        ChangedFile(path="tests/test_words.py", action="created"),
    )
    assert form.state.tests == TestCounts(passing=2, failing=1, pending=0)
    assert form.state.decisions == (
        DecisionTaken(
            decision=DECISION.description,
            rationale="the grammar is small",
            alternatives_considered=("a generator",),
        ),
    )
    assert (form.next_steps, form.can_resume, form.resume_instructions) == (("Make it pass",), True, "segue resume")


def test_the_checkpoint_form_tells_only_decisions_that_stand() -> None:
    taken_back = replace(DECISION, superseded_by=Seq(12))
    assert checkpoint_form(kept({"decisions": (taken_back,)})).state.decisions == ()


def test_the_forms_are_json_with_the_names_they_promise() -> None:
    session, checkpoint = (json.loads(encode(form(KEPT))) for form in (session_form, checkpoint_form))
    assert " ".join(session) == (
        "id workflow_id session_number created_at trigger pause_reason task_dag current_task_id next_task_id "
        "tasks_completed tasks_remaining git_state decisions errors reviewer_feedback test_state usage"
    )
    assert " ".join(checkpoint) == (
        "checkpoint_id session_id timestamp gate step type summary state next_steps can_resume resume_instructions"
    )
    assert list(checkpoint["state"]) == ["files_changed", "tests", "decisions"]


def test_git_alone_says_what_was_kept_and_what_was_not() -> None:
    changes = git_changes(CHECKPOINT)
    assert (changes.branch, changes.saved_as, changes.left_out) == ("segue/split-words", "c" * 40, (".env",))
    assert [each.path for each in changes.committed] == ["words.py", "README.md"]
    none = git_changes(replace(CHECKPOINT, git=None, problem="There is no worktree yet."))
    assert (none.branch, none.uncommitted, none.problem) == (None, (), "There is no worktree yet.")
