import json
import os
import pty
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from segue import client
from segue.model import events as e
from segue.model.agents import Choices, CommitPolicy, Limits, McpServer, Review, Verify
from segue.model.errors import NotARepository
from segue.model.ids import AttemptId, PromptId, RequestId, TaskId
from segue.model.plan import Issue, Plan, Task
from segue.model.requests import PlanText, RunRequest
from segue.model.status import Permissions, WorkflowStatus
from segue.model.views import ContextView, Question
from tests.server.serving import serving
from tests.server.standin_service import ID, NOON, VIEW, Standin

BOUND = 30.0

CREATED = e.WorkflowCreated(
    slug="add-parser",
    issue=Issue(title="Add a parser"),
    plan=Plan(tasks=(Task(id=TaskId("t1"), title="Write the parser"),)),
    agent="rehearsal",
    permissions=Permissions.ASK,
    repository="/repo",
    here=False,
)
STARTED = e.TaskStarted(task_id=TaskId("t1"), attempt=AttemptId("a"))
QUESTION = Question(request_id=RequestId("request-1"), title="Delete old files?", tool="delete", requested_at=NOON)


def moved(after: WorkflowStatus, reason: str = "") -> e.WorkflowMoved:
    return e.WorkflowMoved(before=WorkflowStatus.IN_PROGRESS, after=after, reason=reason)


def story(
    *events: e.Event, end: WorkflowStatus, reason: str = "", **changes: Any
) -> list[tuple[e.Event, dict[str, Any]]]:
    """What happens, up to a last move to `end`."""
    return [*((event, {}) for event in events), (moved(end, reason), {"status": end, "reason": reason, **changes})]


COMPLETED = story(
    CREATED,
    STARTED,
    e.AgentMessage(text="chatter"),
    e.TaskCompleted(task_id=TaskId("t1"), attempt=AttemptId("a")),
    end=WorkflowStatus.COMPLETED,
    tasks_done=2,
    merge_hint="git merge segue/add-parser",
)


def test_run_follows_to_the_end_and_says_how_to_merge(segue: Any, service: Standin) -> None:
    service.plot = COMPLETED
    result = segue("run", "Add a parser")
    assert result.exit_code == 0
    assert result.stdout == (
        "Workflow add-parser: Add a parser\n"
        "▶ Write the parser\n"
        "✓ Write the parser\n"
        "Completed\n"
        "✓ Add a parser: 2/2 tasks, 1 session, 1 run\n"
        "  Merge it with: git merge segue/add-parser\n"
    )


def test_run_sends_what_was_given(segue: Any, service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "mine")
    Path("plan.md").write_text("- one\n")
    arguments = ["--plan", "plan.md", "--agent", "rehearsal", "--permissions", "edits", "--here", "--detach"]
    result = segue("run", "Add a parser\nA small one.", *arguments)
    assert result.stdout == "add-parser is at work. Watch it with: segue logs --follow add-parser\n"
    request = service.request("create")
    assert replace(request, environment={}) == RunRequest(
        issue=Issue(title="Add a parser", description="A small one."),
        plan=PlanText(format="markdown", text="- one\n"),
        agent="rehearsal",
        permissions=Permissions.EDITS,
        repository=Path.cwd(),
        here=True,
    )
    assert request.environment == dict(os.environ)


def test_run_sends_the_model_the_mode_and_the_servers(segue: Any, service: Standin) -> None:
    servers = {
        "docs": {"command": "docs-server", "args": ["-q"], "env": {"DOCS_KEY": "${DOCS_KEY}"}},
        "search": {"type": "sse", "url": "https://example.org/mcp", "headers": {"Authorization": "${TOKEN}"}},
    }
    Path("mcp.json").write_text(json.dumps({"mcpServers": servers}))
    result = segue("run", "Add", "--model", "big", "--mode", "plan", "--mcp", "mcp.json", "--detach")
    assert result.exit_code == 0
    docs = McpServer(name="docs", command=("docs-server", "-q"), variables={"DOCS_KEY": "${DOCS_KEY}"})
    search = McpServer(
        name="search", url="https://example.org/mcp", transport="sse", variables={"Authorization": "${TOKEN}"}
    )
    assert service.chosen == Choices(model="big", mode="plan", mcp_servers=(docs, search))


@pytest.mark.parametrize(
    ("options", "propose", "approve"), [([], True, False), (["--yes"], True, True), (["--one-task"], False, False)]
)
def test_run_lets_the_agent_propose_a_plan_unless_told_otherwise(
    segue: Any, service: Standin, options: list[str], propose: bool, approve: bool
) -> None:
    segue("run", "Add a parser", "--detach", *options)
    request = service.request("create")
    assert (request.plan, request.propose, request.choices.approve_plan) == (None, propose, approve)


def test_run_knows_the_tasks_of_a_plan_that_was_taken_on_the_way(segue: Any, service: Standin) -> None:
    plan = Plan(tasks=(Task(id=TaskId("t1"), title="Write the parser"),))
    proposed = e.PlanProposed(prompt_id=PromptId("p"), plan=plan)
    service.plot = story(
        CREATED, proposed, e.PlanAdopted(plan=plan, by="policy"), STARTED, end=WorkflowStatus.COMPLETED
    )
    result = segue("run", "Add a parser", "--yes")
    assert result.stdout.splitlines()[1:5] == [
        "Plan of 1 task:",
        "  1. Write the parser",
        "The plan was taken without asking",
        "▶ Write the parser",
    ]


def test_variables_that_are_no_text_stay_at_home(segue: Any, service: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", os.fsdecode(b"\xff"))
    assert segue("run", "x", "--detach").exit_code == 0
    assert "ODD" not in service.request("create").environment


def test_run_reads_the_issue_from_standard_input(segue: Any, service: Standin) -> None:
    segue("run", "-", "--detach", typed="# Add a parser\n\nA small one.\n")
    assert service.request("create").issue == Issue(title="Add a parser", description="A small one.")


def test_run_can_name_another_repository(segue: Any, service: Standin, tmp_path: Path) -> None:
    segue("run", "x", "--detach", "--repository", "..")
    assert service.request("create").repository == Path.cwd() / ".."


def test_run_with_json_prints_the_end_and_nothing_else(segue: Any, service: Standin) -> None:
    service.plot = COMPLETED
    result = segue("run", "Add a parser", "--json")
    assert (json.loads(result.stdout)["status"], result.stderr) == ("completed", "")
    assert json.loads(segue("run", "Add a parser", "--json", "--detach").stdout)["id"] == ID


@pytest.mark.parametrize("end", [WorkflowStatus.FAILED, WorkflowStatus.CANCELLED])
def test_run_exits_with_one_when_the_work_is_unfinished(segue: Any, service: Standin, end: WorkflowStatus) -> None:
    service.plot = story(CREATED, end=end, reason="no luck")
    result = segue("run", "Add a parser")
    assert result.exit_code == 1
    assert f"segue: add-parser is {end}: no luck\n  Look at it with: segue logs add-parser" in result.stderr


def test_run_ends_with_zero_when_the_work_is_paused(segue: Any, service: Standin) -> None:
    service.plot = story(CREATED, end=WorkflowStatus.PAUSED, reason="lunch")
    result = segue("run", "Add a parser")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith("Paused: lunch\n  Go on with: segue resume add-parser\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["  "], "The issue is empty."),
        (["@missing.md"], "missing.md cannot be read: No such file or directory."),
        (["x", "--plan", "missing.yaml"], "missing.yaml cannot be read: No such file or directory."),
        (["x", "--plan", "missing"], "missing cannot be read: No such file or directory."),
        (["x", "--plan", "."], ". cannot be read: Is a directory."),
        (["x", "--mcp", "missing.json"], "missing.json cannot be read: No such file or directory."),
    ],
)
def test_bad_input_is_refused_before_a_server_starts(segue: Any, home: Path, arguments: list[str], words: str) -> None:
    result = segue("run", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert not home.exists()


def test_what_the_server_refuses_is_a_sentence(segue: Any, service: Standin) -> None:
    service.failure = NotARepository("/repo is not a git repository.", hint="Run it in one.")
    client.call("POST", "/api/shutdown", {})
    result = segue("run", "x")
    assert (result.exit_code, result.stderr) == (1, "segue: /repo is not a git repository.\n  Run it in one.\n")


@pytest.mark.usefixtures("standin_command")
def test_run_and_resume_start_the_server_and_say_so(segue: Any) -> None:
    result = segue("run", "Add a parser", "--detach")
    server = client.find()
    assert result.stdout.startswith(f"Started the Segue server (pid {server.pid}).\nadd-parser is at work.")
    segue("down")
    resumed = segue("resume", "add-parser", "--detach", "--json")
    assert resumed.stderr == f"Started the Segue server (pid {client.find().pid}).\n"
    assert json.loads(resumed.stdout)["status"] == "resumed"


# ── while it goes on ────────────────────────────────────────────────────────────────────────────────


def run_apart(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "segue", *arguments]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)


def read_until(stream: IO[str], words: str) -> str:
    seen = ""
    while words not in seen:
        line = stream.readline()
        assert line, seen
        seen += line
    return seen


def test_ctrl_c_lets_go_and_leaves_the_work_alone(service: Standin) -> None:
    service.plot = [(CREATED, {"status": WorkflowStatus.IN_PROGRESS})]
    with run_apart("run", "Add a parser", stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        read_until(running.stdout, "Workflow add-parser")
        assert service.waiting.wait(BOUND)
        running.send_signal(signal.SIGINT)
        out, error = running.communicate(timeout=BOUND)
    assert (running.returncode, error) == (0, "")
    assert out == "Detached: add-parser goes on without you.\n  Watch it with: segue logs --follow add-parser\n"
    assert not any(asked[0] in ("cancel", "pause") for asked in service.asked)


def test_ctrl_c_ends_the_following_of_logs(service: Standin) -> None:
    service.happen(STARTED)
    with run_apart("logs", "--follow", stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        read_until(running.stdout, "▶ Write the parser")
        assert service.waiting.wait(BOUND)
        service.happen(e.AgentMessage(text="and then"))
        read_until(running.stdout, "and then")
        running.send_signal(signal.SIGINT)
        assert running.wait(BOUND) == 0


def test_a_server_that_stops_while_it_is_followed_is_a_sentence() -> None:
    service = Standin(VIEW)
    service.plot = [(CREATED, {"status": WorkflowStatus.IN_PROGRESS})]
    with serving(service):
        running = run_apart("run", "Add a parser", stdout=subprocess.PIPE)
        assert service.waiting.wait(BOUND)
    with running:
        _, error = running.communicate(timeout=BOUND)
    assert running.returncode == 1
    assert error == "segue: The Segue server is stopping.\n  Go on later with: segue resume add-parser\n"


def test_on_a_terminal_the_last_line_says_where_things_stand(service: Standin) -> None:
    service.plot = [(CREATED, {"status": WorkflowStatus.IN_PROGRESS})]
    terminal, inside = pty.openpty()
    environment = {**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    with run_apart("run", "Add a parser", stdout=inside, env=environment) as running:
        os.close(inside)
        read_terminal(terminal, "add-parser: in progress · 1/2 tasks")
        asked = e.PermissionRequested(
            request_id=RequestId("request-1"), call_id="c", title="Delete old files?", tool="delete", options=()
        )
        context = ContextView(used=50, window=200, utilization=0.25)
        service.happen(asked, question=QUESTION, context=context, current_task=TaskId("t2"))
        seen = read_terminal(terminal, "segue reject add-parser)")
        assert "\r\x1b[K? Delete old files?\r\n" in seen
        assert "· Test the parser · context 25% · asks: Delete old files? (segue approve add-parser" in seen
        service.happen(moved(WorkflowStatus.COMPLETED), status=WorkflowStatus.COMPLETED, question=None)
        read_terminal(terminal, "✓ Add a parser: 1/2 tasks")
        assert running.wait(BOUND) == 0
    os.close(terminal)


def read_terminal(terminal: int, words: str) -> str:
    seen = b""
    while words.encode() not in seen:
        readable, _, _ = select.select([terminal], [], [], BOUND)
        assert readable, seen
        seen += os.read(terminal, 65536)
    return seen.decode()


def test_limits_are_asked_for(segue: Any, service: Standin) -> None:
    segue("run", "Do it", "--pause-after", "2", "--max-time", "1h30m", "--max-cost", "2.5", "--detach")
    assert service.chosen.limits == Limits(tasks=2, seconds=5400, usd=2.5)


def test_how_tasks_are_finished_is_asked_for(segue: Any, service: Standin) -> None:
    words = ["--test", "make test", "--commit", "task", "--review", "codex", "--review-passes", "3", "--fixer", "off"]
    words += ["--review-personas", "security, tester"]
    assert segue("run", "Do it", *words, "--wait-for-quota", "--detach").exit_code == 0
    assert service.chosen == Choices(
        verify=Verify(command="make test"),
        commit=CommitPolicy.TASK,
        review=Review(agent="codex", passes=3, personas=("security", "tester")),
        fixer="off",
        wait_for_quota=True,
    )


def test_what_the_repository_says_is_shown_and_can_be_overruled(segue: Any, service: Standin) -> None:
    Path(".git").mkdir()
    settings = '[tool.segue]\ntest_command = "make test"\nreview = "same"\ncommit = "task"\n'
    Path("pyproject.toml").write_text(settings)
    told = "From the repository's own settings: test_command = make test; "
    assert f"{told}commit = task; review = same\n" in segue("run", "Do it", "--detach").stdout
    assert f"{told}commit = task\n" in segue("run", "Do it", "--no-review", "--detach", "--json").stderr
    silent = segue("run", "Do it", "--no-review", "--no-test", "--commit", "none", "--detach")
    assert "repository's own" not in silent.stdout
    assert service.chosen == Choices()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--review", ""], "--review must name an agent, or say same or off."),
        (["--fixer", " "], "--fixer must name an agent, or say same or off."),
        (["--review-personas", ",,"], "--review-personas must name at least one, and each between commas, not ',,'."),
    ],
)
def test_a_reviewer_without_a_name_is_refused(segue: Any, service: Standin, words: list[str], sentence: str) -> None:
    result = segue("run", "Do it", *words)
    assert result.exit_code == 2 and sentence in result.stderr
    assert service.asked == []


def test_bad_settings_of_a_repository_are_refused(segue: Any, service: Standin) -> None:
    Path(".git").mkdir()
    Path("segue.toml").write_text("port = 80\n")
    result = segue("run", "Do it", "--detach")
    assert result.exit_code == 1
    assert "segue.toml sets port, which a repository may not set." in result.stderr
    assert [asked for asked in service.asked if asked[0] == "create"] == []


NO_NUMBERS = ("nan", "inf", "-inf", "-1", "1e300", "9" * 5000, "")


@pytest.mark.parametrize(
    ("option", "given"),
    [
        *(("--max-time", each) for each in (*NO_NUMBERS, "soon", "1", "0.0x", "-1h", "99999999999h", "36501d")),
        *(("--max-cost", each) for each in (*NO_NUMBERS, "1000000000001", "five")),
        *(("--max-tokens", each) for each in (*NO_NUMBERS, "1000000000001", "1.5")),
        *(("--pause-after", each) for each in (*NO_NUMBERS, "1000000000001", "1.5")),
        *(("--review-passes", each) for each in (*NO_NUMBERS, "0", "1000000000001")),
    ],
    ids=lambda word: word[:16],
)
def test_a_limit_that_is_none_is_refused(segue: Any, service: Standin, option: str, given: str) -> None:
    result = segue("run", "Do it", option, given)
    assert result.exit_code == 2 and f"Invalid value for '{option}': " in result.stderr
    assert "Traceback" not in result.output
    assert service.asked == []


def test_a_plain_0_is_no_limit(segue: Any, service: Standin) -> None:
    words = [word for option in ("--pause-after", "--max-time", "--max-tokens", "--max-cost") for word in (option, "0")]
    assert segue("run", "Do it", *words, "--detach").exit_code == 0
    assert service.chosen.limits == Limits(tasks=0, seconds=0, tokens=0, usd=0)
