"""What changed from one snapshot to another."""

from dataclasses import replace

from hypothesis import given, settings

from segue.model.checkpoint import FileChange, Usage
from segue.model.ids import CheckpointId, Seq
from segue.model.plan import TaskStatus
from segue.model.snapshots import Snapshot
from segue.snapshot.compare import Change, compare
from tests.snapshot.kept import CHECKPOINT, DECISION, ERROR, FINDINGS, KEPT, kept
from tests.snapshot.strategies import any_of

LATER = CheckpointId("ckpt-2026-01-02-005")


def changes(after: Snapshot, before: Snapshot = KEPT) -> list[Change]:
    return list(compare(before, after).changes)


@given(any_of(Snapshot))
@settings(max_examples=30)
def test_nothing_changed_from_a_snapshot_to_itself(snapshot: Snapshot) -> None:
    assert compare(snapshot, snapshot).changes == ()


def test_a_difference_names_both_snapshots() -> None:
    diff = compare(KEPT, kept(id=LATER))
    assert (diff.workflow_id, diff.before, diff.after) == (CHECKPOINT.workflow_id, CHECKPOINT.id, LATER)


def test_tasks_change_their_status() -> None:
    first, second = CHECKPOINT.tasks
    done = kept(tasks=(first, replace(second, status=TaskStatus.COMPLETED)))
    assert changes(done) == [
        Change(about="tasks", sign="~", name="[green] Make it pass", before="pending", after="completed")
    ]


def test_decisions_are_made_and_taken_back() -> None:
    made = replace(DECISION, id="decision-30", description="Use str.split.", decision_type="approach")
    after = kept({"decisions": (replace(DECISION, superseded_by=Seq(30)), made)})
    assert changes(after) == [
        Change(about="decisions", sign="~", name=DECISION.description, before="library", after="library, taken back"),
        Change(about="decisions", sign="+", name="Use str.split.", after="approach"),
    ]


def test_errors_come_up_and_are_fixed() -> None:
    other = replace(ERROR, id="error-31", error_message="OSError: disk full")
    after = kept({"errors": (replace(ERROR, resolution="fixed"), other)})
    assert changes(after) == [
        Change(about="errors", sign="~", name=ERROR.error_message, before="unresolved", after="fixed"),
        Change(about="errors", sign="+", name="OSError: disk full", after="unresolved"),
    ]


def test_files_come_go_are_staged_and_are_committed() -> None:
    assert CHECKPOINT.git is not None
    git = replace(
        CHECKPOINT.git,
        changes=(FileChange(path="tests/test_words.py", action="created", staged=True),),
        committed=(FileChange(path="words.py", action="created"), FileChange(path="new.py", action="created")),
    )
    assert changes(kept(git=git)) == [
        Change(about="files", sign="~", name="words.py", before="modified, staged", after="created, committed"),
        Change(about="files", sign="+", name="new.py", after="created, committed"),
        Change(about="files", sign="~", name="tests/test_words.py", before="created", after="created, staged"),
        Change(about="files", sign="-", name="README.md", before="modified, committed"),
    ]


def test_tests_turn_from_red_to_green() -> None:
    assert FINDINGS.tests is not None
    green = replace(FINDINGS.tests, phase="green", failing_tests=(), passing=3, failing=0)
    assert changes(kept({"tests": green})) == [
        Change(about="tests", sign="~", name="phase", before="red", after="green"),
        Change(about="tests", sign="~", name="passing", before=2, after=3),
        Change(about="tests", sign="~", name="failing", before=1, after=0),
        Change(about="tests", sign="-", name="tests/test_words.py::test_split", before="failing"),
    ]


def test_use_grows_and_what_is_unknown_is_not_told() -> None:
    more = replace(CHECKPOINT.usage, context_tokens=22_000, cost_usd=None, turns=3)
    assert changes(kept(usage=more)) == [
        Change(about="usage", sign="~", name="context_tokens", before=12_000, after=22_000),
        Change(about="usage", sign="~", name="turns", before=1, after=3),
        Change(about="usage", sign="-", name="cost_usd", before=0.02),
    ]


def test_a_snapshot_that_knows_nothing_can_be_compared() -> None:
    bare = Snapshot(checkpoint=replace(CHECKPOINT, git=None, tasks=(), usage=Usage()), findings=None)
    assert {change.about for change in changes(KEPT, bare)} == {
        "tasks", "decisions", "errors", "files", "tests", "usage",
    }  # fmt: skip
