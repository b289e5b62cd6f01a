import logging
from typing import Any

import pytest

from segue.model import errors
from segue.model.errors import SegueError
from tests.server.knocking import Answer, knock
from tests.server.standin_service import Standin

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.BadInput, 422),
        (errors.BadPlan, 422),
        (errors.UnknownAgent, 422),
        (errors.NotARepository, 422),
        (errors.WorkflowNotFound, 404),
        (errors.CheckpointNotFound, 404),
        (errors.WrongState, 409),
        (errors.IllegalMove, 409),
        (errors.WorktreeInUse, 409),
        (errors.AgentMissing, 409),
        (errors.TokenRejected, 409),
        (errors.WorkspaceError, 409),
        (errors.DatabaseUnusable, 503),
        (errors.WriteFailed, 503),
        (errors.SegueError, 500),
    ],
)
async def test_errors_have_status_and_shape(app: Any, service: Standin, error: type[SegueError], status: int) -> None:
    service.failure = error("What went wrong.", hint="What to do.")
    answer = await knock(app, "GET", "/api/workflows/add-parser")
    assert answer.status == status
    assert answer.body == {"code": error().code, "message": "What went wrong.", "hint": "What to do."}


async def test_an_unforeseen_error_is_only_logged(app: Any, service: Standin, caplog: pytest.LogCaptureFixture) -> None:
    service.failure = RuntimeError("a secret detail")
    with caplog.at_level(logging.ERROR):
        answer = await knock(app, "GET", "/api/workflows/add-parser")
    assert (answer.status, answer.body["code"]) == (500, "internal_error")
    assert set(answer.body) == {"code", "message", "hint"}
    assert "secret" not in str(answer.body)
    assert "a secret detail" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [("GET", "/api/nowhere", 404, "not_found"), ("DELETE", "/api/status", 405, "method_not_allowed")],
)
async def test_framework_refusals_have_the_same_shape(app: Any, method: str, path: str, status: int, code: str) -> None:
    answer = await knock(app, method, path)
    assert (answer.status, answer.body["code"]) == (status, code)
    assert set(answer.body) == {"code", "message", "hint"}


def good_request() -> dict[str, Any]:
    return {"issue": {"title": "Add a parser"}, "repository": "/repo", "environment": {"SECRET": "hunter2"}}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "The body is not JSON."),
        ({}, "issue is missing. repository is missing."),
        (good_request() | {"issue": {}}, "issue.title is missing."),
        (good_request() | {"agnet": "claude"}, "agnet is not known here."),
        (good_request() | {"issue": {"title": "  "}}, "The issue has no title."),
        (good_request() | {"repository": "here"}, "The repository here is not an absolute path."),
        (
            good_request() | {"permissions": "some"},
            "permissions: Input should be 'ask', 'edits', 'all' or 'read-only'.",
        ),
        (
            good_request() | {"choices": {"review": " ", "review_personas": []}},
            "choices.review is empty. choices.review_personas is empty.",
        ),
        (good_request() | {"environment": {"SECRET": 2}}, "environment.SECRET: Input should be a valid string."),
    ],
)
async def test_a_body_that_cannot_be_used_gets_a_sentence(app: Any, service: Standin, body: Any, sentence: str) -> None:
    answer = await knock(app, "POST", "/api/workflows", body)
    assert (answer.status, answer.body["code"], answer.body["message"]) == (422, "bad_input", sentence)
    assert service.asked == []


NO_TEXT = "contains invalid UTF-8 text"
NUL = "contains a NUL character, which no program accepts."


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("workflows", good_request() | {"repository": "/\ud800"}, f"the body {NO_TEXT}, in repository."),
        (
            "workflows",
            good_request() | {"choices": {"review_personas": ["x", "\ud800"]}},
            f"the body {NO_TEXT}, in choices.review_personas.1.",
        ),
        ("workflows", good_request() | {"environment": {"\ud800": "x"}}, f"the body {NO_TEXT}, in environment.?."),
        ("workflows", good_request() | {"repository": "/\0"}, f"repository {NUL}"),
        ("workflows", good_request() | {"choices": {"test_command": "a\0"}}, f"choices.test_command {NUL}"),
        ("imports", {"file": "/\ud800"}, f"the body {NO_TEXT}, in file."),
        ("imports", {"file": "/\0"}, f"file {NUL}"),
        ("recall", {"query": "\ud800"}, f"the body {NO_TEXT}, in query."),
        ("recall", {"query": "x", "workflow": "\ud800"}, f"the body {NO_TEXT}, in workflow."),
        ("workflows/add-parser/resume", {"environment": {"X": "a\0b"}}, f"environment.X {NUL}"),
    ],
)
async def test_unusable_body_text_is_refused(app: Any, service: Standin, path: str, body: Any, sentence: str) -> None:
    service.memory = None
    answer = await knock(app, "POST", f"/api/{path}", body)
    assert (answer.status, answer.body["message"]) == (422, sentence)
    assert service.asked == []


async def test_a_directory_with_a_nul_is_refused(app: Any) -> None:
    answer = await knock(app, "GET", "/api/workflows?directory=%00")
    assert (answer.status, answer.body["message"]) == (422, f"directory {NUL}")


async def test_an_error_that_names_what_is_no_text_can_be_answered(app: Any, service: Standin) -> None:
    service.failure = errors.NotASession("/a\udcff is no session.")
    answer = await knock(app, "GET", "/api/workflows/add-parser")
    assert (answer.status, answer.body["message"]) == (422, "/a? is no session.")


@pytest.mark.parametrize("query", ["after=-1", "after=x", "wait=61", "wait=-1", "wait=nan", "limit=0", "limit=1001"])
async def test_a_query_out_of_bounds_gets_a_sentence(app: Any, query: str) -> None:
    answer: Answer = await knock(app, "GET", f"/api/workflows/add-parser/events?{query}")
    assert (answer.status, answer.body["code"]) == (422, "bad_input")
    assert answer.body["message"].startswith(query.partition("=")[0])


async def test_an_unknown_status_gets_a_sentence(app: Any) -> None:
    answer = await knock(app, "GET", "/api/workflows?status=paused,asleep")
    assert (answer.status, answer.body["message"]) == (422, "'asleep' is not a workflow status.")
