"""Each failure of the table: what becomes of session, workflow and token, and that nothing starts by itself.

`resume.failures.POLICIES` is the table; `docs/reference/failures.md` shows it.
"""

import os
import signal
from dataclasses import dataclass

import pytest

from segue.model import events as e
from segue.model.agents import Choices, McpServer
from segue.model.errors import AgentMissing, BadInput
from segue.model.status import Failure, SessionStatus, Way, WorkflowStatus
from segue.model.views import WorkflowView
from segue.resume.failures import POLICIES
from segue.testing.process_search import carrying
from tests.orchestrator.test_resuming import SCRIPT, paused
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

S = SessionStatus


@dataclass(frozen=True)
class Case:
    """What the agent does when it is brought back, and where that leaves things."""

    failure: Failure
    how: str
    session: SessionStatus = S.SUSPENDED
    workflow: WorkflowStatus = WorkflowStatus.PAUSED
    keeps_token: bool = True
    seconds: float = 30.0


AT_THE_START = [
    Case(Failure.TOKEN_REJECTED, "on_load: {reject: true}", S.WAITING_FOR_INPUT, WorkflowStatus.REVIEW, False),
    Case(Failure.OTHER_CONVERSATION, "on_load: {other_id: true}", S.WAITING_FOR_INPUT, WorkflowStatus.REVIEW, False),
    Case(Failure.TRANSPORT_LOST, "on_load: {mute: true}"),
    Case(Failure.PROCESS_EXITED, "on_load: {exit: 3}"),
    Case(Failure.HANDSHAKE_TIMEOUT, "on_load: {hang: true}", seconds=2.0),
    Case(Failure.HANDSHAKE_FAILED, "on_load: {error: out of order}"),
    Case(Failure.LOGIN_REQUIRED, "on_load: {login: true}"),
]

IN_THE_MIDDLE = [
    Case(Failure.QUOTA, "fail: {kind: quota, reset: '2026-11-16T15:00:00Z'}"),
    Case(Failure.LOGIN_REQUIRED, "fail: {kind: login}"),
    Case(Failure.TRANSCRIPT_CORRUPT, "fail: {kind: corrupt}", S.WAITING_FOR_INPUT, WorkflowStatus.REVIEW, False),
    Case(
        Failure.OTHER_CONVERSATION,
        "fail: 'Amp answered for thread T-1, not T-2.'",
        S.WAITING_FOR_INPUT,
        WorkflowStatus.REVIEW,
        False,
    ),
    Case(Failure.PROCESS_EXITED, "crash: true"),
    Case(Failure.TRANSPORT_LOST, "mute: true"),
    Case(Failure.OTHER, "fail: I cannot go on."),
]


async def assert_as_the_table_says(theatre: Theatre, view: WorkflowView, case: Case) -> None:
    assert view.failure is not None and view.failure.failure is case.failure
    assert set(view.failure.remedies) == {str(remedy) for remedy in POLICIES[case.failure].remedies}
    assert (view.status, view.session and view.session.status) == (case.workflow, case.session)
    assert view.reason
    session = view.session
    assert session is not None
    runtime = await theatre.services.journal.sessions.runtime(session.id)
    refused = (await theatre.orchestrator.session(session.id)).refused_tokens
    assert (runtime.token is not None, len(refused)) == ((True, 0) if case.keeps_token else (False, 1))
    assert POLICIES[case.failure].keeps_token is case.keeps_token
    await theatre.sweep()
    assert carrying("SEGUE_REHEARSAL_HOME", str(theatre.agent_home)) == set()


@pytest.mark.parametrize("case", AT_THE_START, ids=lambda case: case.failure)
async def test_a_failure_on_the_way_back(theatre: Theatre, case: Case) -> None:
    async with theatre.open():
        await paused(theatre, f"{case.how}\n")
    async with theatre.open(handshake_timeout=case.seconds):
        await assert_as_the_table_says(theatre, await theatre.resume_until("build-it", case.workflow), case)
    theatre.script.write_text(SCRIPT)
    async with theatre.open():
        assert (await theatre.resume("build-it")).way is (Way.NATIVE if case.keeps_token else Way.CONTEXT)
        await theatre.until("build-it", "completed")
    assert sum("Do B" in entry["text"] for entry in theatre.diary("prompt")) == 1


@pytest.mark.parametrize("case", IN_THE_MIDDLE, ids=lambda case: case.failure)
async def test_a_failure_in_the_middle_of_a_turn(opened: Theatre, case: Case) -> None:
    await opened.begin(f"turns:\n  - match: Do A\n    do:\n      - {case.how}\n        once: true\n")
    await assert_as_the_table_says(opened, await opened.until("build-it", case.workflow), case)
    assert (await opened.resume("build-it")).way is (Way.NATIVE if case.keeps_token else Way.CONTEXT)
    await opened.until("build-it", "completed")


async def test_a_used_up_quota_tells_when_it_is_full_again(opened: Theatre) -> None:
    await opened.begin("turns: [{do: [{fail: {kind: quota, reset: '2026-11-16T15:00:00Z'}}]}]")
    view = await opened.until("build-it", "paused")
    assert view.failure is not None and view.failure.reset_at is not None
    assert view.failure.reset_at.isoformat() == "2026-11-16T15:00:00+00:00"
    assert "2026-11-16 15:00 UTC" in view.reason


async def test_a_first_start_that_fails_fails_the_workflow(opened: Theatre) -> None:
    await opened.begin("on_new: {login: true}")
    view = await opened.until("build-it", "failed")
    assert view.failure is not None and view.failure.failure is Failure.LOGIN_REQUIRED
    assert view.session is not None and view.session.status is S.FAILED


async def test_a_program_that_is_gone_leaves_everything_as_it_was(theatre: Theatre) -> None:
    async with theatre.open():
        await paused(theatre)
    theatre.commands["rehearsal"] = ("no-such-program-anywhere",)
    async with theatre.open():
        before = await theatre.orchestrator.workflow("build-it")
        with pytest.raises(AgentMissing, match="no-such-program-anywhere"):
            await theatre.resume("build-it")
        assert await theatre.orchestrator.workflow("build-it") == before


# ── what was chosen for the agent ───────────────────────────────────────────────────────────────────

CHOOSY = "modes: [ask, edits]\nmodels: [small, large]\n"


async def test_what_was_chosen_is_chosen_for_every_conversation(opened: Theatre) -> None:
    server = McpServer(name="notes", command=("true",), variables={"TOKEN": "${HOME}"})
    opened.choices = Choices(mode="edits", model="large", mcp_servers=(server,))
    await paused(opened, CHOOSY)
    await opened.resume("build-it", way=Way.FRESH)
    await opened.until("build-it", "completed")
    assert [entry["id"] for entry in opened.diary("mode")] == ["edits"] * 2
    assert [entry["id"] for entry in opened.diary("model")] == ["large"] * 2
    assert [entry["servers"] for entry in opened.diary("started")] == [["notes"]] * 2


async def test_servers_of_tools_come_back_with_the_conversation(opened: Theatre) -> None:
    opened.choices = Choices(mcp_servers=(McpServer(name="notes", command=("true",)),))
    await paused(opened)
    await opened.resume_until("build-it", "completed")
    assert [entry["servers"] for entry in opened.diary("resumed")] == [["notes"]]


@pytest.mark.parametrize("value", ["ghp_" + "a1B2" * 9, "sk-ant-api03-" + "x9" * 40])
async def test_a_secret_for_a_server_is_refused_before_it_is_written(opened: Theatre, value: str) -> None:
    opened.choices = Choices(mcp_servers=(McpServer(name="notes", command=("true",), variables={"KEY": value}),))
    with pytest.raises(BadInput, match="looks like a secret") as refused:
        await opened.begin(SCRIPT)
    assert "${KEY}" in refused.value.hint and value not in refused.value.message


async def test_an_agent_that_comes_back_without_its_mode_gets_no_prompt(opened: Theatre) -> None:
    opened.choices = Choices(mode="edits")
    await paused(opened, CHOOSY)
    opened.script.write_text(SCRIPT + "modes: [ask]\n")
    view = await opened.resume_until("build-it", "paused")
    assert view.failure is not None and view.failure.failure is Failure.NOT_RESTORED
    assert len(opened.diary("prompt")) == 1
    opened.script.write_text(SCRIPT + CHOOSY)
    assert (await opened.resume("build-it")).way is Way.NATIVE
    await opened.until("build-it", "completed")


async def test_a_killed_agent_is_a_process_that_exited(opened: Theatre) -> None:
    await opened.begin(SCRIPT)
    started = await opened.first("build-it", e.AgentStarted)
    await opened.event("build-it", e.ToolFinished)
    os.kill(started.pid, signal.SIGKILL)
    view = await opened.until("build-it", "paused")
    assert view.failure is not None and view.failure.failure is Failure.PROCESS_EXITED
    (worktree_of(opened) / "go").touch()
    await opened.resume_until("build-it", "completed")
