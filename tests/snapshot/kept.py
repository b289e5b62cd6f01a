"""A snapshot to look into."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from segue.model.checkpoint import Checkpoint, CheckpointType, FileChange, GitState, TaskMark, Usage
from segue.model.findings import Decision, ErrorRecord, ExamResult, Findings, ReviewerFeedback, TestState
from segue.model.ids import CheckpointId, Seq, SessionId, TaskId, WorkflowId
from segue.model.plan import Issue, TaskStatus
from segue.model.snapshots import Snapshot
from segue.model.status import Trigger

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
RED, GREEN = TaskId("red"), TaskId("green")

DECISION = Decision(
    id="decision-7",
    timestamp=NOON,
    task_id=RED,
    decision_type="library",
    description="Use re rather than a generator because the grammar is small.",
    rationale="the grammar is small",
    alternatives_considered=("a generator",),
    seq=Seq(7),
)
ERROR = ErrorRecord(
    id="error-9",
    timestamp=NOON,
    task_id=RED,
    error_type="ImportError",
    error_message="ImportError: no module named words",
    context="pytest -q",
    seq=Seq(9),
)
REVIEW = ReviewerFeedback(
    review_id="review-1",
    reviewer_persona="Security",
    timestamp=NOON,
    approved=False,
    severity="high",
    comments=("Check the length.",),
)
CHECKPOINT = Checkpoint(
    id=CheckpointId("ckpt-2026-01-02-003"),
    workflow_id=WorkflowId("workflow-2026-01-02-abcdef"),
    session_id=SessionId("session-2026-01-02-abcdef"),
    session_number=2,
    created_at=NOON,
    type=CheckpointType.PAUSE,
    trigger=Trigger.PAUSE,
    reason="lunch",
    snapshot=True,
    clean_boundary=True,
    after=Seq(20),
    issue=Issue(title="Split words", description="At spaces."),
    tasks=(
        TaskMark(id=RED, title="Write the test", status=TaskStatus.COMPLETED, description="It must fail."),
        TaskMark(id=GREEN, title="Make it pass", status=TaskStatus.PENDING, depends_on=(RED,)),
    ),
    current_task=None,
    next_task=GREEN,
    git=GitState(
        branch="segue/split-words",
        head="b" * 40,
        base="a" * 40,
        changes=(
            FileChange(path="words.py", action="modified", staged=True),
            FileChange(path="tests/test_words.py", action="created"),
        ),
        committed=(
            FileChange(path="words.py", action="created"),
            FileChange(path="README.md", action="modified"),
        ),
    ),
    commit="c" * 40,
    left_out=(".env",),
    usage=Usage(
        context_tokens=12_000,
        window=200_000,
        input_tokens=900,
        output_tokens=300,
        cost_usd=0.02,
        tool_calls=2,
        turns=1,
    ),
    session_seconds=61.6,
    step="Write the test",
    summary="1 of 2 tasks are done",
    next_steps=("Make it pass",),
    resume_instructions="segue resume",
)
FINDINGS = Findings(
    checkpoint_id=CHECKPOINT.id,
    tests=TestState(
        phase="red",
        failing_tests=("tests/test_words.py::test_split",),
        expected_failures=("tests/test_words.py::test_split",),
        last_test_run_at=NOON - timedelta(minutes=1),
        last_test_command="pytest -q",
        last_test_output_summary="1 failed, 2 passed in 0.10s",
        passing=2,
        failing=1,
        pending=0,
        seq=Seq(9),
    ),
    decisions=(DECISION,),
    errors=(ERROR,),
    feedback=(REVIEW,),
    exam=ExamResult(score=0.9, by_category={"files": 0.8}, missing=("a changed file: a.py",), tokens=600, budget=4000),
)
KEPT = Snapshot(checkpoint=CHECKPOINT, findings=FINDINGS)


def kept(findings: dict[str, Any] | None = None, **checkpoint: Any) -> Snapshot:
    """The snapshot with changes."""
    return Snapshot(checkpoint=replace(CHECKPOINT, **checkpoint), findings=replace(FINDINGS, **(findings or {})))
