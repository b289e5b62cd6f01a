"""Bodies that the command line sends, compared with the request values, which it does not import."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from segue import client
from segue.model.requests import (
    ApproveRequest,
    Body,
    CancelRequest,
    ForkRequest,
    ImportRequest,
    PauseRequest,
    PromptRequest,
    RejectRequest,
    ResumeRequest,
    RunRequest,
    WorkRequest,
)
from segue.model.status import WorkflowStatus
from tests.server.standin_service import VIEW, Standin

BODIES: list[tuple[list[str], str, type[Body]]] = [
    (["run", "Do it", "--detach"], "/workflows", RunRequest),
    (["import", "x.jsonl"], "/imports", ImportRequest),
    (["pause"], "/pause", PauseRequest),
    (["resume", "--detach"], "/resume", ResumeRequest),
    (["sessions", "fork"], "/fork", ForkRequest),
    (["prompt", "Hello", "--detach"], "/prompt", PromptRequest),
    (["approve", "--detach"], "/approve", ApproveRequest),
    (["reject", "-r", "No", "--detach"], "/reject", RejectRequest),
    (["cancel"], "/cancel", CancelRequest),
]


def names(kind: type[Body]) -> set[str]:
    return {field.name for field in fields(kind)}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Paths and bodies of the requests, in order."""
    requests: list[tuple[str, Any]] = []
    call = client.call

    def recorded(method: str, path: str, body: object = None, **more: Any) -> Any:
        requests.append((path, body))
        return call(method, path, body, **more)

    monkeypatch.setattr(client, "call", recorded)
    return requests


@pytest.mark.parametrize(("words", "path", "kind"), BODIES)
def test_a_command_sends_every_field_of_its_request(
    segue: Any, service: Standin, sent: list[tuple[str, Any]], words: list[str], path: str, kind: type[Body]
) -> None:
    status = WorkflowStatus.PAUSED if words[0] == "resume" else VIEW.status
    service.views = {VIEW.id: replace(VIEW, status=status)}
    segue(*words)
    body = next(body for where, body in sent if where.endswith(path))
    assert set(body) == names(kind)


CHOICES = {
    "--model": "big",
    "--mode": "plan",
    "--mcp": "mcp.json",
    "--test": "make test",
    "--commit": "task",
    "--review": "same",
    "--review-personas": "tester",
    "--review-passes": "2",
    "--fixer": "off",
    "--pause-after": "2",
    "--max-time": "1h",
    "--max-tokens": "1000",
    "--max-cost": "5",
}
NO_OPTION = {"setup", "test_timeout"}
"""Choices that only settings and the API make."""


def test_the_options_of_a_run_are_the_choices_of_its_request(segue: Any, sent: list[tuple[str, Any]]) -> None:
    Path("mcp.json").write_text('{"mcpServers": {}}')
    options = [word for option in CHOICES.items() for word in option]
    segue("run", "Do it", "--detach", "--wait-for-quota", *options)
    body = next(body for path, body in sent if path.endswith("/workflows"))
    assert set(body["choices"]) == names(WorkRequest) - NO_OPTION
