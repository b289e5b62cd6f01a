"""A fork: a new workflow that goes on where another one stood, and leaves it alone."""

from typing import Any

import anyio
import pytest

from segue.model import events as e
from segue.model.checkpoint import Checkpoint
from segue.model.errors import AgentMissing, BadInput, CheckpointNotFound, SessionNotFound
from segue.model.plan import TaskStatus
from segue.model.requests import ForkRequest
from segue.model.status import Carrying, SessionStatus, Way, WorkflowStatus
from segue.model.views import Forked
from tests.orchestrator.test_going_back import after_two_tasks, dying_at, files, said, snapshots_of
from tests.orchestrator.test_resuming import session_of
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

FORK = "build-it-fork"


async def fork(theatre: Theatre, session: str | None = None, **more: Any) -> Forked:
    session_id = session or await session_of(theatre)
    with anyio.fail_after(30):
        return await theatre.orchestrator.fork(session_id, ForkRequest(environment=theatre.environment, **more))


def at(checkpoint: Checkpoint) -> dict[str, Any]:
    return {"snapshot": checkpoint.id}


async def test_a_fork_has_the_files_and_the_tasks_of_the_snapshot_and_nobody_works_on_it(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    before, snapshots = files(worktree_of(opened)), await snapshots_of(opened)
    forked = await fork(opened, **at(first))
    view, origin = forked.workflow, await opened.orchestrator.workflow(first.workflow_id)
    assert view.reason == f"forked from {origin.slug} at {first.id}"
    assert (view.slug, view.branch, view.status) == (FORK, f"segue/{FORK}", WorkflowStatus.PAUSED)
    assert [task.status for task in view.tasks] == [
        TaskStatus.COMPLETED, TaskStatus.PENDING, TaskStatus.PENDING,
    ]  # fmt: skip
    content = files(worktree_of(opened, FORK))
    assert content == {".gitignore": "*.log\n", "a.txt": "A", "go-a": "", "old.txt": "old"}
    assert (view.runs, forked.parent, forked.checkpoint_id) == (0, await session_of(opened), first.id)
    assert git(worktree_of(opened, FORK), "rev-parse", "HEAD") == git(opened.repository, "rev-parse", "main")
    assert files(worktree_of(opened)) == before
    assert await snapshots_of(opened) == snapshots
    created = (await opened.events(FORK, e.WorkflowCreated))[0]
    assert created.forked_from.after == first.after


async def test_a_fork_that_is_to_be_started_is_not_made_where_its_agent_is_missing(opened: Theatre) -> None:
    await after_two_tasks(opened)
    with pytest.raises(AgentMissing, match="The program 'no-such-program-anywhere' was not found"):
        await fork(opened, agent="missing", to_start=True)
    assert [view.slug for view in await opened.orchestrator.workflows(None, [])] == ["build-it"]
    assert not worktree_of(opened, FORK).exists()
    assert (await fork(opened, agent="missing")).workflow.slug == FORK


async def test_a_fork_goes_on_in_its_own_first_session_with_what_was_known_then(on_each: Theatre) -> None:
    first, _ = await after_two_tasks(on_each)
    await fork(on_each, **at(first))
    resumed = await on_each.resume(FORK)
    assert (resumed.way, resumed.session_number, resumed.divergence) == (Way.CONTEXT, 1, ())
    await on_each.until_prompted(3)
    (worktree_of(on_each, FORK) / "go-b").touch()
    view = await on_each.until(FORK, "completed")
    assert (view.sessions, view.tasks_done) == (1, 3)
    (session,) = await on_each.orchestrator.sessions(FORK)
    assert (session.parent, session.carrying) == (first.session_id, Carrying.DONE)
    facts = await on_each.services.facts.facts(view.id)
    assert [sentence.text for sentence in facts.sentences] == [
        "I decided to use alpaca.",
        "I decided to use buffalo.",
    ]
    assert facts.request is not None and facts.request.text == "Build it" and not facts.said
    original = await on_each.orchestrator.workflow("build-it")
    assert (original.status, original.tasks_done) == (WorkflowStatus.PAUSED, 2)
    told = on_each.diary("prompt")[2]["text"]
    assert "alpaca" in told and "buffalo" not in told
    assert f"forked from workflow {first.workflow_id} at snapshot {first.id}" in told


async def test_what_happens_to_the_original_later_is_not_known_in_the_fork(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    forked = await fork(opened, **at(first))
    again = await fork(opened, forked.workflow.session.id if forked.workflow.session else "")
    assert again.workflow.slug == f"{FORK}-fork"
    facts = await opened.services.facts.facts(again.workflow.id)
    assert [sentence.text for sentence in facts.sentences] == ["I decided to use alpaca."]


async def test_a_completed_workflow_is_gone_on_from_in_a_fork(opened: Theatre) -> None:
    await opened.begin("turns: []")
    await opened.until("build-it", "completed")
    forked = await fork(opened, title="Another try")
    assert (forked.workflow.slug, forked.workflow.title) == ("another-try", "Another try")
    told = await opened.prompt("another-try", "What was done?")
    assert (told.status, told.way) == ("sent", Way.CONTEXT)
    assert (await opened.orchestrator.workflow("build-it")).status is WorkflowStatus.COMPLETED


async def test_another_agent_takes_the_fork(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    await fork(opened, agent="understudy", **at(first))
    resumed = await opened.resume(FORK, way=Way.FRESH)
    assert (resumed.agent, resumed.session_number, resumed.way) == ("understudy", 1, Way.FRESH)
    await opened.until_prompted(3)
    assert "alpaca" not in opened.diary("prompt")[2]["text"]


async def test_a_fork_can_be_taken_back_and_leaves_out_what_was_undone(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    view = (await fork(opened, **at(first))).workflow
    assert view.last_snapshot is not None
    await opened.resume(FORK)
    await opened.until_prompted(3)
    await opened.pause(FORK, "enough")
    (worktree_of(opened, FORK) / "go-b").touch()
    await opened.until(FORK, "paused")
    await opened.resume(FORK, snapshot=view.last_snapshot)
    facts = await opened.services.facts.facts(view.id)
    assert [sentence.text for sentence in facts.sentences] == ["I decided to use alpaca."]


async def test_a_fork_of_nothing_is_refused_and_leaves_nothing(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    with pytest.raises(SessionNotFound):
        await fork(opened, "session-nobody")
    with pytest.raises(CheckpointNotFound):
        await fork(opened, snapshot="099")
    with pytest.raises(BadInput):
        await fork(opened, agent="rehearsal", model="x", **at(first))
    assert len(await opened.orchestrator.workflows(None, [])) == 1


@pytest.mark.parametrize("point", ["fork.created", "worktree.branch_made", "fork.filled"])
async def test_a_fork_whose_server_died_gets_its_files_at_the_first_resume(theatre: Theatre, point: str) -> None:
    async with theatre.open():
        first, _ = await after_two_tasks(theatre)
        with dying_at(point):
            await fork(theatre, **at(first))
    async with theatre.open():
        assert (await theatre.orchestrator.workflow(FORK)).status is WorkflowStatus.PENDING
        resumed = await theatre.resume(FORK)
        assert (resumed.session_number, resumed.way, resumed.divergence) == (1, Way.CONTEXT, ())
        await said(theatre, "buffalo", FORK)
        (worktree_of(theatre, FORK) / "go-b").touch()
        await theatre.until(FORK, "completed")
        assert (worktree_of(theatre, FORK) / "a.txt").exists()


async def test_the_setup_command_runs_in_a_fork_and_changes_no_file_of_the_snapshot(theatre: Theatre) -> None:
    async with theatre.open(setup="echo built > made.log; echo built > a.txt"):
        first, _ = await after_two_tasks(theatre)
        await fork(theatre, **at(first))
        assert (worktree_of(theatre, FORK) / "made.log").exists()
        assert (worktree_of(theatre, FORK) / "a.txt").read_text() == "A"
        session = (await theatre.orchestrator.sessions(FORK))[0]
        assert session.status is SessionStatus.SUSPENDED
