from pathlib import Path
from typing import Any

import pytest

from segue.model.requests import ImportRequest
from tests.server.knocking import knock
from tests.server.standin_service import Standin

pytestmark = pytest.mark.anyio


async def test_a_session_file_is_imported(app: Any, service: Standin) -> None:
    answer = await knock(app, "POST", "/api/imports", {"file": "/x.jsonl", "repository": "/repo"})
    assert (answer.status, answer.body["status"], answer.body["workflow"]["slug"]) == (200, "imported", "add-parser")
    assert service.asked == [("import_session", ImportRequest(file=Path("/x.jsonl"), repository=Path("/repo")))]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"file": "x.jsonl"},
        {"file": "/x.jsonl", "agent": "claude"},
        {"file": "/x.jsonl", "repository": "here"},
        {"agent": "claude"},
        {"file": "/x.jsonl", "slug": "mine"},
    ],
)
async def test_what_names_no_session_is_refused(app: Any, service: Standin, body: dict[str, str]) -> None:
    answer = await knock(app, "POST", "/api/imports", body)
    assert answer.status == 422 and answer.body["message"]
    assert service.asked == []
