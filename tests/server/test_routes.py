from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from segue import __version__
from segue.model.agents import Choices, McpServer
from segue.model.events import AgentMessage, TaskStarted
from segue.model.ids import AttemptId, RequestId, SessionId, TaskId, WorkflowId
from segue.model.plan import Issue, Task
from segue.model.requests import (
    ApproveRequest,
    ForkRequest,
    PictureGiven,
    PlanText,
    PromptRequest,
    RejectRequest,
    ResumeRequest,
    RunRequest,
)
from segue.model.status import Permissions, Way, WorkflowStatus
from segue.model.views import Question
from segue.server.shutdown import Shutdown
from tests.server.knocking import knock
from tests.server.serving import app_around
from tests.server.standin_service import CONTEXT, ID, NOON, SESSION, SNAPSHOT, VIEW, Standin

pytestmark = pytest.mark.anyio

QUESTION = Question(request_id=RequestId("request-1"), title="Delete old files?", tool="delete", requested_at=NOON)
FIELDS = """
    id slug title status reason agent permissions repository worktree branch here created_at updated_at paused_at
    pause_requested tasks tasks_done tasks_total current_task session sessions runs spent context question asks
    proposed_plan last_snapshot snapshots failure retry waiting_messages undelivered head merge_hint from_repository
"""


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
    app = app_around(Standin(*views))
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
    request = RunRequest(
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
    request = RunRequest(
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
        {"status": "pause_requested", "workflow_id": ID, "snapshot_id": None, "retry_called_off": False},
    )
    done = await knock(app, "POST", f"{path}?wait=true")
    paused = {"status": "paused", "workflow_id": ID, "snapshot_id": SNAPSHOT.id, "retry_called_off": False}
    assert (done.status, done.body) == (200, paused)
    assert service.asked == [("pause", "add-parser", "lunch", False), ("pause", "add-parser", "", True)]


@pytest.mark.parametrize("word", ["resume", "approve", "reject"])
async def test_without_an_environment_the_servers_is_used(
    app: Any, service: Standin, own_variables: dict[str, str], word: str
) -> None:
    own_variables["PATH"] = "/usr/bin"
    await knock(app, "POST", f"/api/workflows/add-parser/{word}", {})
    (_, _, told, *_) = service.asked[0]
    assert getattr(told, "environment", told) == {"PATH": "/usr/bin"}


async def test_resume_takes_the_callers_environment_and_says_how_it_goes_on(app: Any, service: Standin) -> None:
    body = {"environment": {"PATH": "/bin"}, "agent": None}
    answer = await knock(app, "POST", "/api/workflows/add-parser/resume", body)
    assert answer.body == {
        "status": "resumed",
        "workflow_id": ID,
        "session": "session-2026-01-02-abcdef",
        "session_number": 1,
        "agent": "rehearsal",
        "run": 2,
        "way": "native",
        "reason": "the agent knows the conversation",
        "prices": [
            {
                "way": "native",
                "possible": True,
                "tokens": 40000,
                "note": "the whole conversation, as the agent last counted it",
            },
            {
                "way": "context",
                "possible": True,
                "tokens": 4000,
                "note": "at most: its budget, and the next request",
            },
            {"way": "history", "possible": False, "tokens": 0, "note": "nothing was said yet"},
            {"way": "fresh", "possible": True, "tokens": None, "note": "estimated from its length"},
        ],
        "paused_at": "2026-01-02T12:00:00Z",
        "tasks_done": 1,
        "tasks_remaining": 1,
        "divergence": ["HEAD moved from aaaa to bbbb."],
        "saved": None,
        "undone": [],
        "left_alone": [],
    }
    assert service.asked == [("resume", "add-parser", ResumeRequest(environment={"PATH": "/bin"}))]


@pytest.mark.parametrize("way", ["native", "context", "history", "fresh"])
async def test_resume_takes_the_way_that_is_asked_for(app: Any, service: Standin, way: str) -> None:
    assert (await knock(app, "POST", "/api/workflows/add-parser/resume", {"way": way})).status == 200
    assert service.asked == [("resume", "add-parser", ResumeRequest(way=Way(way)))]


@pytest.mark.parametrize("way", ["first", "sideways"])
async def test_a_way_that_nobody_can_ask_for_is_refused(app: Any, service: Standin, way: str) -> None:
    answer = await knock(app, "POST", "/api/workflows/add-parser/resume", {"way": way})
    assert (answer.status, service.asked) == (422, [])


async def test_resume_hands_over_to_another_agent(app: Any, service: Standin) -> None:
    body = {"agent": "codex", "model": "gpt-5"}
    assert (await knock(app, "POST", "/api/workflows/add-parser/resume", body)).status == 200
    assert service.asked == [("resume", "add-parser", ResumeRequest(agent="codex", model="gpt-5"))]


async def test_resume_goes_back_to_a_snapshot(app: Any, service: Standin) -> None:
    answer = await knock(app, "POST", "/api/workflows/add-parser/resume", {"snapshot": "previous"})
    assert answer.status == 200
    assert service.asked == [("resume", "add-parser", ResumeRequest(snapshot="previous"))]


async def test_a_session_is_forked_into_a_new_workflow(app: Any, service: Standin) -> None:
    body = {"snapshot": "001", "agent": "codex", "title": "Another try", "environment": {"PATH": "/bin"}}
    answer = await knock(app, "POST", "/api/sessions/session-abcdef/fork", body)
    assert answer.status == 201
    assert (answer.body["workflow"]["title"], answer.body["parent"]) == ("Another try", SESSION.id)
    assert (answer.body["checkpoint_id"], answer.body["left_out"]) == (SNAPSHOT.id, [".env"])
    assert service.asked[-1] == (
        "fork",
        SESSION.id,
        ForkRequest(snapshot="001", agent="codex", title="Another try", environment={"PATH": "/bin"}),
    )
    assert (await knock(app, "POST", f"/api/sessions/{SESSION.id}/fork")).status == 201
    assert service.asked[-1] == ("fork", SESSION.id, ForkRequest())


async def test_a_model_without_the_agent_it_is_for_is_refused(app: Any, service: Standin) -> None:
    answer = await knock(app, "POST", "/api/workflows/add-parser/resume", {"model": "gpt-5"})
    assert (answer.status, service.asked) == (422, [])
    assert "takes over" in answer.body["message"]


async def test_the_context_of_a_workflow_comes_with_its_exam(app: Any, service: Standin) -> None:
    answer = await knock(app, "GET", "/api/workflows/add-parser/context?budget=1000")
    assert service.asked == [("context", "add-parser", 1000)]
    assert (answer.body["context"], answer.body["exam"]["score"]) == (CONTEXT, 0.9)


async def test_a_context_of_nothing_is_refused(app: Any, service: Standin) -> None:
    assert (await knock(app, "GET", "/api/workflows/add-parser/context?budget=99")).status == 422


async def test_a_question_is_approved_or_rejected() -> None:
    service = Standin(replace(VIEW, question=QUESTION))
    app = app_around(service)
    approved = await knock(app, "POST", "/api/workflows/add-parser/approve")
    assert approved.body == {
        "status": "approved",
        "about": "permission",
        "workflow_id": ID,
        "request_id": "request-1",
        "title": "Delete old files?",
        "resumed": None,
    }
    body = {"reason": "keep them", "request_id": "request-1"}
    assert (await knock(app, "POST", "/api/workflows/add-parser/reject", body)).body["status"] == "rejected"
    assert service.asked == [
        ("answer", "add-parser", ApproveRequest()),
        ("answer", "add-parser", RejectRequest(reason="keep them", request_id=RequestId("request-1"))),
    ]


BLOCKED = replace(
    VIEW,
    status=WorkflowStatus.BLOCKED,
    asks="Is this plan good (1 task)?",
    proposed_plan=(Task(id=TaskId("t1"), title="Write the parser"),),
)


async def test_a_plan_is_shown_in_both_forms() -> None:
    app = app_around(Standin(BLOCKED))
    shown = (await knock(app, "GET", "/api/workflows/add-parser/plan")).body
    assert (shown["status"], shown["tasks"][0]["title"], shown["text"]) == (
        "proposed",
        "Write the parser",
        "tasks:\n- t1\n",
    )
    as_text = await knock(app, "GET", "/api/workflows/add-parser/plan?form=yaml")
    assert (as_text.headers["content-type"], as_text.body) == ("application/yaml", "tasks:\n- t1\n")
    assert (await knock(app, "GET", "/api/workflows/add-parser/plan?form=docx")).status == 422


async def test_another_plan_can_be_approved_in_place_of_the_proposed_one() -> None:
    service = Standin(BLOCKED)
    app = app_around(service)
    body = {"plan": {"format": "yaml", "text": "[a, b]"}, "environment": {"PATH": "/bin"}}
    answer = await knock(app, "POST", "/api/workflows/add-parser/approve", body)
    assert (answer.body["about"], answer.body["resumed"]["way"]) == ("plan", "native")
    plan = PlanText(format="yaml", text="[a, b]")
    assert service.asked == [
        ("answer", "add-parser", ApproveRequest(plan=plan, environment={"PATH": "/bin"})),
    ]


async def test_the_agent_proposes_a_plan_where_that_is_asked_for(app: Any, service: Standin) -> None:
    body = {"issue": {"title": "Add a parser"}, "propose": True, "repository": "/repo"}
    assert (await knock(app, "POST", "/api/workflows", body)).status == 201
    assert service.asked[-1][1].propose


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
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(_happen_when_waited_for, service)
            answer = await knock(app, "GET", "/api/workflows/add-parser/events?wait=60")
    assert [record["kind"] for record in answer.body["events"]] == ["agent.message"]


async def _happen_when_waited_for(service: Standin) -> None:
    await anyio.to_thread.run_sync(service.waiting.wait, 30)
    service.happen(AgentMessage(text="Hello."))


async def test_a_long_poll_is_told_when_the_server_stops(service: Standin) -> None:
    app = app_around(service, Shutdown())

    async def stop() -> None:
        await anyio.to_thread.run_sync(service.waiting.wait, 30)
        stopped = await knock(app, "POST", "/api/shutdown", {})
        assert (stopped.status, stopped.body) == (202, {"status": "stopping"})

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(stop)
            answer = await knock(app, "GET", "/api/workflows/add-parser/events?wait=60")
    assert (answer.status, answer.body["message"]) == (503, "The Segue server is stopping.")
    assert (await knock(app, "GET", "/api/workflows/add-parser/events?wait=60")).status == 503


async def test_a_journal_is_verified(app: Any) -> None:
    answer = await knock(app, "GET", "/api/workflows/add-parser/verify")
    assert answer.body == {"verified": True, "events": 0, "problem": None}


async def test_a_session_is_shown(app: Any) -> None:
    answer = await knock(app, "GET", "/api/sessions/session-2026-01-02-abcdef")
    assert (answer.status, answer.body["number"]) == (200, 1)
    assert (await knock(app, "GET", "/api/sessions/session-0")).body["code"] == "session_not_found"


@pytest.mark.parametrize("name", ["session-2026-01-02-abcdef", "session-abcdef"])
async def test_a_session_may_be_named_in_short_at_every_door(app: Any, service: Standin, name: str) -> None:
    assert (await knock(app, "GET", f"/api/sessions/{name}")).body["id"] == SESSION.id
    assert (await knock(app, "GET", f"/api/sessions/{name}/status")).body["session_id"] == SESSION.id
    assert (await knock(app, "POST", f"/api/sessions/{name}/resume", {})).body["session"] == SESSION.id
    assert (await knock(app, "POST", f"/api/sessions/{name}/files", {})).body["session_id"] == SESSION.id
    said = await knock(app, "POST", f"/api/sessions/{name}/prompt", {"text": "Hello", "environment": {"A": "b"}})
    assert said.body["session"] == SESSION.id
    assert service.asked[-1] == ("prompt", ID, PromptRequest(text="Hello", environment={"A": "b"}))


async def test_a_short_name_that_several_sessions_have_is_refused(app: Any, service: Standin) -> None:
    service.details = [SESSION, replace(SESSION, id=SessionId("session-2026-01-03-abcdef"))]
    answer = await knock(app, "GET", "/api/sessions/session-abcdef")
    assert (answer.status, answer.body["code"]) == (422, "bad_input")
    assert "session-2026-01-02-abcdef, session-2026-01-03-abcdef" in answer.body["message"]


async def test_the_sessions_of_a_workflow_are_listed(app: Any) -> None:
    (shown,) = (await knock(app, "GET", "/api/workflows/add-parser/sessions")).body["sessions"]
    assert (shown["id"], shown["token"], shown["runtime"]["pid"]) == (SESSION.id, "token-1", 4711)
    assert shown["way_back"]["prices"][0]["tokens"] == 40000


@pytest.mark.parametrize("door", ["workflows/add-parser", f"sessions/{SESSION.id}"])
async def test_pictures_are_shown_to_an_agent(app: Any, service: Standin, door: str) -> None:
    images = [{"name": "sketch.png", "data": "cGl4ZWxz"}]
    assert (await knock(app, "POST", f"/api/{door}/prompt", {"text": "Hello", "images": images})).status == 200
    assert service.request("prompt").images == (PictureGiven(name="sketch.png", data=b"pixels"),)


async def test_something_is_said_to_a_workflow(app: Any, service: Standin) -> None:
    answer = await knock(app, "POST", "/api/workflows/add-parser/prompt", {"text": "Hello"})
    assert answer.body == {
        "status": "sent",
        "workflow_id": ID,
        "session": SESSION.id,
        "prompt_id": "prompt-1",
        "way": None,
        "reason": "",
        "interrupted": False,
    }
    assert service.asked == [("prompt", "add-parser", PromptRequest(text="Hello"))]


async def test_a_worktree_is_restored_alone(app: Any, service: Standin) -> None:
    answer = await knock(app, "POST", "/api/workflows/add-parser/workspace", {})
    assert (answer.body["status"], answer.body["worktree"]) == ("restored", "/data/worktrees/add-parser")
    assert service.asked == [("restore_workspace", "add-parser")]


async def test_agents_are_listed_and_checked_with_the_callers_variables(app: Any, service: Standin) -> None:
    listed = await knock(app, "POST", "/api/agents", {"environment": {"PATH": "/bin"}})
    assert [agent["name"] for agent in listed.body["agents"]] == ["claude", "codex"]
    checked = await knock(app, "POST", "/api/agents/claude/check", {"environment": {"PATH": "/bin"}})
    assert (checked.body["ok"], checked.body["version"]) == (True, "0.99.1")
    assert service.asked == [("agents", {"PATH": "/bin"}), ("check_agent", "claude", {"PATH": "/bin"})]
    assert (await knock(app, "POST", "/api/agents/nobody/check")).body["code"] == "unknown_agent"


async def test_what_is_chosen_for_the_agent_comes_along(app: Any, service: Standin) -> None:
    server = {"name": "docs", "command": ["docs-server", "-q"], "variables": {"KEY": "${KEY}"}}
    body = {
        "issue": {"title": "Add"},
        "repository": "/repo",
        "choices": {"model": "big", "mode": "plan", "mcp_servers": [server]},
    }
    assert (await knock(app, "POST", "/api/workflows", body)).status == 201
    docs = McpServer(name="docs", command=("docs-server", "-q"), variables={"KEY": "${KEY}"})
    assert service.chosen == Choices(model="big", mode="plan", mcp_servers=(docs,))


async def test_a_model_or_a_mode_that_is_empty_is_none(app: Any, service: Standin) -> None:
    empty = {"model": "", "mode": ""}
    body = {"issue": {"title": "Add"}, "repository": "/repo", "choices": empty}
    assert (await knock(app, "POST", "/api/workflows", body)).status == 201
    assert (await knock(app, "POST", "/api/workflows/add-parser/resume", {"agent": "codex", **empty})).status == 200
    assert service.chosen == Choices()
    assert service.asked[1][-1] == ResumeRequest(agent="codex")


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
