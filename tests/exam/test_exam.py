"""The exam: questions from the raw record, falsehoods first."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from segue.contextfile import compiled_file, evidence_of_file
from segue.exam import Evidence, entries_of_file, entries_of_journal, evidence_of, grade, questions_of
from segue.model import events as e
from segue.model.ids import PromptId, Seq, WorkflowId
from tests.recordings import ClaudeFile, CodexFile
from tests.recordings.kettle import kettle_rollout, kettle_session

FALSE = (
    "- The last test run, `ruff check src`, passed.",
    "- All tests pass and everything is committed.",
    "- Commit 9f8e7d6 Describe the change for users",
)


@pytest.fixture(params=[kettle_session, kettle_rollout], ids=["claude", "codex"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return request.param().write(tmp_path)


def test_an_empty_text_knows_nothing(file: Path) -> None:
    assert grade("", evidence_of_file(file)).score == 0.0


def test_a_bag_of_identifiers_is_not_a_text(file: Path) -> None:
    evidence = evidence_of_file(file)
    names = " ".join(word for _, text, _ in evidence.spoken() for word in text.split())
    bag = "\n".join(sorted(set(names.split())))
    compiled, verdict, _ = compiled_file(file, 2000)
    assert verdict is not None
    assert grade(bag, evidence).score < 0.5 * verdict.score
    assert grade(compiled.text, evidence).score == verdict.score


def test_a_context_that_fits_fails_no_question(file: Path) -> None:
    context, verdict, _ = compiled_file(file, 4000)
    assert verdict is not None
    assert context.left_out == 0
    assert [question.about for question in verdict.missing] == []


@pytest.mark.parametrize("planted", [FALSE[0], FALSE[2]])
def test_a_falsehood_is_found_and_costs(file: Path, planted: str) -> None:
    evidence = evidence_of_file(file)
    text = compiled_file(file, 4000)[0].text
    told = grade(f"{text}\n{planted}", evidence)
    assert [each.line for each in told.falsehoods] == [planted]
    assert told.score < grade(text, evidence).score


def evidence_in(session: ClaudeFile | CodexFile) -> Evidence:
    return evidence_of(entries_of_file(json.dumps(line).encode() for line in session.lines))


def failing() -> Evidence:
    session = ClaudeFile().user("Repair the importer of the shop.")
    return evidence_in(session.runs("go test ./...", "--- FAIL: TestA\nFAIL", code=1))


@pytest.mark.parametrize(
    "claim",
    [
        "- The last test run, `go test ./...`, passed.",
        "### Commands that worked\n- `go test ./...`",
        "All tests pass now.",
        '### What the user said since\n- "Please rename the importer to reader."',
    ],
)
def test_success_that_the_record_denies_is_a_falsehood(claim: str) -> None:
    assert len(grade(claim, failing()).falsehoods) == 1


@pytest.mark.parametrize(
    "claim",
    ["- The last test run, `go test ./...`, FAILED.", "- `go test ./...` has an unknown outcome.", "The importer."],
)
def test_the_truth_is_no_falsehood(claim: str) -> None:
    assert grade(claim, failing()).falsehoods == ()


def test_what_was_said_at_the_time_is_history_and_no_claim() -> None:
    session = ClaudeFile().user("Go.").says("All tests pass now.").runs("go test ./...", "--- FAIL: TestA", code=1)
    evidence = evidence_in(session)
    assert grade("#2 All tests pass now.", evidence).falsehoods == ()


def test_injected_text_is_not_asked_for() -> None:
    session = CodexFile().user("<environment_context>\nx\n</environment_context>").user("Never use nails for the hull.")
    evidence = evidence_in(session)
    assert [text for _, text in evidence.requests] == ["Never use nails for the hull."]


def test_the_questions_are_the_same_every_time(file: Path) -> None:
    assert questions_of(evidence_of_file(file)) == questions_of(evidence_of_file(file))


def test_the_journal_is_asked_like_a_file() -> None:
    events: list[e.Event] = [
        e.PromptQueued(prompt_id=PromptId("p"), text="Never use nails for the hull."),
        e.AgentMessage(text="I glue the hull because nails rust in the water of the lake."),
        e.ToolCalled(call_id="1", title="Bash", tool="execute", input={"command": "make test"}),
        e.ToolFinished(call_id="1", status="failed", output="1 failed"),
    ]
    at = datetime(2026, 1, 2, tzinfo=UTC)
    records = [
        e.Record(workflow_id=WorkflowId("w"), seq=Seq(n), at=at, session_id=None, run=None, event=event, hash="")
        for n, event in enumerate(events, start=1)
    ]
    evidence = evidence_of(entries_of_journal(records))
    assert {question.category for question in questions_of(evidence)} >= {"request", "failures", "decisions"}
    assert evidence.runs[0].outcome == "failed"


def test_a_copy_does_not_grow() -> None:
    evidence = failing()
    before = evidence.copy()
    for entry in entries_of_file([b'{"type":"user","message":{"content":"More words of the user."}}']):
        evidence.add(entry)
    assert len(evidence.requests) == len(before.requests) + 1
