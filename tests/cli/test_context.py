"""`segue context`: of a session file without a server, of a workflow by the server; the context and nothing else."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.recordings.kettle import kettle_session
from tests.server.standin_service import CONTEXT, ID, Standin


def segue_context(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "segue", "context", *words]
    environment = {"SEGUE_HOME": str(home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return kettle_session().write(tmp_path)


def test_a_context_is_printed_and_nothing_else(recording: Path, tmp_path: Path) -> None:
    before = recording.read_bytes()
    printed = segue_context(str(recording), "--budget", "1000", home=tmp_path / "home")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert "kettle" in printed.stdout
    assert recording.read_bytes() == before and not (tmp_path / "home").exists()


def test_the_exam_goes_to_the_error_stream(recording: Path, tmp_path: Path) -> None:
    assert segue_context(str(recording), "--exam", home=tmp_path).stderr.startswith("exam: ")


def test_a_context_as_json(recording: Path, tmp_path: Path) -> None:
    document = json.loads(segue_context(str(recording), "--json", home=tmp_path).stdout)
    assert document["tokens"] <= document["budget"] == 12_000
    assert 0 < document["score"] <= 1


def test_a_document_has_the_sections_and_the_source_of_each_line(recording: Path, tmp_path: Path) -> None:
    document = json.loads(segue_context(str(recording), "--format", "json", home=tmp_path).stdout)
    titles = {section["title"] for section in document["sections"]}
    assert {"Where it stands", "Original request", "Key decisions", "Errors"} <= titles
    said = next(section for section in document["sections"] if section["name"] == "rules")
    number = said["lines"][0]["sources"][0]
    assert "Do not poll the sensor" in recording.read_text().split("\n")[number - 1]


def test_a_line_of_the_file_is_printed_in_full(recording: Path, tmp_path: Path) -> None:
    printed = segue_context(str(recording), "--expand", "1,2", home=tmp_path)
    assert printed.returncode == 0
    assert printed.stdout.startswith("#1\n") and "\n#2\n[agent] I'll read the controller first" in printed.stdout


@pytest.mark.parametrize("wanted", ["0", "many", "999999"])
def test_a_line_that_is_not_there_is_refused(recording: Path, tmp_path: Path, wanted: str) -> None:
    printed = segue_context(str(recording), "--expand", wanted, home=tmp_path)
    assert (printed.returncode, printed.stdout) == (1, "")
    assert printed.stderr.startswith("segue: ")


def test_two_contexts_are_compared(recording: Path, tmp_path: Path) -> None:
    longer = tmp_path / "longer.jsonl"
    more = {"type": "user", "message": {"role": "user", "content": "Never heat an empty kettle."}, "uuid": "z"}
    longer.write_text(recording.read_text() + json.dumps(more) + "\n")
    printed = segue_context("--diff", str(recording), str(longer), home=tmp_path)
    assert printed.returncode == 0
    assert '+- "Never heat an empty kettle."' in printed.stdout


def test_the_number_of_a_line_stays_when_the_file_grows(recording: Path, tmp_path: Path) -> None:
    before = segue_context(str(recording), home=tmp_path).stdout
    with recording.open("a") as file:
        file.write(json.dumps({"type": "user", "message": {"role": "user", "content": "Go on."}, "uuid": "z"}) + "\n")
    after = segue_context(str(recording), home=tmp_path).stdout
    assert next(line for line in before.split("\n") if "Do not poll" in line) in after


@pytest.mark.parametrize("content", [None, b"", b"\x00\xff\x00" * 500, b"not json\n"])
def test_a_file_that_is_no_session_is_refused_with_a_sentence(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    if content is not None:
        file.write_bytes(content)
    printed = segue_context(str(file), home=tmp_path)
    assert (printed.returncode, printed.stdout) == (1, "")
    assert printed.stderr.startswith("segue: ") and "Traceback" not in printed.stderr


# ── of a workflow ───────────────────────────────────────────────────────────────────────────────────


def test_the_context_of_this_directorys_workflow_is_printed_and_nothing_else(segue: Any, service: Standin) -> None:
    result = segue("context")
    assert (result.stdout, result.stderr) == (CONTEXT, "")
    assert ("context", ID, None) in service.asked


def test_the_exam_of_a_workflows_context_goes_to_the_error_stream(segue: Any, service: Standin) -> None:
    result = segue("context", "add-parser", "--budget", "1000", "--exam")
    assert result.stdout == CONTEXT
    assert result.stderr == (
        "exam: 90%, about 20 of 4000 tokens\n  tasks: 100%\n  files: 80%\n  missing: a changed file: a.py\n"
    )
    assert ("context", ID, 1000) in service.asked


def test_the_context_of_a_workflow_as_a_document(segue: Any, service: Standin) -> None:
    assert json.loads(segue("context", "add-parser", "--json").stdout)["exam"]["score"] == 0.9


def test_a_name_that_is_neither_a_workflow_nor_a_file_is_said_so(segue: Any, service: Standin) -> None:
    result = segue("context", "nothing-of-that-name")
    assert result.exit_code == 1
    assert "nothing-of-that-name" in result.stderr


def test_a_name_that_no_file_can_have_is_looked_for_among_the_workflows(segue: Any, service: Standin) -> None:
    result = segue("context", "x" * 3_000)
    assert result.exit_code == 1
    assert result.stderr.startswith("segue: No workflow is called ")
