"""`segue import`: what is asked of the server, and what is said of its answer."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from segue.model.errors import NotASession, SessionNotFound
from segue.model.requests import ImportRequest
from tests.server.standin_service import Standin


def asked(service: Standin) -> ImportRequest:
    return next(request for name, request, *_ in service.asked if name == "import_session")


def test_a_file_becomes_a_workflow(service: Standin, segue: Any, tmp_path: Path) -> None:
    result = segue("import", "../x.jsonl")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "✓ Imported x.jsonl as add-parser",
        "  claude, 44 things said or done: Add a parser",
        "  Worktree /data/worktrees/add-parser on branch segue/add-parser",
        "  Go on with: segue resume add-parser; the ways and prices: segue sessions show add-parser",
    ]
    request = asked(service)
    assert (request.file, request.agent, request.repository) == (tmp_path / "repository" / "../x.jsonl", None, None)


def test_what_was_not_read_and_not_finished_is_said(service: Standin, segue: Any) -> None:
    service.imported = {"unread_lines": 3, "clean_boundary": False, "open_calls": ("Bash", "Edit")}
    said = segue("import", "x.jsonl").stdout
    assert "! Lines of the file that could not be read, and were left out: 3\n" in said
    assert "! It ends in the middle of a turn; nobody saw these calls end: Bash, Edit\n" in said


@pytest.mark.parametrize(
    ("status", "first"),
    [
        ("already_imported", "x.jsonl is imported already, as add-parser (paused)"),
        ("extended", "✓ x.jsonl has grown: what is new was added to add-parser"),
    ],
)
def test_a_file_that_was_imported_before_is_said_to_be(service: Standin, segue: Any, status: Any, first: str) -> None:
    service.imported = {"status": status}
    assert segue("import", "x.jsonl").stdout.splitlines()[0] == first


def test_the_newest_session_of_an_agent_is_that_of_this_directory(
    service: Standin, segue: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", "/somewhere")
    assert segue("import", "--agent", "codex").exit_code == 0
    request = asked(service)
    assert (request.file, request.agent, request.repository) == (None, "codex", tmp_path / "repository")
    assert request.environment["CODEX_HOME"] == "/somewhere"


@pytest.mark.parametrize("words", [[], ["x.jsonl", "--agent", "claude"], ["--agent", "copilot"]])
def test_a_file_or_an_agent_must_be_named(service: Standin, segue: Any, words: list[str]) -> None:
    assert segue("import", *words).exit_code == 2


def test_a_name_that_is_no_text_is_refused(service: Standin, segue: Any) -> None:
    result = segue("import", "x\udcff.jsonl")
    assert result.exit_code == 1 and "not UTF-8" in result.stderr


def test_the_answer_as_json(service: Standin, segue: Any) -> None:
    document = json.loads(segue("import", "x.jsonl", "--json").stdout)
    assert (document["status"], document["workflow"]["slug"], document["lines"]) == ("imported", "add-parser", 44)


@pytest.mark.parametrize("refusal", [NotASession("x.jsonl is empty."), SessionNotFound("None there.", hint="Looked.")])
def test_a_refusal_is_a_sentence(service: Standin, segue: Any, refusal: Exception) -> None:
    service.refusals["import_session"] = refusal
    result = segue("import", "x.jsonl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"segue: {refusal}")


def test_a_server_that_was_started_for_nothing_is_stopped_again(tmp_path: Path) -> None:
    def segue(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "segue", *words]
        environment = {**os.environ, "SEGUE_PORT": "0"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)

    done = segue("import", str(tmp_path))
    assert done.returncode == 1
    assert f"segue: {tmp_path} is not a file." in done.stderr
    answers = (segue("status").stdout for _ in range(100))
    assert any("No Segue server is running." in answer for answer in answers)
