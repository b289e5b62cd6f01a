from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from knocking import HOSTS, TOKEN, knock
from standin_service import ID, NOON, SNAPSHOT, VIEW, Standin, context

from segue import __version__
from segue.model.events import AgentMessage, TaskStarted
from segue.model.ids import AttemptId, RequestId, TaskId, WorkflowId
from segue.model.plan import Issue
from segue.model.status import Permissions
from segue.model.views import NewWorkflow, PlanText, Question
from segue.server.app import create_app
from segue.server.stopping import Stopping

pytestmark = pytest.mark.anyio

QUESTION = Question(request_id=RequestId("request-1"), title="Delete old files?", tool="delete", requested_at=NOON)
FIELDS = """
    id slug title status reason agent permissions repository worktree branch here created_at updated_at paused_at
    pause_requested tasks tasks_done tasks_total current_task session sessions runs context question last_snapshot
    undelivered head merge_hint
"""


@pytest.fixture
def service() -> Standin:
    return Standin(VIEW)


@pytest.fixture
def app(service: Standin) -> Any:
    return create_app(context(service), token=TOKEN, hosts=HOSTS)


async def test_status_says_who_serves_and_what_is_going_on(app: Any) -> None:
    answer = await knock(app, "GET", "/api/status")
    assert answer.status == 200
    assert {key: answer.body[key] for key in ("version", "boot", "home", "started_at")} == {
        "version": __version__,
        "boot": "boot-standin",
        "home": "/data",
        "started_at": "2026-01-02T12:00:00Z",
    }
    assert [view["slug"] for view in answer.body["workflows"]] == ["add-parser"]


async def test_status_shows_twenty_workflows_at_most() -> None:
    views = [replace(VIEW, id=WorkflowId(f"w{number}"), slug=f"w{number}") for number in range(30)]
    app = create_app(context(Standin(*views)), token=TOKEN, hosts=HOSTS)
    shown = [view["slug"] for view in (await knock(app, "GET", "/api/status")).body["workflows"]]
    assert shown == [f"w{number}" for number in range(20)]


async def test_a_workflow_is_shown_with_the_fields_of_the_contract(app: Any) -> None:
    answer = await knock(app, "GET", "/api/workflows/add-parser")
    assert list(answer.body) == FIELDS.split()
    assert answer.body["tasks"][1] == {
        "id": "t2",
        "title": "Test the parser",
        "status": "pending",
        "depends_on": ["t1"],
    }
    assert answer.body["session"] == {
        "id": "session-2026-01-02-abcdef",
        "number": 1,
        "status": "running",
        "waiting_for": None,
        "reason": "",
        "runs": 1,
    }


async def test_a_workflow_begins_with_what_was_asked(app: Any, service: Standin) -> None:
    body = {
        "issue": {"title": "Add a parser", "description": "A small one."},
        "plan": {"format": "yaml", "text": "tasks: []"},
        "agent": "rehearsal",
        "permissions": "edits",
        "repository": "/repo",
        "here": True,
        "environment": {"PATH": "/bin"},
    }
    answer = await knock(app, "POST", "/api/workflows", body)
    assert (answer.status, answer.body["id"], answer.body["status"]) == (201, ID, "pending")
    request = NewWorkflow(
        issue=Issue(title="Add a parser", description="A small one."),
        plan=PlanText(format="yaml", text="tasks: []"),
        agent="rehearsal",
        permissions=Permissions.EDITS,
        repository=Path("/repo"),
        here=True,
        environment={"PATH": "/bin"},
    )
    assert service.asked == [("create", request)]


async def test_without_an_agent_the_setting_decides(app: Any) -> None:
    answer = await knock(app, "POST", "/api/workflows", {"issue": {"title": "Add"}, "repository": "/repo"})
    assert answer.body["agent"] == "claude"


def test_the_environment_of_a_caller_is_in_no_repr() -> None:
    request = NewWorkflow(
        issue=Issue(title="Add"), agent="claude", repository=Path("/repo"), environment={"KEY": "hunter2"}
    )
    assert "hunter2" not in repr(request)


async def test_workflows_are_filtered_by_directory_and_status(app: Any, service: Standin) -> None:
    answer = await knock(app, "GET", "/api/workflows?directory=/repo/src&status=paused,in_progress")
    assert [view["slug"] for view in answer.body["workflows"]] == ["add-parser"]
    assert service.asked == [("workflows", Path("/repo/src"), ["paused", "in_progress"])]


async def test_a_pause_is_accepted_at_once_or_answered_when_it_is_done(app: Any, service: Standin) -> None:
    path = "/api/workflows/add-parser/pause"
    at_once = await knock(app, "POST", path, {"reason": "lunch"})
    assert (at_once.status, at_once.body) == (
        202,
        {"status": "pause_requested", "workflow_id": ID, "snapshot_id": None},
    )
    done = await knock(app, "POST", f"{path}?wait=true")
    assert (done.status, done.body) == (200, {"status": "paused", "workflow_id": ID, "snapshot_id": SNAPSHOT.id})
    assert service.asked == [("pause", "add-parser", "lunch", False), ("pause", "add-parser", "", True)]


async def test_resume_takes_the_callers_environment_and_says_how_it_goes_on(app: Any, service: Standin) -> None:
    body = {"environment": {"PATH": "/bin"}, "agent": None}
    answer = await knock(app, "POST", "/api/workflows/add-parser/resume", body)
    assert answer.body == {
        "status": "resumed",
        "workflow_id": ID,
        "session": "session-2026-01-02-abcdef",
        "session_number": 1,
        "run": 2,
        "way": "native",
        "reason": "the agent knows the conversation",
        "paused_at": "2026-01-02T12:00:00Z",
        "tasks_done": 1,
        "tasks_remaining": 1,
        "divergence": ["HEAD moved from aaaa to bbbb."],
    }
    assert service.asked == [("resume", "add-parser", {"PATH": "/bin"})]


async def test_resume_with_another_agent_is_refused_as_long_as_it_cannot_be_done(app: Any) -> None:
    answer = await knock(app, "POST", "/api/workflows/add-parser/resume", {"environment": {}, "agent": "codex"})
    assert answer.status == 422


async def test_a_question_is_approved_or_rejected() -> None:
    service = Standin(replace(VIEW, question=QUESTION))
    app = create_app(context(service), token=TOKEN, hosts=HOSTS)
    approved = await knock(app, "POST", "/api/workflows/add-parser/approve")
    assert approved.body == {
        "status": "approved",
        "workflow_id": ID,
        "request_id": "request-1",
        "title": "Delete old files?",
    }
    body = {"reason": "keep them", "request_id": "request-1"}
    assert (await knock(app, "POST", "/api/workflows/add-parser/reject", body)).body["status"] == "rejected"
    assert service.asked == [
        ("answer", "add-parser", True, "", None),
        ("answer", "add-parser", False, "keep them", "request-1"),
    ]


async def test_an_answer_without_a_question_is_a_conflict(app: Any) -> None:
    answer = await knock(app, "POST", "/api/workflows/add-parser/approve", {})
    assert (answer.status, answer.body["code"]) == (409, "nothing_to_answer")


async def test_a_workflow_is_cancelled(app: Any, service: Standin) -> None:
    answer = await knock(app, "POST", "/api/workflows/add-parser/cancel", {"reason": "no need"})
    assert (answer.status, answer.body["status"]) == (200, "cancelled")
    assert service.asked == [("cancel", "add-parser", "no need")]


async def test_events_come_in_order_with_their_fields(app: Any, service: Standin) -> None:
    service.happen(AgentMessage(text="Hello."))
    service.happen(TaskStarted(task_id=TaskId("t1"), attempt=AttemptId("attempt-1")))
    answer = await knock(app, "GET", "/api/workflows/add-parser/events?after=1")
    assert answer.body == {
        "events": [
            {
                "seq": 2,
                "at": "2026-01-02T12:00:00Z",
                "session_id": None,
                "run": None,
                "kind": "task.started",
                "event": {"kind": "task.started", "task_id": "t1", "attempt": "attempt-1"},
                "hash": "hash-2",
            }
        ],
        "head": 2,
    }


async def test_a_long_poll_is_answered_by_the_next_event(app: Any, service: Standin) -> None:
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(_happen_when_waited_for, service)
            answer = await knock(app, "GET", "/api/workflows/add-parser/events?wait=60")
    assert [record["kind"] for record in answer.body["events"]] == ["agent.message"]


async def _happen_when_waited_for(service: Standin) -> None:
    await anyio.to_thread.run_sync(service.waiting.wait, 5)
    service.happen(AgentMessage(text="Hello."))


async def test_a_long_poll_is_told_when_the_server_stops(service: Standin) -> None:
    stopping = Stopping()
    app = create_app(context(service, stopping), token=TOKEN, hosts=HOSTS)

    async def stop() -> None:
        await anyio.to_thread.run_sync(service.waiting.wait, 5)
        stopped = await knock(app, "POST", "/api/shutdown", {})
        assert (stopped.status, stopped.body) == (202, {"status": "stopping"})

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(stop)
            answer = await knock(app, "GET", "/api/workflows/add-parser/events?wait=60")
    assert (answer.status, answer.body["message"]) == (503, "The Segue server is stopping.")
    late = await knock(app, "GET", "/api/workflows/add-parser/events?wait=60")
    assert late.status == 503


async def test_snapshots_are_listed_and_shown(app: Any) -> None:
    listed = await knock(app, "GET", "/api/workflows/add-parser/snapshots")
    assert listed.body == {
        "workflow_id": ID,
        "snapshots": [
            {
                "id": SNAPSHOT.id,
                "session_number": 1,
                "trigger": "pause",
                "created_at": "2026-01-02T12:00:00Z",
                "tasks_completed": 1,
                "tasks_remaining": 1,
                "clean_boundary": True,
            }
        ],
    }
    shown = await knock(app, "GET", f"/api/workflows/add-parser/snapshots/{SNAPSHOT.id}")
    assert (shown.status, shown.body["id"], shown.body["reason"]) == (200, SNAPSHOT.id, "lunch")
    assert (await knock(app, "GET", "/api/workflows/add-parser/snapshots/ckpt-0")).status == 404


async def test_a_journal_is_verified(app: Any) -> None:
    answer = await knock(app, "GET", "/api/workflows/add-parser/verify")
    assert answer.body == {"verified": True, "events": 0, "problem": None}


async def test_a_session_is_shown(app: Any) -> None:
    answer = await knock(app, "GET", "/api/sessions/session-2026-01-02-abcdef")
    assert (answer.status, answer.body["number"]) == (200, 1)
    assert (await knock(app, "GET", "/api/sessions/session-0")).body["code"] == "session_not_found"


async def test_the_api_is_described_with_its_views_and_its_one_error_shape(app: Any) -> None:
    document = (await knock(app, "GET", "/api/openapi.json")).body
    assert {"WorkflowView", "RecordView", "Problem", "Checkpoint"} <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in document["components"]["schemas"]
    assert all(path.startswith("/api/") for path in document["paths"])
    event = document["components"]["schemas"]["RecordView"]["properties"]["event"]
    assert event["discriminator"]["propertyName"] == "kind"


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
async def test_there_is_no_documentation_page(app: Any, path: str) -> None:
    assert (await knock(app, "GET", path)).status == 404
