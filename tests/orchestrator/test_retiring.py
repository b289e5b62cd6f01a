"""Sessions that nobody comes back to: idle, expired, and put away."""

import json
import os
from pathlib import Path

import anyio
import pytest

from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.ids import WorkflowId
from segue.model.requests import ForkRequest
from segue.model.status import SessionStatus, Way, WorkflowStatus
from segue.workspace.private import private_directory
from tests.orchestrator.test_resuming import paused, say, session_of, standing_still
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

IDLE = 1800.0
TTL = 30 * 86_400.0
BY_HAND = {"sweep_interval": 1e9}
"""The sweep comes when the test calls it, and not in between."""


@pytest.fixture
def server_settings() -> dict[str, float]:
    return BY_HAND


async def talked(theatre: Theatre) -> None:
    """A workflow that stands still, whose session waits for a word, and whose agent is gone."""
    await paused(theatre)
    await say(theatre, "What now?")
    await standing_still(theatre)
    await theatre.as_time_goes_by("build-it", "paused")


async def pass_time(theatre: Theatre, seconds: float) -> None:
    await theatre.until_studied()
    await theatre.clock.advance(seconds)


async def after(theatre: Theatre, seconds: float) -> SessionStatus:
    """How the session stands at a sweep after so much more time."""
    await pass_time(theatre, seconds)
    await theatre.sweep()
    view = await theatre.orchestrator.workflow("build-it")
    assert view.session is not None
    return view.session.status


def put_away(theatre: Theatre, session_id: str) -> tuple[bool, bool, bool, bool]:
    """Whether its two files are where they were, and whether they are in the archive."""
    places = [Path("sessions", f"{session_id}.jsonl"), Path("agent-sessions", session_id, "session.json")]
    here, there = ([(root / place).exists() for place in places] for root in (theatre.root, theatre.root / "archive"))
    return (here[0], here[1], there[0], there[1])


HERE, ARCHIVED = (True, True, False, False), (False, False, True, True)


# ── idle ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_session_is_idle_then_expires_and_the_work_goes_on_in_a_child(on_each: Theatre) -> None:
    await talked(on_each)
    first = await session_of(on_each)
    before = await on_each.orchestrator.workflow("build-it")
    assert await after(on_each, IDLE - 120) is SessionStatus.WAITING_FOR_INPUT
    assert await after(on_each, 240) is SessionStatus.SUSPENDED
    moved = (await on_each.events("build-it", e.SessionMoved))[-1]
    assert (moved.before, moved.after, moved.reason) == ("waiting_for_input", "suspended", "idle")
    assert await after(on_each, TTL - 60) is SessionStatus.SUSPENDED
    assert await after(on_each, 120) is SessionStatus.EXPIRED
    resting = await on_each.orchestrator.workflow("build-it")
    assert (resting.status, resting.last_snapshot) == (WorkflowStatus.PAUSED, before.last_snapshot)
    assert put_away(on_each, first) == ARCHIVED

    resumed = await on_each.resume("build-it")
    assert (resumed.way, resumed.session_number) == (Way.CONTEXT, 2)
    assert "the last session expired" in resumed.reason
    assert (await on_each.until("build-it", "completed")).tasks_done == 2
    (_, child) = await on_each.orchestrator.sessions("build-it")
    assert child.parent == first
    assert len(on_each.diary("started")) == 2


async def test_an_agent_that_is_awake_keeps_its_session(theatre: Theatre) -> None:
    async with theatre.open(**BY_HAND, talk_linger=3600.0, session_idle=60.0, session_ttl=90.0):
        await paused(theatre)
        await say(theatre, "What now?")
        await standing_still(theatre)
        assert await after(theatre, 120) is SessionStatus.WAITING_FOR_INPUT


async def test_an_idle_session_goes_on_in_its_own_conversation(opened: Theatre) -> None:
    await talked(opened)
    assert await after(opened, IDLE + 60) is SessionStatus.SUSPENDED
    assert (await opened.resume("build-it")).way is Way.NATIVE
    await opened.until("build-it", "completed")


# ── what does not expire ────────────────────────────────────────────────────────────────────────────


async def test_words_that_wait_for_an_agent_keep_their_session(theatre: Theatre) -> None:
    async with theatre.open(**BY_HAND):
        await theatre.begin_until(e.PromptAcknowledged, "turns: [{match: Do A, do: [{say: At it.}, {hang: true}]}]")
        await theatre.prompt("build-it", "What now?", wait=False)
    async with theatre.open(**BY_HAND):
        assert (await theatre.orchestrator.workflow("build-it")).waiting_messages == 1
        assert await after(theatre, 2 * TTL) is SessionStatus.SUSPENDED


async def test_a_plan_that_waits_for_approval_keeps_its_session(between: Theatre) -> None:
    workflow_id = (await between.orchestrator.workflow("build-it")).id
    await between.services.journal.transact(workflow_id, lambda t: t.move_workflow(WorkflowStatus.BLOCKED))
    assert await after(between, 2 * TTL) is SessionStatus.SUSPENDED


async def test_any_sign_of_life_counts(between: Theatre) -> None:
    workflow_id = (await between.orchestrator.workflow("build-it")).id
    await pass_time(between, TTL - 60)
    await between.services.journal.append(workflow_id, e.Warned(code="looked", message="Somebody was here."))
    assert await after(between, 120) is SessionStatus.SUSPENDED
    assert await after(between, TTL) is SessionStatus.EXPIRED


@pytest.mark.parametrize("first", ["sweep", "resume"])
async def test_a_resume_and_the_sweep_at_the_same_moment_have_one_winner(on_each: Theatre, first: str) -> None:
    """Whoever comes second sees what the first one did: there is never an agent in an expired session."""
    on_each.choices = Choices(limits=Limits(tasks=1))
    view = await on_each.begin("turns: [{do: [{say: Done.}]}]")
    await on_each.until(view.id, "paused")
    await pass_time(on_each, TTL + 60)
    async with anyio.create_task_group() as both:
        if first == "sweep":
            both.start_soon(on_each.sweep)
        both.start_soon(on_each.resume, view.id)
        if first == "resume":
            both.start_soon(on_each.sweep)
    done = await on_each.until(view.id, "completed")
    sessions = [session.status for session in await on_each.orchestrator.sessions(view.id)]
    assert sessions in ([SessionStatus.COMPLETED], [SessionStatus.EXPIRED, SessionStatus.COMPLETED])
    assert (done.tasks_done, done.runs) == (2, 2)
    assert len(on_each.diary("prompt")) == 2


# ── sessions that no agent ever took up ─────────────────────────────────────────────────────────────


async def test_a_session_whose_agent_never_came_up_can_expire_and_be_followed(theatre: Theatre) -> None:
    async with theatre.open(**BY_HAND):
        view = await theatre.begin("on_initialize: {hang: true}")
        await theatre.event(view.id, e.SessionMoved)
    async with theatre.open(**BY_HAND):
        assert await after(theatre, TTL + 60) is SessionStatus.EXPIRED
        theatre.script.write_text("turns: []")
        assert (await theatre.resume(view.id)).session_number == 2
        await theatre.until(view.id, "completed")


async def test_a_fork_that_nobody_took_up_can_expire_and_be_followed(between: Theatre) -> None:
    (worktree_of(between) / "go").touch()
    request = ForkRequest(environment=between.environment)
    fork = (await between.orchestrator.fork(await session_of(between), request)).workflow
    await pass_time(between, TTL + 60)
    await between.sweep()
    (session,) = await between.orchestrator.sessions(fork.id)
    assert session.status is SessionStatus.EXPIRED
    resumed = await between.resume(fork.id)
    assert (resumed.way, resumed.session_number) == (Way.CONTEXT, 2)
    await between.until(fork.id, "completed")


# ── the archive ─────────────────────────────────────────────────────────────────────────────────────


async def test_files_in_the_archive_can_be_written_again_and_stay_there(between: Theatre) -> None:
    session_id = await session_of(between)
    said = (between.root / "sessions" / f"{session_id}.jsonl").read_bytes()
    await after(between, TTL + 60)
    files = await between.orchestrator.session_files(session_id)
    assert files.were_right and Path(files.history).read_bytes() == said
    assert json.loads(Path(files.session).read_text())["metadata"]["status"] == "expired"
    Path(files.history).write_bytes(b"{torn")
    assert not (await between.orchestrator.session_files(session_id)).were_right
    assert Path(files.history).read_bytes() == said
    assert put_away(between, session_id) == ARCHIVED
    await between.sweep()
    assert put_away(between, session_id) == ARCHIVED


@pytest.mark.parametrize("moved", ["nothing", "the document"])
async def test_an_archive_that_was_cut_off_is_finished_by_the_next_sweep(theatre: Theatre, moved: str) -> None:
    """A server that dies right after the row, or between the two files, leaves exactly this."""
    expired = "nobody came back to it"
    async with theatre.open(**BY_HAND):
        await paused(theatre)
        view, session_id = await theatre.orchestrator.workflow("build-it"), await session_of(theatre)
        await theatre.services.journal.transact(
            view.id, lambda t: t.sessions.move(t.sessions.current().id, SessionStatus.EXPIRED, reason=expired)
        )
        await theatre.orchestrator.session_files(session_id)
        if moved == "the document":
            place = theatre.root / "archive" / "agent-sessions" / session_id
            place.parent.mkdir(parents=True)
            (theatre.root / "agent-sessions" / session_id).rename(place)
    async with theatre.open(**BY_HAND):
        await theatre.sweep()
        assert put_away(theatre, session_id) == ARCHIVED
        assert (await theatre.orchestrator.session_files(session_id)).were_right
        assert not (theatre.root / "agent-sessions" / session_id).exists()


async def test_a_session_whose_files_cannot_be_moved_does_not_keep_the_others(between: Theatre) -> None:
    session_id = await session_of(between)
    obstacle = between.root / "archive"
    obstacle.write_text("a file where a folder should be")
    assert await after(between, TTL + 60) is SessionStatus.EXPIRED
    assert put_away(between, session_id) == HERE
    obstacle.unlink()
    await between.sweep()
    assert put_away(between, session_id) == ARCHIVED


@pytest.mark.parametrize("end", ["completed", "cancelled"])
async def test_sessions_of_a_workflow_that_ended_are_put_away_as_they_are(between: Theatre, end: str) -> None:
    if end == "completed":
        await between.resume_until("build-it", "completed")
    else:
        await between.cancel("build-it")
    session_id = await session_of(between)
    assert await after(between, TTL - 60) == end
    assert put_away(between, session_id) == HERE
    assert await after(between, 120) == end
    assert put_away(between, session_id) == ARCHIVED
    assert list((between.root / "sessions").glob("*.jsonl")) == []
    assert list((between.root / "agent-sessions").glob("*/session.json")) == []


# ── memory ──────────────────────────────────────────────────────────────────────────────────────────


def remembered(theatre: Theatre, workflow_id: WorkflowId) -> tuple[bool, bool]:
    """Whether its state and what was heard of it are kept in memory; no door shows that."""
    journal, hearings = theatre.services.journal, theatre.services.facts
    return workflow_id in journal._states, workflow_id in hearings._kept  # pyright: ignore[reportPrivateUsage]


async def test_what_nobody_comes_back_to_makes_room_in_memory(opened: Theatre) -> None:
    await talked(opened)
    view = await opened.orchestrator.workflow("build-it")
    # Idle, expired and put away, in two sweeps; whoever looks in between has it read anew.
    for seconds in (IDLE + 60, TTL + 60):
        await pass_time(opened, seconds)
        await opened.orchestrator.context(view.id, None)
        assert remembered(opened, view.id) == (True, True)
        await opened.sweep()
        assert remembered(opened, view.id) == (False, False)


# ── what killed agents left ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["segue-amp", "segue-claude"])
async def test_the_sweep_removes_private_files_of_killed_agents(
    theatre: Theatre, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place := theatre.root / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    (left := place / f"{name}-{os.getpid()}-00000000-abc").mkdir()
    (left / "servers.json").write_text("{}")
    async with theatre.open(**BY_HAND):
        with private_directory(name) as held:
            left.mkdir(exist_ok=True)
            await theatre.sweep()
            assert not left.exists() and held.exists()
