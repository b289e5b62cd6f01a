"""The work is taken back by itself, and somebody decides otherwise meanwhile, or something fails: it is taken back as a
whole or not at all, and the journal says which."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

import anyio
import pytest

from segue.model import crash
from segue.model import events as e
from segue.model.agents import Review
from segue.model.errors import DatabaseUnusable, WrongState
from segue.model.status import WorkflowStatus
from segue.model.views import Action
from segue.workspace.checkpoints import restore
from tests.orchestrator.races import Held, noticed, waiting_briefly_for_files
from tests.orchestrator.test_going_back import Died, after_two_tasks, dying_at, files, go_back, snapshots_of
from tests.orchestrator.test_pause_races import told_as_it_is
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import WITHIN, Theatre

pytestmark = pytest.mark.anyio

WRONG = '{"approved": false, "severity": "critical", "comments": ["no"], "wrong_approach": true}'
SCRIPT = f"""
turns:
  - match: "/asked for a review[^$]*that was done: Do B/"
    do: [{{say: '{WRONG}'}}]
  - match: asked for a review
    do: [{{say: '{{"approved": true, "severity": "low", "comments": []}}'}}]
  - match: "## Make a plan"
    do: [{{say: '{{"tasks": [{{"id": "c", "title": "Do C"}}]}}'}}]
  - match: Do A
    do: [{{write: {{path: a.txt, content: a}}}}, {{say: a}}]
  - match: Do B
    do: [{{write: {{path: b.txt, content: b}}}}, {{say: b}}]
"""


class HeldRewind(Held):
    """A part of going back that waits: before it is done, or before it is written down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: str = "restore files", *, after: bool = True) -> None:
        super().__init__(monkeypatch, step, after=after)
        self._waits = noticed(monkeypatch, "wait until the files are still", when=lambda *_: self.there.is_set())

    async def while_time_goes_by(self, theatre: Theatre) -> None:
        with anyio.fail_after(WITHIN):
            async with theatre.time_going_by(6):
                await self.there.wait()

    async def let_go_while(self, call: Callable[[], Awaitable[Action]]) -> Action:
        """Return the answer to a request that came in the middle of it."""
        return await self.let_go_after(self._waits, call)


def reviewed(theatre: Theatre) -> None:
    theatre.choices = replace(theatre.choices, review=Review(agent="same"), approve_plan=True, fixer="off")


@pytest.fixture
async def reviewing(theatre: Theatre) -> AsyncGenerator[Theatre]:
    reviewed(theatre)
    async with theatre.open(retry_attempts=3):
        yield theatre


def names(theatre: Theatre) -> list[str]:
    return sorted(path.name for path in worktree_of(theatre).iterdir() if path.name != ".git")


@contextmanager
def failing_at(point: str, error: Exception) -> Generator[None]:
    """Something goes wrong there, once."""

    def fail(name: str) -> None:
        if name == point:
            crash.arm(None)
            raise error

    crash.arm(fail)
    try:
        yield
    finally:
        crash.arm(None)


@pytest.mark.parametrize("before", [True, False])
async def test_a_pause_in_between_waits(reviewing: Theatre, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    held = HeldRewind(monkeypatch, after=not before)
    await reviewing.begin(SCRIPT)
    await held.while_time_goes_by(reviewing)
    answer = await held.let_go_while(lambda: reviewing.pause("build-it", "stop it", wait=True))
    view = await reviewing.until("build-it", "paused")
    assert (answer.status, answer.snapshot_id, answer.retry_called_off) == ("paused", view.last_snapshot, False)
    (rewound,) = await reviewing.events("build-it", e.WorkflowRewound)
    assert names(reviewing) == ["a.txt"] and "b.txt" in " ".join(rewound.undone)
    assert len(await reviewing.events("build-it", e.PlanReopened)) == 1
    await told_as_it_is(reviewing)
    assert (await reviewing.resume("build-it")).divergence == ()
    await reviewing.until("build-it", "completed")
    assert "disappeared" not in "".join(entry["text"] for entry in reviewing.diary("prompt"))


async def test_a_cancel_in_the_middle_comes_after_it(reviewing: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    held = HeldRewind(monkeypatch)
    await reviewing.begin(SCRIPT)
    await held.while_time_goes_by(reviewing)
    answer = await held.let_go_while(lambda: reviewing.cancel("build-it", "stop it"))
    await reviewing.until("build-it", "cancelled")
    assert answer.status == "cancelled" and "b.txt" not in names(reviewing)
    assert len(await reviewing.events("build-it", e.WorkflowRewound)) == 1
    await told_as_it_is(reviewing)


async def test_a_cancel_during_a_rewind_comes_after_it(opened: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = await after_two_tasks(opened)
    held = HeldRewind(monkeypatch)
    async with anyio.create_task_group() as others:
        others.start_soon(go_back, opened, first.id)
        await held.there.wait()
        await held.let_go_while(lambda: opened.cancel("build-it", "stop it"))
    await opened.until("build-it", "cancelled")
    assert len(await opened.events("build-it", e.WorkflowRewound)) == 1
    await told_as_it_is(opened)


async def test_a_pause_before_it_begins_changes_nothing(reviewing: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    held, tried = HeldRewind(monkeypatch, "require worktree"), noticed(monkeypatch, "try again", after=True)
    await reviewing.begin(SCRIPT)
    await held.while_time_goes_by(reviewing)
    answer = await reviewing.pause("build-it", "stop it", wait=True)
    assert answer.retry_called_off
    held.go.set()
    with anyio.fail_after(WITHIN):
        await tried.wait()
    assert names(reviewing) == ["a.txt", "b.txt"]
    view = await reviewing.orchestrator.workflow("build-it")
    assert (view.status, view.retry, view.last_snapshot) == (WorkflowStatus.PAUSED, None, answer.snapshot_id)
    assert (await reviewing.resume("build-it")).divergence == ()
    await reviewing.cancel("build-it", "seen enough")


async def test_requests_that_wait_too_long_change_nothing(reviewing: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    held = HeldRewind(monkeypatch)
    waiting_briefly_for_files(monkeypatch)
    await reviewing.begin(SCRIPT)
    await held.while_time_goes_by(reviewing)
    with pytest.raises(WrongState, match="being put in place"):
        await reviewing.pause("build-it", "stop it", wait=True)
    with pytest.raises(WrongState, match="being put in place"):
        await reviewing.cancel("build-it", "stop it")
    held.go.set()
    await reviewing.until("build-it", "completed")


# ── something fails ─────────────────────────────────────────────────────────────────────────────────


async def test_what_cannot_be_written_down_is_undone_and_the_retry_called_off(reviewing: Theatre) -> None:
    with failing_at("resume.before", DatabaseUnusable("The disk is full.")):
        await reviewing.begin(SCRIPT)
        told = (await reviewing.event("build-it", e.RetryCancelled)).event
    assert isinstance(told, e.RetryCancelled) and "The disk is full." in told.reason
    assert names(reviewing) == ["a.txt", "b.txt"]
    assert await reviewing.events("build-it", e.WorkflowRewound) == []
    assert (await reviewing.resume("build-it")).divergence == ()
    await reviewing.cancel("build-it", "seen enough")


async def test_what_was_written_down_stays_though_something_fails_after(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    with failing_at("resume.after", DatabaseUnusable("Too late.")), pytest.raises(DatabaseUnusable):
        await go_back(opened, first.id)
    assert len(await opened.events("build-it", e.WorkflowRewound)) == 1
    assert not (worktree_of(opened) / "sub").exists()
    await opened.cancel("build-it", "seen enough")


async def test_a_stopped_server_restores_files_first(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    reviewed(theatre)
    async with theatre.open(retry_attempts=3):
        with monkeypatch.context() as patched:
            held = HeldRewind(patched)
            await theatre.begin(SCRIPT)
            await held.while_time_goes_by(theatre)
        assert names(theatre) == ["a.txt"]
    assert names(theatre) == ["a.txt", "b.txt"]
    async with theatre.open(retry_attempts=3, environment=theatre.environment):
        await theatre.until("build-it", "completed")
        assert len(await theatre.events("build-it", e.WorkflowRewound)) == 1


# ── the server dies ─────────────────────────────────────────────────────────────────────────────────


async def test_a_server_that_dies_with_the_files_back_is_followed_by_one_that_does_the_rest(theatre: Theatre) -> None:
    reviewed(theatre)
    with pytest.raises(Died):
        async with theatre.open(retry_attempts=3):
            with dying_at("rewind.restored"):
                await theatre.begin(SCRIPT)
                await theatre.as_time_goes_by("build-it", "completed")
    assert names(theatre) == ["a.txt"]
    async with theatre.open(retry_attempts=3, environment=theatre.environment):
        await theatre.until("build-it", "completed")
        (rewound,) = await theatre.events("build-it", e.WorkflowRewound)
        assert "b.txt" in " ".join(rewound.undone)
        saved = [each for each in await snapshots_of(theatre) if each.reason.startswith("before going back to ")]
        assert [each.id for each in saved] == [rewound.saved]


async def test_files_that_are_back_by_half_are_brought_back_for_the_rest(theatre: Theatre) -> None:
    async with theatre.open():
        first, _ = await after_two_tasks(theatre)
        before = files(worktree_of(theatre))
        with dying_at("rewind.saved"):
            await go_back(theatre, first.id)
        (worktree_of(theatre) / "sub/b.txt").unlink()
    async with theatre.open():
        saved = (await theatre.orchestrator.workflow("build-it")).last_snapshot
        back = await go_back(theatre, first.id)
        assert back.saved == saved
        await theatre.event("build-it", e.ContextCarried)
        await theatre.pause("build-it")
        (worktree_of(theatre) / "go-b").touch()
        await theatre.until("build-it", "paused", "completed")
        commit = (await theatre.services.journal.checkpoints.get(back.workflow_id, back.saved or "")).commit
        assert commit is not None
        await restore(worktree_of(theatre), commit)
        assert files(worktree_of(theatre)) == before


async def test_whoever_goes_on_otherwise_is_told_that_going_back_was_interrupted(theatre: Theatre) -> None:
    async with theatre.open():
        first, _ = await after_two_tasks(theatre)
        with dying_at("rewind.restored"):
            await go_back(theatre, first.id)
    async with theatre.open():
        view = await theatre.orchestrator.workflow("build-it")
        resumed = await theatre.resume("build-it")
        said = f"Going back to snapshot {first.id} was interrupted; snapshot {view.last_snapshot} holds"
        assert resumed.divergence[0].startswith(said)
        assert view.status is WorkflowStatus.PAUSED
        await theatre.cancel("build-it", "seen enough")
