import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segue import client, paths
from segue.cli import app
from segue.cli.output import moment
from segue.model.agents import Limits
from segue.model.errors import CheckpointNotFound, WrongState
from segue.model.events import AgentMessage, PauseRequested, TaskCompleted, TaskStarted, WorkflowMoved
from segue.model.ids import AttemptId, CheckpointId, RequestId, TaskId, WorkflowId
from segue.model.plan import Task, TaskStatus
from segue.model.requests import Answer, ApproveRequest, PlanText
from segue.model.status import Failure, Trigger, Way, WorkflowStatus
from segue.model.views import ContextView, FailureView, Question, RetryView, TaskView, Undelivered, WorkflowView
from tests.server.standin_service import ID, NOON, SNAPSHOT, VIEW, Standin

QUESTION = Question(
    request_id=RequestId("request-1"), title="Delete old\x1b[2J files?", tool="delete", requested_at=NOON
)
COMMANDS = [
    *(
        "up",
        "down",
        "status",
        "demo",
        "doctor",
        "run",
        "plan",
        "approve",
        "reject",
        "pause",
        "resume",
        "cancel",
        "prompt",
        "logs",
    ),
    *("sessions list", "sessions show", "agents list", "agents check"),
]


def be(service: Standin, *views: WorkflowView) -> None:
    """Let these be all the workflows there are."""
    service.views = {view.id: view for view in views}
    service.records = {view.id: [] for view in views}


def other(**changes: Any) -> WorkflowView:
    return replace(VIEW, id=WorkflowId("workflow-2026-01-02-zzzzzz"), slug="fix-lexer", worktree="/other", **changes)


# ── use ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_and_takes_json(segue: Any, name: str) -> None:
    explained = segue(*name.split(), "--help")
    assert explained.exit_code == 0
    assert "--json" in explained.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["run"],
        ["run", "one", "two"],
        ["run", "x", "--permissions", "some"],
        ["run", "x", "--plan", "p.md", "--one-task"],
        ["run", "x", "--no-test", "--test", "pytest"],
        ["run", "x", "--review", "same", "--no-review"],
        ["run", "x", "--max-cost", "nan"],
        ["run", "x", "--max-cost", "inf"],
        ["run", "x", "--max-cost", "-1"],
        ["run", "x", "--max-cost", "much"],
        ["reject", "one", "two", "three"],
        ["run", "x", "--repository", "/missing"],
        ["pause", "--nonsense"],
        ["pause", "one", "-w", "two"],
        ["logs", "--after", "-1"],
        ["prompt"],
        ["prompt", "Hello", "one", "-w", "two"],
        ["resume", "--fresh", "--native"],
        ["resume", "--history", "--workspace-only"],
        ["resume", "--from", "001", "--workspace-only"],
        ["resume", "--context-file", "x.md", "--fresh"],
        ["sessions", "nonsense"],
        ["agents", "check"],
        ["up", "--port", "70000"],
        ["status", "--jason"],
    ],
)
def test_wrong_use_ends_with_two_and_says_why(segue: Any, arguments: list[str]) -> None:
    result = segue(*arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", ["plan", "pause", "cancel", "logs", "sessions list", "sessions show"])
def test_what_needs_a_server_says_so(segue: Any, name: str) -> None:
    result = segue(*name.split())
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "segue: No Segue server is running.\n  Start one with: segue up\n"


def test_with_json_an_error_is_a_document_too(segue: Any) -> None:
    result = segue("pause", "--json")
    assert json.loads(result.stdout)["error"]["code"] == "not_running"
    assert result.stderr.startswith("segue: No Segue server is running.")


def test_the_program_can_be_started_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "segue", "--version"], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "segue 0.1.0\n")


def test_plain_windows_is_refused_in_one_sentence() -> None:
    code = "import os, sys; from segue.__main__ import main; os.name = 'nt'; sys.argv = ['segue', 'run', 'x']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "WSL" in done.stderr


# ── which workflow ──────────────────────────────────────────────────────────────────────────────────


def test_the_workflow_of_the_current_directory_is_asked_for(segue: Any, service: Standin) -> None:
    segue("pause")
    assert service.asked[0] == ("workflows", Path.cwd(), ["pending", "in_progress", "blocked", "review", "paused"])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pause", "No active workflow in current directory."),
        ("approve", "No active workflow in current directory."),
        ("reject", "No active workflow in current directory."),
        ("cancel", "No active workflow in current directory."),
        ("resume", "No paused workflow in current directory."),
        ("prompt Hello", "No active workflow in current directory."),
        ("logs", "No workflow in current directory."),
        ("sessions list", "No workflow in current directory."),
        ("sessions show", "No workflow in current directory."),
        ("usage", "No workflow in current directory."),
    ],
)
def test_without_one_here_the_command_is_refused(segue: Any, service: Standin, name: str, sentence: str) -> None:
    be(service)
    result = segue(*name.split())
    assert (result.exit_code, result.stdout) == (1, "")
    assert sentence in result.stderr


def test_several_are_listed_and_none_is_chosen(segue: Any, service: Standin) -> None:
    be(service, VIEW, other())
    result = segue("pause")
    assert result.exit_code == 1
    assert "add-parser (in_progress), fix-lexer (in_progress)" in result.stderr
    assert not any(asked[0] == "pause" for asked in service.asked)


def test_the_worktree_one_stands_in_decides(segue: Any, service: Standin, tmp_path: Path) -> None:
    be(service, VIEW, replace(other(), worktree=str(tmp_path)))
    assert segue("pause").exit_code == 0
    assert service.asked[-1][:2] == ("pause", "workflow-2026-01-02-zzzzzz")


@pytest.mark.parametrize("arguments", [["add-parser"], ["-w", "add-parser"], ["--workflow-id", ID], [ID]])
def test_a_workflow_can_be_named(segue: Any, service: Standin, arguments: list[str]) -> None:
    be(service, VIEW, other())
    assert segue("pause", *arguments).exit_code == 0
    assert service.asked[-1][:2] == ("pause", ID)


@pytest.mark.parametrize("name", ["nobody", "../status", "a/b", "?x", "ümlaut", " "])
def test_a_name_that_nothing_has_is_refused(segue: Any, service: Standin, name: str) -> None:
    result = segue("pause", name)
    assert result.exit_code == 1
    assert "No workflow is called" in result.stderr


# ── answering, pausing, cancelling ──────────────────────────────────────────────────────────────────


def test_approve_allows_what_is_asked(segue: Any, service: Standin) -> None:
    be(service, replace(VIEW, question=QUESTION), other())
    result = segue("approve")
    assert (result.exit_code, result.stdout) == (0, "✓ Approved: Delete old [2J files?\n")
    assert service.asked[-1] == ("answer", ID, ApproveRequest(environment=dict(os.environ)))


def test_reject_refuses_and_says_why(segue: Any, service: Standin) -> None:
    be(service, replace(VIEW, question=QUESTION))
    result = segue("reject", "-r", "keep them", "--request-id", "request-1", "--json")
    assert json.loads(result.stdout)["status"] == "rejected"
    _, _, answer = service.asked[-1]
    assert (answer.allow, answer.reason, answer.request_id) == (False, "keep them", "request-1")


def test_an_answer_without_a_question_is_refused(segue: Any, service: Standin) -> None:
    result = segue("approve")
    assert (result.exit_code, result.stderr) == (1, "segue: add-parser asks nothing.\n")


PLAN = (
    Task(id=TaskId("t1"), title="Write the parser"),
    Task(id=TaskId("t2"), title="Test", depends_on=(TaskId("t1"),)),
)
BLOCKED = replace(
    VIEW,
    status=WorkflowStatus.BLOCKED,
    tasks=(),
    tasks_total=0,
    asks="Is this plan good (2 tasks)?",
    proposed_plan=PLAN,
)
GOES_ON = WorkflowMoved(before=WorkflowStatus.IN_PROGRESS, after=WorkflowStatus.COMPLETED)


def said(service: Standin) -> Answer:
    return next(asked[2] for asked in service.asked if asked[0] == "answer")


def test_an_approved_plan_is_followed(segue: Any, service: Standin) -> None:
    be(service, BLOCKED, other())
    service.plot = [(GOES_ON, {"status": WorkflowStatus.COMPLETED, "tasks_total": 2})]
    lines = segue("approve").stdout.splitlines()
    assert lines[0] == "✓ Approved: a plan of 2 tasks"
    assert lines[1].startswith("✓ Workflow resumed (rehearsal, session 1, run 2, the same conversation")
    assert lines[-2:] == ["Completed", "✓ Add a parser: 1/2 tasks, 1 session, 1 run"]
    assert said(service).environment == dict(os.environ)


def test_another_plan_is_approved_and_not_followed(segue: Any, service: Standin) -> None:
    be(service, BLOCKED)
    Path("plan.md").write_text("- [ ] One\n")
    result = segue("approve", "--plan", "plan.md", "--detach", "--json")
    assert json.loads(result.stdout)["resumed"]["way"] == "native"
    assert said(service).plan == PlanText(format="markdown", text="- [ ] One\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["Use a table"], "Use a table"),
        (["add-parser", "Use a table"], "Use a table"),
        (["add-parser", "tables"], "tables"),
        (["add-parser", "-r", "tables"], "tables"),
        (["-w", "add-parser", "tables"], "tables"),
        (["-r", "tables"], "tables"),
    ],
)
def test_a_plan_is_rejected_with_a_reason(segue: Any, service: Standin, words: list[str], reason: str) -> None:
    be(service, BLOCKED)
    assert segue("reject", *words, "--detach").stdout.startswith("✓ Rejected: a plan of 2 tasks\n")
    assert (said(service).allow, said(service).reason) == (False, reason)


def test_a_reason_that_is_taken_for_a_name_says_how_it_is_given(segue: Any, service: Standin) -> None:
    be(service, BLOCKED)
    result = segue("reject", "short")
    assert (result.exit_code, result.stderr.splitlines()[1]) == (1, "  If it is the reason: segue reject -r short")
    assert "-r" not in segue("reject", "nobody", "too long").stderr


@pytest.mark.parametrize("words", [["approve"], ["reject", "Use a table"]])
def test_answering_a_plan_while_paused_names_the_way_back(segue: Any, service: Standin, words: list[str]) -> None:
    paused = replace(BLOCKED, status=WorkflowStatus.PAUSED, asks="")
    be(
        service,
        paused,
        other(status=WorkflowStatus.PAUSED),
        replace(paused, id=WorkflowId("w-3"), status=WorkflowStatus.COMPLETED),
    )
    service.refusals["answer"] = WrongState("Its plan waits for no answer now.", hint="Resume it.")
    assert segue(*words).stderr == "segue: Its plan waits for no answer now.\n  Resume it.\n"
    assert service.asked[-1][:2] == ("answer", ID)


@pytest.mark.parametrize(("asked", "words"), [("answer", ["approve"]), ("prompt", ["prompt", "Hello there"])])
def test_messages_to_an_ended_workflow_are_refused(segue: Any, service: Standin, asked: str, words: list[str]) -> None:
    done = replace(VIEW, status=WorkflowStatus.COMPLETED)
    be(service, done)
    service.refusals[asked] = WrongState("The workflow is completed.")
    assert segue(*words).stderr == "segue: The workflow is completed.\n"
    be(service, done, other(status=WorkflowStatus.CANCELLED))
    assert "No active workflow in current directory." in segue(*words).stderr


def test_the_plan_is_printed_to_be_changed(segue: Any, service: Standin) -> None:
    be(service, BLOCKED)
    assert segue("plan").stdout == "tasks:\n- t1\n"
    assert json.loads(segue("plan", "--json").stdout)["status"] == "proposed"
    be(service, VIEW)
    assert "has no plan yet" in segue("plan").stderr


def test_whoever_looks_for_a_plan_that_nobody_makes_now_is_told_how_it_goes_on(segue: Any, service: Standin) -> None:
    be(service, VIEW)
    assert segue("plan").stderr.endswith("\n  Watch it with: segue logs --follow add-parser\n")
    be(service, replace(VIEW, status=WorkflowStatus.PAUSED))
    assert segue("plan").stderr.endswith("\n  Go on with: segue resume add-parser\n")


def test_status_shows_the_plan_that_waits(segue: Any, service: Standin) -> None:
    be(service, BLOCKED)
    assert segue("status").stdout.splitlines()[1:] == [
        "  add-parser                        blocked       a plan waits for your word",
        "      1. Write the parser",
        "      2. Test (after t1)",
        "      ? Is this plan good (2 tasks)?",
        "        segue approve add-parser, or: segue reject add-parser 'WHAT IS WRONG'",
    ]


def test_what_is_done_of_a_plan_that_waits_is_ticked(segue: Any, service: Standin) -> None:
    done = TaskView(id=TaskId("t1"), title="Write the parser", status=TaskStatus.COMPLETED, depends_on=())
    be(service, replace(BLOCKED, tasks=(done,)))
    assert segue("status").stdout.splitlines()[2:4] == ["      1. ✓ Write the parser", "      2. Test (after t1)"]


@pytest.mark.parametrize("status", [WorkflowStatus.CANCELLED, WorkflowStatus.COMPLETED])
def test_the_plan_of_an_ended_workflow_is_not_shown(segue: Any, service: Standin, status: WorkflowStatus) -> None:
    be(service, replace(BLOCKED, status=status, asks=""))
    assert segue("status").stdout.splitlines()[1:] == [f"  add-parser                        {status:<12}  no plan"]


def test_a_task_that_waits_for_a_word_names_the_three_ways_on(segue: Any, service: Standin) -> None:
    be(service, replace(VIEW, status=WorkflowStatus.REVIEW, asks="“Test” fails. Is it done all the same?"))
    assert segue("status").stdout.splitlines()[2:6] == [
        "      ? “Test” fails. Is it done all the same?",
        "        segue approve add-parser: it is taken as done, and the work goes on",
        "        segue reject add-parser 'WHAT IS WRONG': it is given back, with your words",
        "        segue resume add-parser: it is tried again as it is",
    ]


def test_why_a_task_is_done_goes_along_with_the_word(segue: Any, service: Standin) -> None:
    be(service, BLOCKED)
    segue("approve", "-r", "Good enough.", "--detach")
    assert said(service).reason == "Good enough."


def test_a_resume_that_starts_nobody_says_so(segue: Any, service: Standin) -> None:
    be(service, replace(BLOCKED, status=WorkflowStatus.PAUSED, asks=""))
    service.resumed = {"status": "blocked"}
    blocked = WorkflowMoved(before=WorkflowStatus.PAUSED, after=WorkflowStatus.BLOCKED)
    service.plot = [(blocked, {"status": WorkflowStatus.BLOCKED, "asks": BLOCKED.asks})]
    result = segue("resume")
    assert result.exit_code == 0
    assert "  Tasks: a plan waits for your word\n" in result.stdout
    assert result.stdout.endswith(
        "✓ It waits for your word again, as it did before the pause; no agent was started.\n"
        "  1. Write the parser\n"
        "  2. Test (after t1)\n"
        "Blocked\n"
        "? Is this plan good (2 tasks)?\n"
        "  segue approve add-parser, or: segue reject add-parser 'WHAT IS WRONG'\n"
        "  To change it first: segue plan add-parser > plan.yaml, and then: segue approve add-parser --plan plan.yaml\n"
    )


def test_pause_waits_and_names_the_snapshot(segue: Any, service: Standin) -> None:
    result = segue("pause", "-r", "lunch")
    assert result.stdout == (
        "Pausing workflow add-parser...\n"
        f"✓ Workflow paused (snapshot: {SNAPSHOT.id})\n"
        "  Resume with: segue resume --workflow-id add-parser\n"
    )
    assert service.asked[-1] == ("pause", ID, "lunch", True)


def test_whoever_waits_for_a_pause_is_told_of_the_question_it_waits_for(segue: Any, service: Standin) -> None:
    be(service, replace(VIEW, question=QUESTION))
    service.plot = [(PauseRequested(trigger=Trigger.PAUSE, reason="lunch", force_at=NOON), {})]
    assert segue("pause", "-r", "lunch").stdout.splitlines() == [
        "Pausing workflow add-parser...",
        "  The agent asks: Delete old [2J files?",
        "    segue approve add-parser, or: segue reject add-parser",
        f"  It is paused at the latest at {moment(NOON.isoformat())}, by force.",
        f"✓ Workflow paused (snapshot: {SNAPSHOT.id})",
        "  Resume with: segue resume --workflow-id add-parser",
    ]
    asked = [asked for asked in service.asked if asked[0] == "pause"]
    assert asked == [("pause", ID, "lunch", False), ("pause", ID, "lunch", True)]


def test_a_pause_without_a_snapshot_names_none(segue: Any, service: Standin) -> None:
    service.paused = {"snapshot_id": None}
    assert "\n✓ Workflow paused\n" in segue("pause").stdout


def test_pause_need_not_wait(segue: Any, service: Standin) -> None:
    result = segue("pause", "--no-wait", "--json")
    answer = {"status": "pause_requested", "workflow_id": ID, "snapshot_id": None, "retry_called_off": False}
    assert json.loads(result.stdout) == answer
    assert service.asked[-1] == ("pause", ID, "", False)


def test_a_refusal_of_the_server_is_passed_on(segue: Any, service: Standin) -> None:
    service.failure = WrongState("It is paused already.", hint="Resume it.")
    result = segue("pause", "add-parser")
    assert (result.exit_code, result.stderr) == (1, "segue: It is paused already.\n  Resume it.\n")


def test_cancel_ends_a_workflow(segue: Any, service: Standin) -> None:
    result = segue("cancel", "-r", "no need")
    assert (result.exit_code, result.stdout) == (0, "✓ Workflow add-parser cancelled\n")
    assert service.asked[-1] == ("cancel", ID, "no need")


# ── resuming ────────────────────────────────────────────────────────────────────────────────────────

PAUSED = replace(VIEW, status=WorkflowStatus.PAUSED, paused_at=NOON, last_snapshot=SNAPSHOT.id)


def test_pause_calls_off_what_would_go_on_by_itself(segue: Any, service: Standin) -> None:
    retry = RetryView(step="t1", attempt=2, of=3, at=NOON, reason="It went away.")
    be(service, replace(PAUSED, retry=retry), replace(PAUSED, id=WorkflowId("w-2"), slug="other"))
    assert "\n  What was to be tried again by itself was called off.\n" in segue("pause").stdout
    assert service.asked[-1] == ("pause", ID, "", True)


def test_what_is_paused_can_be_paused_again(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    assert SNAPSHOT.id in segue("pause").stdout


def test_resume_sums_up_what_it_goes_on_with(segue: Any, service: Standin) -> None:
    be(service, replace(PAUSED, undelivered=(Undelivered(prompt_id="prompt-1"),)))
    result = segue("resume", "--detach")
    assert result.stdout == (
        "Resuming from session 1:\n"
        f"  Paused: {moment(NOON.isoformat())}\n"
        "  Tasks: 1 done, 1 remaining\n"
        "  ! It is not known whether the agent got prompt prompt-1; it is not sent again.\n"
        "\nResuming workflow add-parser...\n"
        "✓ Workflow resumed (rehearsal, session 1, run 2, the same conversation: the agent knows the conversation)\n"
        "  → native   40,000 tokens  the whole conversation, as the agent last counted it\n"
        "    context   4,000 tokens  at most: its budget, and the next request\n"
        "    history         closed  nothing was said yet\n"
        "    fresh          unknown  estimated from its length\n"
        "  ! Since the pause: HEAD moved from aaaa to bbbb.\n"
    )
    assert result.exit_code == 0


def test_a_resume_that_is_refused_says_nothing_else(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    service.refusals["resume"] = CheckpointNotFound("This workflow has no checkpoint '999'.")
    result = segue("resume", "--from", "999")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "segue: This workflow has no checkpoint '999'.\n"


def test_resume_sends_the_callers_environment(segue: Any, service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "mine")
    be(service, PAUSED)
    assert json.loads(segue("resume", "--detach", "--json").stdout)["way"] == "native"
    request = service.request("resume")
    assert (request.environment["MY_KEY"], request.way) == ("mine", None)


@pytest.mark.parametrize("way", ["native", "context", "history", "fresh"])
def test_resume_asks_for_the_way_that_is_wanted(segue: Any, service: Standin, way: str) -> None:
    be(service, PAUSED)
    service.resumed = {"way": Way(way)}
    assert segue("resume", f"--{way}", "--detach").exit_code == 0
    assert service.request("resume").way == way


def test_resume_begins_with_a_context_that_was_edited(segue: Any, service: Standin, tmp_path: Path) -> None:
    file = tmp_path / "context.md"
    file.write_text("## Where we are\n")
    be(service, PAUSED)
    assert segue("resume", "--context-file", str(file), "--detach").exit_code == 0
    assert service.request("resume").context == "## Where we are\n"
    file.write_text(" ")
    refused = segue("resume", "--context-file", str(file))
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (1, "segue: The context is empty.")


def test_resume_hands_over_to_another_agent(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    assert segue("resume", "--agent", "codex", "--model", "gpt-5", "--detach").exit_code == 0
    request = service.request("resume")
    assert (request.agent, request.model) == ("codex", "gpt-5")


def test_resume_goes_back_and_says_how_to_undo_that(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    saved = CheckpointId("ckpt-2026-01-02-005")
    service.resumed = {"prices": (), "divergence": (), "saved": saved, "undone": ("The file b.txt appeared.",)}
    service.resumed |= {"left_alone": (".env",)}
    assert segue("resume", "--from", "previous", "--detach").stdout.endswith(
        "the same conversation: the agent knows the conversation)\n"
        "  - Undone: The file b.txt appeared.\n"
        "  ! No snapshot holds these, so they stayed as they are: .env\n"
        "  What was there before is ckpt-2026-01-02-005; have it again with:\n"
        "  segue resume --from ckpt-2026-01-02-005 add-parser\n"
    )
    assert service.request("resume").snapshot == "previous"


def test_resume_lets_a_workflow_use_more(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    assert segue("resume", "--max-cost", "5", "--max-time", "0", "--wait-for-quota", "--detach").exit_code == 0
    limit, resume = (asked for asked in service.asked if asked[0] in ("limit", "resume"))
    assert limit == ("limit", ID, Limits(usd=5, seconds=0), True)
    assert resume[-1].wait_for_quota


def test_the_limits_of_a_workflow_at_work_are_changed_and_it_goes_on(segue: Any, service: Standin) -> None:
    be(service, VIEW, other(status=WorkflowStatus.FAILED))
    result = segue("resume", "--max-cost", "5", "--max-tokens", "4000000", "--max-time", "0", "--wait-for-quota")
    changed = "seconds none, tokens 4,000,000, usd 5; a used-up quota is waited for"
    assert (result.exit_code, result.stdout) == (0, f"✓ add-parser goes on with other limits: {changed}\n")
    assert service.asked[-1] == ("limit", ID, Limits(usd=5, tokens=4_000_000, seconds=0), True)
    assert json.loads(segue("resume", "add-parser", "--no-wait-for-quota", "--json").stdout)["slug"] == "add-parser"
    assert segue("resume", "--no-wait-for-quota").stdout.endswith(": a used-up quota is not waited for\n")


@pytest.mark.parametrize(
    ("pausing", "sentence"),
    [(False, "The pause that was asked for is withdrawn."), (True, "A pause was asked for, and comes all the same.")],
)
def test_changed_limits_report_a_requested_pause(segue: Any, service: Standin, pausing: bool, sentence: str) -> None:
    be(service, replace(VIEW, pause_requested=True))
    service.limited = {"pause_requested": pausing}
    assert segue("resume", "--max-cost", "5").stdout.splitlines()[1:] == [f"  {sentence}"]


def test_other_options_for_a_working_workflow_are_refused_and_change_no_limit(segue: Any, service: Standin) -> None:
    result = segue("resume", "--max-cost", "5", "--agent", "codex")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing but its limits can be changed now" in result.stderr
    assert "No paused workflow" in segue("resume", "--agent", "codex").stderr
    assert not any(asked[0] in ("limit", "resume") for asked in service.asked)


def test_resume_says_that_a_quota_is_waited_for(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    service.resumed = {"status": "waiting", "reason": "The agent's quota is used up until noon."}
    assert segue("resume", "--wait-for-quota", "--detach").stdout.endswith(
        "✓ It goes on by itself when the quota is full again; no agent was started. "
        "The agent's quota is used up until noon.\n"
    )


def test_resume_says_why_a_way_is_closed(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    refusal = WrongState("This way back is closed: nothing was said yet.", hint="Open ways: native, fresh.")
    service.refusals["resume"] = refusal
    result = segue("resume", "--history", "--detach")
    assert result.exit_code == 1
    assert result.stderr == "segue: This way back is closed: nothing was said yet.\n  Open ways: native, fresh.\n"


def test_resume_says_when_it_was_on_its_way_already(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    service.resumed = {"status": "joined", "reason": "it was on its way already", "prices": (), "divergence": ()}
    said = (
        "✓ It was on its way already (rehearsal, session 1, run 2, the same conversation: it was on its way already)\n"
    )
    assert segue("resume", "--detach").stdout.endswith(said)


def test_resume_can_bring_back_the_worktree_alone(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    result = segue("resume", "--workspace-only")
    assert result.stdout == (
        "✓ The worktree is there, on branch segue/add-parser; no agent was started.\n  /data/worktrees/add-parser\n"
    )
    assert not any(asked[0] == "resume" for asked in service.asked)
    assert json.loads(segue("resume", "--workspace-only", "--json").stdout)["worktree"] == "/data/worktrees/add-parser"


def test_resume_follows_from_where_it_stood(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    service.happen(TaskStarted(task_id=TaskId("t1"), attempt=AttemptId("a")))
    done = {"status": WorkflowStatus.COMPLETED, "tasks_done": 2, "merge_hint": "git\x1bmerge"}
    service.plot = [(TaskCompleted(task_id=TaskId("t2"), attempt=AttemptId("b")), done)]
    result = segue("resume")
    assert "▶ Write the parser" not in result.stdout
    assert result.stdout.endswith(
        "✓ Test the parser\n✓ Add a parser: 2/2 tasks, 1 session, 1 run\n  Merge it with: git merge\n"
    )


def test_resume_takes_a_paused_one_before_a_failed_one(segue: Any, service: Standin) -> None:
    be(service, PAUSED, other(status=WorkflowStatus.FAILED))
    assert segue("resume", "--detach").exit_code == 0
    assert ("resume", ID) in [asked[:2] for asked in service.asked]


def test_resume_goes_on_with_a_failed_one_if_that_is_all_there_is(segue: Any, service: Standin) -> None:
    be(service, replace(VIEW, status=WorkflowStatus.FAILED, session=None))
    assert segue("resume", "--detach").stdout.startswith("Resuming before its first session:\n")


# ── looking ─────────────────────────────────────────────────────────────────────────────────────────


def test_logs_print_what_happened(segue: Any, service: Standin) -> None:
    service.happen(TaskStarted(task_id=TaskId("t1"), attempt=AttemptId("a")))
    service.happen(AgentMessage(text="I am\ndone."))
    at = moment(NOON.isoformat())
    assert segue("logs").stdout == f"    1  {at}  ▶ Write the parser\n    2  {at}  I am done.\n"
    assert segue("logs", "--after", "1").stdout == f"    2  {at}  I am done.\n"


def test_logs_come_as_json_lines(segue: Any, service: Standin) -> None:
    service.happen(AgentMessage(text="one"))
    service.happen(AgentMessage(text="two"))
    lines = segue("logs", "--json").stdout.splitlines()
    assert [json.loads(line)["event"]["text"] for line in lines] == ["one", "two"]


def test_logs_of_many_events_come_in_pages_without_a_gap(segue: Any, service: Standin) -> None:
    for number in range(1201):
        service.happen(AgentMessage(text=str(number)))
    lines = segue("logs", "--json").stdout.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 1202))


def test_logs_are_followed_until_the_end(segue: Any, service: Standin) -> None:
    service.happen(AgentMessage(text="over"), status=WorkflowStatus.COMPLETED)
    assert "over" in segue("logs", "--follow").stdout


def test_logs_show_the_latest_one_if_none_is_open(segue: Any, service: Standin) -> None:
    done = replace(VIEW, status=WorkflowStatus.COMPLETED)
    be(service, done, replace(other(), status=WorkflowStatus.CANCELLED, updated_at=NOON.replace(hour=13)))
    service.happen(AgentMessage(text="the later one"), name="workflow-2026-01-02-zzzzzz")
    assert "the later one" in segue("logs").stdout


def test_status_lists_the_workflows(segue: Any, service: Standin) -> None:
    context = ContextView(used=50, window=200, utilization=0.25)
    be(service, replace(VIEW, question=QUESTION, context=context, current_task=TaskId("t2")))
    lines = segue("status").stdout.splitlines()
    assert lines[0].startswith(f"Segue 0.1.0 is up (pid {os.getpid()}, http://127.0.0.1:")
    assert lines[1].split("  ")[1] == "add-parser"
    assert lines[1].endswith("1/2 tasks  asks: Delete old [2J files? (segue approve add-parser)  context 25%")


def test_status_counts_the_snapshots_and_names_the_last(segue: Any, service: Standin) -> None:
    be(service, replace(PAUSED, snapshots=3))
    assert segue("status").stdout.endswith(f"\n      snapshots: 3, last {SNAPSHOT.id}\n")


def test_status_counts_what_waits_for_the_agent(segue: Any, service: Standin) -> None:
    be(service, replace(VIEW, waiting_messages=1))
    assert segue("status").stdout.endswith("\n      1 message waits for the agent\n")
    be(service, replace(VIEW, waiting_messages=2))
    assert segue("status").stdout.endswith("\n      2 messages wait for the agent\n")


QUOTA = FailureView(
    failure=Failure.QUOTA,
    meaning="The quota is used up.",
    reset_at=NOON,
    remedies=("segue resume", "segue resume --fresh", "segue agents check"),
)


def test_status_says_what_stopped_a_workflow_and_what_can_be_done(segue: Any, service: Standin) -> None:
    be(service, replace(PAUSED, failure=QUOTA))
    assert segue("status").stdout.endswith(
        f"\n      ! quota: The quota is used up. It is full again at {moment(NOON.isoformat())}.\n"
        "      you can: segue resume add-parser, segue resume --fresh add-parser, segue agents check rehearsal\n"
    )


def test_status_says_why_a_workflow_is_paused_and_how_it_goes_on(segue: Any, service: Standin) -> None:
    be(service, replace(PAUSED, reason="the fixer\ngave up " + "x" * 300))
    _, _, why, how = segue("status").stdout.splitlines()
    assert why.startswith("      paused: the fixer gave up xxx") and "x…x" in why and len(why) < 230
    assert how == "      go on with: segue resume add-parser"
    be(service, replace(PAUSED, reason="no quota", failure=QUOTA))
    assert "\n      paused: no quota\n      ! quota: " in segue("status").stdout
    assert "go on with" not in segue("status").stdout
    be(service, replace(VIEW, reason="resumed"))
    assert "resumed" not in segue("status").stdout


def test_status_of_a_plan_that_waits_while_paused_says_how_it_goes_on(segue: Any, service: Standin) -> None:
    be(service, replace(BLOCKED, status=WorkflowStatus.PAUSED, asks="", reason=""))
    assert segue("status").stdout.endswith("2. Test (after t1)\n      go on with: segue resume add-parser\n")


def test_status_does_not_speak_of_a_failure_that_is_over(segue: Any, service: Standin) -> None:
    be(service, replace(VIEW, failure=QUOTA))
    assert "quota" not in segue("status").stdout


def test_resume_ends_with_what_can_be_done_about_a_failure(segue: Any, service: Standin) -> None:
    be(service, PAUSED)
    moved = WorkflowMoved(before=WorkflowStatus.IN_PROGRESS, after=WorkflowStatus.PAUSED, reason="no quota")
    service.plot = [(moved, {"status": WorkflowStatus.PAUSED, "failure": QUOTA})]
    result = segue("resume")
    assert result.exit_code == 0
    assert "Paused: no quota\n  quota: The quota is used up." in result.stdout
    assert "\n  you can: segue resume add-parser, segue resume --fresh add-parser," in result.stdout


def test_status_that_may_not_ask_is_a_failure(segue: Any, service: Standin) -> None:
    paths.token_file().unlink()
    result = segue("status")
    assert result.exit_code == 1
    assert "token is missing" in result.stderr


# ── the server ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("standin_command")
def test_up_starts_a_server_once_and_down_ends_it(segue: Any, home: Path) -> None:
    started = segue("up")
    server = client.find()
    assert started.stdout == f"Started the Segue server (pid {server.pid}).\n  {server.url}, data in {home}\n"
    assert segue("up").stdout.startswith(f"The Segue server is already up (pid {server.pid}).\n")
    assert segue("down").stdout == f"Stopped the Segue server (pid {server.pid}).\n"
    over = segue("down")
    assert (over.exit_code, over.stdout) == (0, "No Segue server is running.\n")


def test_down_says_what_waits_to_be_tried_again(segue: Any, service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    retry = RetryView(step="t1", attempt=2, of=3, at=NOON, reason="It went away.")
    be(service, replace(PAUSED, retry=retry), replace(PAUSED, id=WorkflowId("w-2"), slug="other"))
    # The server is in the test's own process, which goes on.
    monkeypatch.setattr(client, "stop_server", client.find)
    assert segue("down").stdout.endswith("\n  1 workflow waits to be tried again; the next server does that.\n")


@pytest.mark.usefixtures("standin_command")
def test_up_and_down_come_as_json(segue: Any) -> None:
    started = segue("up", "--json")
    document = json.loads(started.stdout)
    assert (document["started"], document["pid"]) == (True, client.find().pid)
    assert started.stderr == f"Started the Segue server (pid {document['pid']}).\n"
    assert json.loads(segue("down", "--json").stdout) == {"stopped": True, "pid": document["pid"], "retries": 0}
    assert json.loads(segue("down", "--json").stdout)["stopped"] is False


@pytest.mark.usefixtures("standin_command")
def test_a_server_that_cannot_start_says_why(segue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN", "fails")
    result = segue("up")
    assert result.exit_code == 1
    assert result.stderr.startswith("segue: The database was written by a newer Segue.\n  Install that version")


def test_a_data_directory_that_cannot_be_is_a_sentence(segue: Any, home: Path) -> None:
    home.write_text("a file")
    result = segue("up")
    assert result.exit_code == 1
    assert f"The data directory {home} cannot be used" in result.stderr


def test_in_the_foreground_the_server_takes_over_the_terminal(segue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    become: list[tuple[str, ...]] = []
    monkeypatch.setattr(app, "_become", lambda *command: become.append(command) or sys.exit(0))
    segue("up", "--foreground", "--port", "7777")
    segue("demo", "--json")
    assert become == [
        (sys.executable, "-P", "-m", "segue.server", "--port", "7777"),
        (sys.executable, "-P", "-m", "segue.testing.demo", "--json"),
    ]


# ── doctor ──────────────────────────────────────────────────────────────────────────────────────────


def test_doctor_looks_at_everything(segue: Any, service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGUE_AGENT", "rehearsal")
    result = segue("doctor", "--json")
    document = json.loads(result.stdout)
    names = [check["name"] for check in document["checks"]]
    assert names[:6] == ["python", "sqlite", "git", "data directory", "database", "settings"]
    assert {"agent rehearsal", "agent claude", "agent codex"} <= set(names)
    assert names[-1] == "server"
    assert (document["ok"], result.exit_code) == (True, 0)


def test_doctor_names_what_to_mend(segue: Any, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths.ensure_home()
    (home / "segue.toml").write_text("prot = 1\n")
    (home / "segue.db").write_text("this is not a database, and long enough to be seen as none" * 20)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = segue("doctor")
    assert result.exit_code == 1
    assert "problem  git: not found on PATH\n         Install git.\n" in result.stdout
    assert "problem  settings: " in result.stdout
    assert "unknown key: prot" in result.stdout
    assert "problem  database: file is not a database" in result.stdout
    assert "ok       server: No Segue server is running." in result.stdout


def test_doctor_names_a_missing_default_agent(segue: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = segue("doctor")
    assert "problem  agent claude: not installed (claude-agent-acp is not on PATH)" in result.stdout
    assert "ok       agent codex: not installed" in result.stdout


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["run", "a\udcff"], "ISSUE"),
        (["run", "x", "--test", "a\udcff"], "--test"),
        (["run", "x", "--model", "a\udcff"], "--model"),
        (["prompt", "a\udcff"], "TEXT"),
        (["approve", "-r", "a\udcff"], "--reason"),
        (["reject", "a\udcff"], "REASON"),
        (["agents", "check", "a\udcff"], "NAME"),
        (["recall", "mast", "a\udcff"], "QUERY"),
        (["recall", "mast", "-w", "a\udcff"], "--workflow"),
        (["memorize", "forget", "a\udcff"], "NAME"),
        (["memorize", "new", "x", "--label", "b", "--label", "a\udcff"], "--label"),
    ],
)
def test_undecodable_text_is_refused_without_a_server(segue: Any, home: Path, command: list[str], name: str) -> None:
    result = segue(*command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert name in result.stderr and "is not UTF-8 text." in result.stderr
    assert not home.exists()


def test_a_file_may_be_called_as_it_likes(segue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[str] = []
    monkeypatch.setattr(app, "_become", lambda *command: became.append(command[-1]))
    segue("context", "./a\udcff.jsonl")
    assert became == ["./a\udcff.jsonl"]


def test_undecodable_directories_hold_no_work(segue: Any, service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    be(service)
    Path("a\udcff").mkdir()
    monkeypatch.chdir("a\udcff")
    result = segue("pause")
    assert result.exit_code == 1
    assert result.stderr.startswith("segue: No active workflow in current directory.")
