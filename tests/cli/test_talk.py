import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segue import client
from segue.cli import talk
from segue.model import events as e
from segue.model.errors import WrongState
from segue.model.ids import AttemptId, PromptId, RequestId, TaskId
from segue.model.requests import PictureGiven
from segue.model.status import Failure, Purpose, Way, WorkflowStatus
from segue.model.views import FailureView, Question
from tests.server.serving import serving
from tests.server.standin_service import ID, NOON, SESSION, VIEW, Standin

BOUND = 30.0
MINE = PromptId("prompt-1")
PAUSED = replace(VIEW, status=WorkflowStatus.PAUSED)
SENT = e.PromptSent(prompt_id=MINE)
ENDED = e.TurnEnded(prompt_id=MINE, reason="end_turn")
BACK = e.RunQueued(way=Way.NATIVE, reason="it can", purpose=Purpose.TALK)
CRASHED = FailureView(
    failure=Failure.PROCESS_EXITED, meaning="The agent's process ended by itself.", remedies=("segue resume",)
)


def answer(service: Standin, *events: e.Event, **changes: Any) -> None:
    """Let this happen when something is said to the one workflow there is, which is paused."""
    service.views = {ID: replace(PAUSED, **changes)}
    service.plot = [(event, {}) for event in events]


def test_an_answer_is_printed_in_full_as_the_agent_wrote_it(segue: Any, service: Standin) -> None:
    long = "word " * 500
    answer(
        service,
        BACK,
        SENT,
        e.AgentThought(text="hm"),
        e.AgentMessage(text="Two things:\n\n- the "),
        e.AgentMessage(text="parser"),
        e.ToolCalled(call_id="c", title="List\nfiles", tool="execute"),
        e.ToolFinished(call_id="c", status="completed", output="parser.py"),
        e.AgentMessage(text=long),
        ENDED,
    )
    result = segue("prompt", "What is left?")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "The agent is brought back to talk, in the same conversation: it can\n"
        "Two things:\n\n- the parser\n"
        "→ List files\n"
        "  completed: parser.py\n"
        f"{long}\n"
    )
    assert service.request("prompt").text == "What is left?"


def test_only_what_belongs_to_the_answer_is_printed(segue: Any, service: Standin) -> None:
    other = e.TurnEnded(prompt_id=PromptId("prompt-0"), reason="end_turn")
    before = (e.TaskStarted(task_id=TaskId("t2"), attempt=AttemptId("a")), e.AgentMessage(text="busy"), other)
    answer(service, *before, SENT, e.AgentMessage(text="Yes?"), ENDED, e.AgentMessage(text="later"))
    assert segue("prompt", "Hello").stdout == "Yes?\n"


def test_prompt_reads_stdin_and_sends_variables(segue: Any, service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "mine")
    answer(service, SENT, ENDED)
    assert segue("prompt", "-", typed="One\ntwo\n").stdout == "(The agent ended its turn without a word.)\n"
    request = service.request("prompt")
    assert (request.text, request.environment["MY_KEY"]) == ("One\ntwo", "mine")


def test_pictures_go_along_by_their_file_names(segue: Any, service: Standin, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.png", "two.gif")]
    for file in files:
        file.write_bytes(file.name.encode() * 100_000)
    answer(service, SENT, ENDED)
    assert segue("prompt", "Like these", "--image", str(files[0]), "--image", str(files[1])).exit_code == 0
    assert service.request("prompt").images == tuple(
        PictureGiven(name=file.name, data=file.read_bytes()) for file in files
    )
    refused = segue("prompt", "Like this", "--image", str(tmp_path / "none.png"))
    assert refused.exit_code == 2 and "does not exist" in refused.stderr


def test_a_picture_is_a_file_and_read_up_to_what_an_agent_takes(
    segue: Any, service: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = segue("prompt", "Like this", "--image", "/dev/null")
    assert (device.exit_code, device.stderr) == (1, "segue: /dev/null cannot be read: it is not a file.\n")
    (tmp_path / "large.png").write_bytes(bytes(1_000_001))
    monkeypatch.setattr(talk, "LARGEST", 1_000_000)
    large = segue("prompt", "Like this", "--image", str(tmp_path / "large.png"))
    assert large.exit_code == 1 and "large.png is too large: 1 MB is the most." in large.stderr


def test_a_question_in_the_middle_says_how_it_is_answered(segue: Any, service: Standin) -> None:
    question = e.PermissionRequested(request_id=RequestId("r"), call_id="c", title="Delete?", tool="delete", options=())
    answer(service, SENT, question, ENDED)
    assert "? Delete?\n  Answer with: segue approve add-parser, or: segue reject add-parser\n" in (
        segue("prompt", "Clean up").stdout
    )


def test_words_that_answer_a_question_are_no_prompt(segue: Any, service: Standin) -> None:
    question = Question(request_id=RequestId("r"), title="Which name?", tool="other", requested_at=NOON, words=True)
    service.views = {ID: replace(VIEW, question=question)}
    service.prompted = {"status": "answered", "prompt_id": None, "reason": "It answers: Which name?"}
    assert segue("prompt", "Call it segue.").stdout == "✓ It answers: Which name?\n"


def test_nothing_to_say_is_refused_before_a_server_is_started(segue: Any, home: Any) -> None:
    result = segue("prompt", "  ")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("segue: There is nothing to say.\n  Give the words: segue prompt")
    assert not home.exists()


def test_whoever_detaches_is_told_how_the_agent_came_back_and_no_more(segue: Any, service: Standin) -> None:
    answer(service, BACK, SENT)
    assert segue("prompt", "Hello", "--detach").stdout == (
        "The agent is brought back to talk, in the same conversation: it can\n"
        "The agent has it. Watch for the answer with: segue logs --follow add-parser\n"
    )
    assert (service.request("prompt").wait, service.request("prompt").now) == (False, False)


def test_whoever_cannot_wait_has_the_agent_interrupted(segue: Any, service: Standin) -> None:
    answer(service, BACK, SENT)
    assert segue("prompt", "Hello", "--detach", "--now").exit_code == 0
    assert service.request("prompt").now


def test_words_that_wait_are_no_failure(segue: Any, service: Standin) -> None:
    answer(service, status=WorkflowStatus.IN_PROGRESS, current_task=TaskId("t2"))
    service.prompted = {"status": "waiting", "reason": "The agent gets it at the end of what it does now."}
    result = segue("prompt", "Hello")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "The agent is at work; waiting for the end of what it does now.\n"
        "It waits. The agent gets it at the end of what it does now.\n"
        "  Watch for the answer with: segue logs --follow add-parser\n"
    )


@pytest.mark.parametrize(
    ("options", "interrupted", "sentence"),
    [
        (["--now"], True, "The agent was at work: it is interrupted, told, and goes on after."),
        (["--now"], False, "It waits. It gets it later."),
        ([], False, "The agent is at work; it is told at the end of what it does now."),
    ],
)
def test_whoever_leaves_an_agent_at_work_is_told_once_when_it_hears(
    segue: Any, service: Standin, options: list[str], interrupted: bool, sentence: str
) -> None:
    answer(service, status=WorkflowStatus.IN_PROGRESS, current_task=TaskId("t2"))
    service.prompted = {"status": "waiting", "reason": "It gets it later.", "interrupted": interrupted}
    assert segue("prompt", "Hello", "--detach", *options).stdout == (
        f"{sentence}\n  Watch for the answer with: segue logs --follow add-parser\n"
    )


@pytest.mark.parametrize("options", [["--now"], []])
def test_a_message_before_a_pause_is_told_the_pause_is_first(segue: Any, service: Standin, options: list[str]) -> None:
    question = Question(request_id=RequestId("r"), title="Delete?", tool="delete", requested_at=NOON)
    service.views = {ID: replace(VIEW, current_task=TaskId("t2"), pause_requested=True, question=question)}
    service.prompted = {"status": "waiting", "reason": "A pause was asked for."}
    assert segue("prompt", "Hello", *options).stdout == (
        "A pause was asked for, and comes first; the agent gets it when the work goes on.\n"
        "  The agent asks: Delete?\n"
        "    segue approve add-parser, or: segue reject add-parser\n"
        "  Watch for the answer with: segue logs --follow add-parser\n"
    )


@pytest.mark.parametrize(
    ("options", "said"), [([], "The agent is at work; waiting for the end of what it does now.\n"), (["--detach"], "")]
)
def test_refused_messages_promise_no_delivery(segue: Any, service: Standin, options: list[str], said: str) -> None:
    answer(service, status=WorkflowStatus.IN_PROGRESS, current_task=TaskId("t2"))
    service.refusals["prompt"] = WrongState("50 messages wait for the agent already; this one was not taken.")
    result = segue("prompt", "-w", ID, "Hello", *options)
    assert (result.exit_code, result.stdout) == (1, said)
    assert "this one was not taken" in result.stderr


def test_nothing_is_said_to_be_interrupted_before_that_is_known(segue: Any, service: Standin) -> None:
    answer(
        service, SENT, e.AgentMessage(text="Yes?"), ENDED, status=WorkflowStatus.IN_PROGRESS, current_task=TaskId("t2")
    )
    told = "The agent was between two turns: nothing was interrupted.\nYes?\n"
    assert segue("prompt", "Hello", "--now").stdout == told
    service.refusals["prompt"] = WrongState("50 messages wait for the agent already; this one was not taken.")
    refused = segue("prompt", "Hello", "--now")
    assert (refused.exit_code, refused.stdout) == (1, "")


def test_whose_words_went_out_with_others_hears_the_answer_to_all(segue: Any, service: Standin) -> None:
    last = PromptId("prompt-2")
    sent = (e.PromptSent(prompt_id=MINE, part_of=last), e.PromptSent(prompt_id=last))
    answer(service, *sent, e.AgentMessage(text="So be it."), e.TurnEnded(prompt_id=last, reason="end_turn"))
    result = segue("prompt", "Hello")
    assert (result.exit_code, result.stdout) == (0, "So be it.\n")


def test_words_that_were_not_delivered_are_a_failure_that_says_what_to_do(segue: Any, service: Standin) -> None:
    answer(service, BACK, failure=CRASHED, waiting_messages=1)
    service.prompted = {"status": "not_delivered", "reason": "The agent did not start.", "way": Way.NATIVE}
    result = segue("prompt", "Hello")
    assert result.exit_code == 1
    assert result.stdout == "The agent is brought back to talk, in the same conversation: it can\n"
    assert result.stderr == (
        "segue: The agent did not get it: The agent did not start.\n"
        "  you can: segue resume add-parser\n"
        "  It is kept, and is the first thing the agent gets when it is back.\n"
    )


def test_an_agent_that_dies_in_the_middle_is_a_failure(segue: Any, service: Standin) -> None:
    ended = e.RunEnded(outcome="crashed", reason="It ended with code 1.", failure=Failure.PROCESS_EXITED)
    answer(service, SENT, e.AgentMessage(text="I am"), ended, failure=CRASHED)
    result = segue("prompt", "Hello")
    assert (result.exit_code, result.stdout) == (1, "I am\n")
    assert result.stderr == (
        "segue: The agent did not answer to the end: It ended with code 1.\n  you can: segue resume add-parser\n"
    )


def test_a_turn_that_fails_says_why(segue: Any, service: Standin) -> None:
    failed = e.TurnFailed(prompt_id=MINE, failure=Failure.QUOTA, message="no more", reset_at=NOON)
    answer(service, SENT, failed, e.RunEnded(outcome="crashed", reason="no more"))
    result = segue("prompt", "Hello")
    assert result.exit_code == 1
    assert result.stdout.startswith("! The agent could not go on (quota): no more; full again at ")


def test_a_turn_that_stops_early_says_so(segue: Any, service: Standin) -> None:
    answer(service, SENT, e.AgentMessage(text="I can"), e.TurnEnded(prompt_id=MINE, reason="max_tokens"))
    result = segue("prompt", "Hello")
    assert (result.exit_code, result.stdout) == (1, "I can\n")
    assert result.stderr == "segue: The agent stopped before it was done (max tokens).\n"


def test_with_json_the_answer_is_a_document_and_then_events(segue: Any, service: Standin) -> None:
    answer(service, BACK, SENT, e.AgentMessage(text="Yes?"), ENDED, e.AgentMessage(text="later"))
    prompted, *records = [json.loads(line) for line in segue("prompt", "Hello", "--json").stdout.splitlines()]
    assert (prompted["status"], prompted["session"]) == ("sent", SESSION.id)
    assert [record["kind"] for record in records] == ["run.queued", "prompt.sent", "agent.message", "turn.ended"]
    (document,) = segue("prompt", "Hello", "--json", "--detach").stdout.splitlines()
    assert json.loads(document)["prompt_id"] == MINE


@pytest.mark.parametrize("status", [WorkflowStatus.PAUSED, WorkflowStatus.FAILED, WorkflowStatus.REVIEW])
def test_any_workflow_that_is_not_over_can_be_talked_to(segue: Any, service: Standin, status: WorkflowStatus) -> None:
    answer(service, SENT, ENDED, status=status)
    assert segue("prompt", "Hello").exit_code == 0


@pytest.mark.usefixtures("standin_command")
def test_prompt_starts_the_server_and_says_so(segue: Any) -> None:
    result = segue("prompt", "Hello", "--detach")
    assert result.stdout.startswith(f"Started the Segue server (pid {client.find().pid}).\nThe agent has it.")


# ── while the agent speaks ──────────────────────────────────────────────────────────────────────────


def talking() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "segue", "prompt", "Hello"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_answer_appears_while_it_is_spoken_and_ctrl_c_leaves_the_agent_alone(service: Standin) -> None:
    answer(service, SENT, e.AgentMessage(text="I think\n"))
    with talking() as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "I think\n"
        assert service.waiting.wait(BOUND)
        running.send_signal(signal.SIGINT)
        out, error = running.communicate(timeout=BOUND)
    assert (running.returncode, error) == (0, "")
    assert out == "Detached: the agent goes on without you. Watch it with: segue logs --follow add-parser\n"
    assert not any(asked[0] in ("cancel", "pause") for asked in service.asked)


def test_a_server_that_stops_in_the_middle_of_an_answer_is_a_sentence() -> None:
    service = Standin(VIEW)
    answer(service, SENT, e.AgentMessage(text="I think"))
    with serving(service):
        running = talking()
        assert service.waiting.wait(BOUND)
    with running:
        out, error = running.communicate(timeout=BOUND)
    assert (running.returncode, out) == (1, "I think\n")
    assert error == "segue: The Segue server is stopping.\n  What was said so far is in: segue logs add-parser\n"
