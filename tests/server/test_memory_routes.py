from pathlib import Path
from typing import Any

import pytest

from segue.journal import Journal, open_journal
from segue.memory import Memory
from segue.model.events import AgentMessage
from tests.journal.workflows import TickingClock, begun
from tests.server.knocking import knock
from tests.server.serving import app_around
from tests.server.standin_service import VIEW, Standin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def journal(tmp_path: Path) -> Journal:
    async with open_journal(f"sqlite:///{tmp_path}/segue.db", TickingClock()) as journal:
        yield journal


@pytest.fixture
def app(journal: Journal) -> Any:
    service = Standin(VIEW)
    service.memory = Memory(journal)
    return app_around(service)


async def test_past_work_is_recalled_with_its_provenance(app: Any, journal: Journal) -> None:
    workflow, session = await begun(journal)
    seq = await journal.append(workflow, AgentMessage(text="The zeppelin lands."), session_id=session)
    answer = await knock(app, "POST", "/api/recall", {"query": "zeppelin", "limit": 1})
    assert (answer.status, answer.body["verdict"]) == (200, "recalled")
    (found,) = answer.body["results"]
    assert found["provenance"] == {
        "workflow_id": workflow,
        "workflow": (await journal.workflows.get(workflow)).slug,
        "session_id": session,
        "seq": seq,
        "memory_id": None,
    }


async def test_an_entry_is_stored_read_and_deleted(app: Any) -> None:
    request = {"mode": "new", "content": "The zeppelin lands.", "keeping": "working", "tags": ["airship"]}
    stored = await knock(app, "POST", "/api/memories", request)
    assert (stored.status, stored.body["status"]) == (200, "stored")
    entry = stored.body["memory"]
    assert (await knock(app, "GET", f"/api/memories/{entry['tag']}")).body == entry
    assert (await knock(app, "DELETE", f"/api/memories/{entry['id']}")).body["status"] == "deleted"
    assert (await knock(app, "GET", f"/api/memories/{entry['id']}")).status == 404
    log = await knock(app, "GET", f"/api/memories/{entry['id']}/log")
    assert [each["operation"] for each in log.body] == ["new", "read", "delete"]


@pytest.mark.parametrize(
    ("request_body", "status", "code"),
    [
        ({"mode": "new"}, 422, "bad_input"),
        ({"mode": "update", "content": "x"}, 422, "bad_input"),
        ({"mode": "update", "name": "nobody"}, 404, "workflow_not_found"),
        ({"mode": "update", "name": "nobody", "content": "x"}, 404, "memory_not_found"),
        ({"mode": "new", "content": "ghp_" + "a" * 36}, 422, "secret_found"),
        ({"mode": "soon", "content": "x"}, 422, "bad_input"),
    ],
)
async def test_what_cannot_be_memorized_is_refused(app: Any, request_body: Any, status: int, code: str) -> None:
    answer = await knock(app, "POST", "/api/memories", request_body)
    assert (answer.status, answer.body["code"]) == (status, code)


async def test_a_question_to_the_user_is_a_conflict_that_says_what_to_type(app: Any) -> None:
    await knock(app, "POST", "/api/memories", {"mode": "new", "content": "red green blue black white grey brown"})
    alike = {"mode": "auto", "content": "red green blue black white pink beige"}
    answer = await knock(app, "POST", "/api/memories", alike)
    assert (answer.status, answer.body["code"]) == (409, "memory_unclear")
    assert "segue memorize update" in answer.body["hint"]


@pytest.mark.parametrize("limit", [0, 51])
async def test_a_limit_out_of_bounds_is_refused(app: Any, limit: int) -> None:
    assert (await knock(app, "POST", "/api/recall", {"query": "x", "limit": limit})).status == 422
