"""The hand-over at the soft cap, and whoever decides otherwise in the middle of it, or while the next session waits."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest

from segue.model import events as e
from segue.model.status import SessionStatus, Trigger, Way
from segue.model.views import Action
from tests.orchestrator.races import Held
from tests.orchestrator.test_capacity import filling
from tests.orchestrator.test_pause_races import at_once, cancelling, go, told_as_it_is
from tests.orchestrator.theatre import WITHIN, Theatre

pytestmark = pytest.mark.anyio

FULL = filling(81_000)
IN_LINE = "turns: [{match: Hold the place, do: [{wait_for: go}]}]"


class Window(Held):
    """Place at which a hand-over waits that is decided and not written down yet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch, "finish", when=lambda _, end: end.status == "in_progress")

    async def let_go_while(self, ask: Callable[[], Awaitable[Any]], theatre: Theatre, seen: type[e.Event]) -> Any:
        """What is answered to somebody whose word is taken down in the middle of it."""
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await ask())

        with anyio.fail_after(WITHIN):
            async with anyio.create_task_group() as asking:
                asking.start_soon(call)
                await theatre.event("build-it", seen)
                self.go.set()
        return answers[0]


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Window:
    return Window(monkeypatch)


async def handing_over(theatre: Theatre, window: Window) -> None:
    await theatre.begin(FULL)
    with anyio.fail_after(WITHIN):
        await window.there.wait()


def tonight(theatre: Theatre) -> Callable[[], Awaitable[Action]]:
    return partial(theatre.pause, "build-it", "for tonight", wait=True)


async def sessions(theatre: Theatre) -> list[SessionStatus]:
    view = await theatre.orchestrator.workflow("build-it")
    return [each.status for each in (await theatre.services.journal.state(view.id)).sessions.values()]


async def test_a_pause_in_the_middle_of_a_hand_over_leaves_nobody_at_work(theatre: Theatre, window: Window) -> None:
    async with theatre.open():
        await handing_over(theatre, window)
        answer = await window.let_go_while(tonight(theatre), theatre, e.PauseRequested)
        view = await theatre.until("build-it", "paused")
        (snapshot, *_) = await theatre.services.journal.checkpoints.snapshots(view.id, limit=1)
        assert (answer.status, answer.snapshot_id) == ("paused", snapshot.id)
        assert (snapshot.trigger, snapshot.reason, snapshot.clean_boundary) == (Trigger.PAUSE, "for tonight", True)
        assert await sessions(theatre) == [SessionStatus.SUSPENDED]
        assert [each.after for each in await told_as_it_is(theatre)] == ["in_progress", "paused"]
        assert len(theatre.diary("prompt")) == 1
        assert (await theatre.resume("build-it")).way is Way.CONTEXT
        view = await theatre.until("build-it", "completed")
        assert (view.sessions, view.tasks_done) == (2, 2)


async def test_a_cancel_in_the_middle_of_a_hand_over_leaves_nobody_at_work(theatre: Theatre, window: Window) -> None:
    async with theatre.open():
        await handing_over(theatre, window)
        await window.let_go_while(cancelling(theatre), theatre, e.RunEnded)
        await theatre.until("build-it", "cancelled")
        assert await sessions(theatre) == [SessionStatus.CANCELLED]
        await told_as_it_is(theatre)
        assert theatre.services.live == {} and theatre.services.environments == {}


async def test_a_pause_and_a_cancel_that_race_with_a_hand_over_end_in_a_cancelled_workflow(opened: Theatre) -> None:
    await opened.begin(filling(81_000, "{wait_for: go}"))
    await opened.until_prompted(1)
    go(opened)
    await at_once(tonight(opened), cancelling(opened), tonight(opened))
    await opened.until("build-it", "cancelled", "completed")
    await told_as_it_is(opened)
    assert opened.services.live == {} and opened.services.environments == {}


async def test_a_pause_that_races_with_a_hand_over_loses_no_session_and_no_task(opened: Theatre) -> None:
    await opened.begin(filling(81_000, "{wait_for: go}"))
    await opened.until_prompted(1)
    go(opened)
    await at_once(*[tonight(opened)] * 3)
    view = await opened.until("build-it", "paused", "completed")
    await told_as_it_is(opened)
    if view.status == "paused":
        await opened.resume("build-it")
    view = await opened.until("build-it", "completed")
    assert (view.sessions, view.tasks_done) == (2, 2)


async def test_a_message_during_a_hand_over_reaches_the_next_session(theatre: Theatre, window: Window) -> None:
    async with theatre.open():
        await handing_over(theatre, window)
        ask = partial(theatre.prompt, "build-it", "Use spaces.")
        answer = await window.let_go_while(ask, theatre, e.PromptQueued)
        view = await theatre.until("build-it", "completed")
        second = list((await theatre.services.journal.state(view.id)).sessions)[1]
        assert (answer.status, answer.session, answer.reason) == ("sent", second, "")
    assert "Use spaces." in theatre.diary("prompt")[1]["text"]


# ── the next session waits for its place ────────────────────────────────────────────────────────────


async def waiting_for_its_place(theatre: Theatre) -> None:
    """Somebody else came first, and has the only place."""
    await theatre.begin(filling(81_000, "{wait_for: go}"))
    await theatre.until_prompted(1)
    script = theatre.script
    theatre.script = theatre.root / "other.yaml"
    await theatre.begin(IN_LINE, title="Hold the place", plan=None)
    theatre.script = script
    go(theatre)
    await theatre.until_prompted(2)
    assert await sessions(theatre) == [SessionStatus.COMPLETED, SessionStatus.CREATED]


async def goes_on_in_session_two(theatre: Theatre) -> None:
    resumed = await theatre.resume("build-it")
    assert (resumed.session_number, resumed.way) == (2, Way.CONTEXT)
    view = await theatre.until("build-it", "completed")
    assert (view.sessions, view.tasks_done) == (2, 2)
    assert await sessions(theatre) == [SessionStatus.COMPLETED] * 2
    (carried,) = await theatre.events("build-it", e.ContextCarried)
    assert carried.way is Way.CONTEXT


async def test_a_next_session_that_waits_for_its_place_is_paused_at_once_and_goes_on_later(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1):
        await waiting_for_its_place(theatre)
        with anyio.fail_after(WITHIN):
            answer = await tonight(theatre)()
        assert answer.status == "paused"
        (theatre.root / "worktrees" / "hold-the-place" / "go").touch()
        await theatre.until("hold-the-place", "completed")
        await goes_on_in_session_two(theatre)
        await told_as_it_is(theatre)


async def test_a_next_session_that_waited_when_the_server_died_goes_on(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1):
        await waiting_for_its_place(theatre)
    async with theatre.open():
        assert (await theatre.orchestrator.workflow("build-it")).status == "paused"
        await goes_on_in_session_two(theatre)
        await told_as_it_is(theatre)


async def test_a_next_session_without_an_agent_goes_on_later(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        opening = Held(patched, "open agent", when=lambda run, *_: run.lease.workflow.session_count == 2)
        async with theatre.open():
            await theatre.begin(FULL)
            await opening.until_there()
    async with theatre.open():
        assert await sessions(theatre) == [SessionStatus.COMPLETED, SessionStatus.SUSPENDED]
        await goes_on_in_session_two(theatre)


async def test_another_agent_that_takes_over_before_the_next_session_came_up_ends_that(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1):
        await waiting_for_its_place(theatre)
        await tonight(theatre)()
        (theatre.root / "worktrees" / "hold-the-place" / "go").touch()
        await theatre.until("hold-the-place", "completed")
        assert (await theatre.resume("build-it", agent="understudy")).session_number == 3
        await theatre.until("build-it", "completed")
        ended = [SessionStatus.COMPLETED, SessionStatus.CANCELLED, SessionStatus.COMPLETED]
        assert await sessions(theatre) == ended
