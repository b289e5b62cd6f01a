from dataclasses import replace
from typing import Any

import pytest

from segue.model.checkpoint import FileChange, GitState
from segue.model.codec import decode_checkpoint, decode_findings, encode
from segue.model.findings import TestState
from segue.model.ids import CheckpointId, Seq, TaskId
from segue.model.plan import Issue
from segue.model.snapshots import Message, MessagePage, Part, Snapshot
from tests.server.knocking import Answer, knock
from tests.server.standin_service import DECISION, ERROR, EXAM, FINDINGS, ID, NOON, REVIEW, SNAPSHOT, VIEW, Standin

pytestmark = pytest.mark.anyio

SNAPSHOTS = "/api/workflows/add-parser/snapshots"
TESTS = TestState(phase="red", failing_tests=("test_a",), last_test_run_at=NOON, passing=2, failing=1)
GIT = GitState(branch="main", head="b" * 40, base="a" * 40, changes=(FileChange(path="a.py", action="created"),))
FULL = Snapshot(
    checkpoint=replace(SNAPSHOT, git=GIT, issue=Issue(title="Add a parser"), left_out=(".env",)),
    findings=replace(FINDINGS, tests=TESTS, decisions=(DECISION,), errors=(ERROR,), feedback=(REVIEW,)),
)
LATER = replace(
    FULL,
    checkpoint=replace(FULL.checkpoint, id=CheckpointId("ckpt-2026-01-02-004"), clean_boundary=False),
    findings=None,
)


@pytest.fixture
def service() -> Standin:
    standin = Standin(VIEW)
    standin.kept = [LATER, FULL]
    return standin


async def get(app: Any, path: str) -> Answer:
    return await knock(app, "GET", f"{SNAPSHOTS}{path}")


async def test_snapshots_are_listed_newest_first_with_their_exam(app: Any) -> None:
    listed = (await get(app, "")).body
    assert listed["workflow_id"] == ID
    assert [each["id"] for each in listed["snapshots"]] == [LATER.checkpoint.id, SNAPSHOT.id]
    assert listed["snapshots"][1] == {
        "id": SNAPSHOT.id,
        "session_number": 1,
        "trigger": "pause",
        "created_at": "2026-01-02T12:00:00Z",
        "tasks_completed": 1,
        "tasks_remaining": 1,
        "clean_boundary": True,
        "session_id": SNAPSHOT.session_id,
        "reason": "lunch",
        "exam": EXAM.score,
    }
    assert (listed["snapshots"][0]["exam"], listed["snapshots"][0]["clean_boundary"]) == (None, False)


async def test_a_snapshot_is_shown_with_everything_that_is_stored_of_it(app: Any) -> None:
    shown = (await get(app, f"/{SNAPSHOT.id}")).body
    assert list(shown) == ["checkpoint", "findings"]
    assert decode_checkpoint(encode(shown["checkpoint"])) == FULL.checkpoint
    assert decode_findings(encode(shown["findings"])) == FULL.findings


@pytest.mark.parametrize("name", ["001", "1", "previous"])
async def test_a_snapshot_may_be_named_in_short(app: Any, name: str) -> None:
    assert (await get(app, f"/{name}")).body["checkpoint"]["id"] == SNAPSHOT.id
    assert [each["id"] for each in (await get(app, f"/{name}/decisions")).body] == ["decision-7"]


async def test_the_session_form_has_the_plan_and_the_findings(app: Any) -> None:
    form = (await get(app, "/1?form=session")).body
    assert form["task_dag"]["original_issue"]["title"] == "Add a parser"
    assert form["git_state"]["files_modified"] == ["a.py"]
    assert (form["decisions"][0]["rationale"], form["test_state"]["phase"]) == ("it is there", "red")
    assert "checkpoint" not in form


async def test_the_checkpoint_form_is_short(app: Any) -> None:
    form = (await get(app, "/1?form=checkpoint")).body
    assert (form["checkpoint_id"], form["type"]) == (SNAPSHOT.id, "pause")
    assert form["state"] == {
        "files_changed": [{"path": "a.py", "action": "created"}],
        "tests": {"passing": 2, "failing": 1, "pending": None},
        "decisions": [
            {"decision": DECISION.description, "rationale": "it is there", "alternatives_considered": ["a generator"]}
        ],
    }


async def test_another_form_is_refused_with_those_there_are(app: Any) -> None:
    answer = await get(app, "/1?form=poem")
    assert (answer.status, answer.body["message"]) == (
        422, "form: Input should be 'whole', 'session' or 'checkpoint'.",
    )  # fmt: skip


async def test_decisions_errors_and_reviews_are_lists(app: Any) -> None:
    decisions, errors, reviews = [
        (await get(app, f"/1/{part}")).body for part in ("decisions", "errors", "reviewer-feedback")
    ]
    assert [(each["decision_type"], each["alternatives_considered"]) for each in decisions] == [
        ("library", ["a generator"])
    ]
    assert [(each["error_type"], each["resolution"]) for each in errors] == [("OSError", "unresolved")]
    assert [(each["reviewer_persona"], each["comments"]) for each in reviews] == [("Security", list(REVIEW.comments))]


async def test_tests_are_where_they_stood_or_null(app: Any, service: Standin) -> None:
    assert (await get(app, "/1/tests")).body["failing_tests"] == ["test_a"]
    service.kept = [Snapshot(checkpoint=SNAPSHOT, findings=FINDINGS)]
    answer = await get(app, "/1/tests")
    assert (answer.status, answer.body) == (200, None)


async def test_git_changes_tell_commits_and_files(app: Any) -> None:
    assert (await get(app, "/1/git-changes")).body == {
        "branch": "main",
        "commit_at_workflow_start": "a" * 40,
        "commit_at_snapshot": "b" * 40,
        "committed": [],
        "uncommitted": [{"path": "a.py", "action": "created", "staged": False}],
        "saved_as": None,
        "left_out": [".env"],
        "problem": "",
    }


async def test_messages_are_had_by_the_page(app: Any, service: Standin) -> None:
    service.messages = (Message(seq=Seq(3), at=NOON, session_id=None, role="user", text="Go.", task_id=TaskId("t1")),)
    assert (await get(app, "/1/messages")).body == [
        {"seq": 3, "at": "2026-01-02T12:00:00Z", "session_id": None, "role": "user", "text": "Go.", "task_id": "t1"}
    ]
    await get(app, "/1/messages?limit=2&before=30")
    asked = [call[-1] for call in service.asked if call[0] == "detailed_history"]
    assert asked == [MessagePage(limit=50, before=None), MessagePage(limit=2, before=30)]
    assert (await get(app, "/1/messages?limit=0")).status == 422


async def test_two_snapshots_are_compared(app: Any, service: Standin) -> None:
    service.kept = [replace(FULL, checkpoint=replace(FULL.checkpoint, git=None, id=LATER.checkpoint.id)), FULL]
    assert (await get(app, "/previous/diff/latest")).body == {
        "workflow_id": ID,
        "before": SNAPSHOT.id,
        "after": LATER.checkpoint.id,
        "changes": [{"about": "files", "sign": "-", "name": "a.py", "before": "created", "after": None}],
    }


@pytest.mark.parametrize("path", ["", *(f"/{part}" for part in Part), "/diff/latest"])
async def test_a_snapshot_that_this_workflow_has_not_is_said_so_at_every_door(app: Any, path: str) -> None:
    answer = await get(app, f"/ckpt-2026-01-02-099{path}")
    assert (answer.status, answer.body) == (
        404,
        {
            "code": "checkpoint_not_found",
            "message": "This workflow has no snapshot 'ckpt-2026-01-02-099'.",
            "hint": "`segue snapshots list` lists those it has.",
        },
    )


async def test_every_path_has_a_name_of_its_own_in_the_schema(app: Any) -> None:
    schema = (await knock(app, "GET", "/api/openapi.json")).body
    names = [each["operationId"] for path in schema["paths"].values() for each in path.values()]
    assert len(names) == len(set(names))
    assert {"snapshot_decisions", "snapshot_git_changes", "snapshot_messages", "snapshot_diff"} <= set(names)
