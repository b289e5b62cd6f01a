"""Words that come when the work is about to end: whoever speaks is told the truth, and nothing waits for ever."""

import anyio
import pytest

from segue.model import events as e
from segue.model.errors import WrongState
from segue.model.status import Trigger, WorkflowStatus
from segue.model.views import Prompted
from tests.orchestrator.races import Held, noticed
from tests.orchestrator.test_pause_races import told_as_it_is
from tests.orchestrator.theatre import WITHIN, Theatre

pytestmark = pytest.mark.anyio

LEAVING = "wait until the agent is gone"
ONE = "[{id: a, title: Do A}]"
SCRIPT = "turns: [{match: Do A, do: [{say: A is there.}]}]"


async def say(theatre: Theatre, text: str = "One more thing.") -> Prompted:
    with anyio.fail_after(WITHIN):
        return await theatre.prompt("build-it", text, wait=False)


async def test_messages_after_the_last_task_are_refused(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    finishing, waits = Held(monkeypatch, "finish"), noticed(monkeypatch, LEAVING)
    async with theatre.open():
        await theatre.begin(SCRIPT, plan=ONE)
        await finishing.until_there()
        async with anyio.create_task_group() as both:
            both.start_soon(refused, theatre)
            await waits.wait()
            finishing.go.set()
        assert (await theatre.until("build-it", "completed")).waiting_messages == 0
        assert len(await theatre.events("build-it", e.PromptQueued)) == 1


async def refused(theatre: Theatre) -> None:
    with pytest.raises(WrongState, match="The workflow is completed; there is nothing to talk to"):
        await say(theatre)


async def test_work_about_to_end_is_resumable_after_a_crash(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        finishing = Held(patched, "finish")
        async with theatre.open():
            await theatre.begin(SCRIPT, plan=ONE)
            await finishing.until_there()
    async with theatre.open():
        view = await theatre.orchestrator.workflow("build-it")
        assert view.status is WorkflowStatus.PAUSED and view.last_snapshot is not None
        snapshot = (await theatre.orchestrator.snapshot("build-it", view.last_snapshot)).checkpoint
        assert (snapshot.trigger, snapshot.clean_boundary) == (Trigger.CRASH, True)
        await theatre.resume_until("build-it", "completed")
    assert len(theatre.diary("prompt")) == 1


async def test_a_resume_another_way_completes_the_last_steps(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    finishing, waits = Held(monkeypatch, "finish"), noticed(monkeypatch, LEAVING)
    async with theatre.open():
        await theatre.begin(SCRIPT, plan=ONE)
        await finishing.until_there()

        async def resume() -> None:
            with pytest.raises(WrongState, match="The workflow is completed"):
                await theatre.resume("build-it", snapshot="000")

        async with anyio.create_task_group() as both:
            both.start_soon(resume)
            await waits.wait()
            finishing.go.set()
        assert (await theatre.until("build-it", "completed")).runs == 1


async def test_taken_but_unsent_messages_end_with_a_cancel(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    speaking = Held(monkeypatch, "take messages", time=2)
    script = "turns: [{match: Do A, do: [{wait_for: go}]}]"
    async with theatre.open():
        await theatre.begin(script, plan=ONE)
        await theatre.until_prompted(1)
        assert (await say(theatre)).status == "waiting"
        (theatre.root / "worktrees" / "build-it" / "go").touch()
        await speaking.until_there()
        await theatre.cancel("build-it", "not wanted any more")
        assert (await theatre.until("build-it", "cancelled")).waiting_messages == 0
        (said,) = [each for each in await theatre.events("build-it", e.PromptQueued) if each.task_id is None]
        assert [each.prompt_id for each in await theatre.events("build-it", e.PromptNotSent)] == [said.prompt_id]
        await told_as_it_is(theatre)


async def test_messages_during_a_cancel_are_refused(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    settling = Held(monkeypatch, "settle")
    async with theatre.open():
        await theatre.begin("turns: [{match: Do A, do: [{hang: true}]}]", plan=ONE)
        await theatre.until_prompted(1)
        async with anyio.create_task_group() as both:
            both.start_soon(theatre.cancel, "build-it", "not wanted any more")
            await settling.until_there()
            with pytest.raises(WrongState, match="The workflow is cancelled"):
                await say(theatre)
            settling.go.set()
        assert (await theatre.until("build-it", "cancelled")).waiting_messages == 0
