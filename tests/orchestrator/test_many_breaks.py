"""Work that is paused again and again, and work that never began."""

import pytest

from segue.model import events as e
from segue.model.status import Trigger
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

TASKS = 5
PLAN = "[" + ", ".join(f"{{id: t{n}, title: Write file {n}}}" for n in range(1, TASKS + 1)) + "]"
SCRIPT = "turns:\n" + "".join(
    f'  - match: "Task {n} of {TASKS}"\n'
    f'    do: [{{write: {{path: "{n}.txt", content: "{n}"}}}}, {{say: File {n} is there.}}]\n'
    for n in range(1, TASKS + 1)
)


async def test_work_that_is_paused_after_every_task_is_done_once_and_in_one_session(opened: Theatre) -> None:
    await opened.begin(SCRIPT, plan=PLAN)
    for _ in range(TASKS - 1):
        await opened.pause("build-it", "one at a time", wait=True)
        view = await opened.until("build-it", "paused", "completed")
        if view.status == "completed":
            break
        await opened.resume("build-it")
    view = await opened.until("build-it", "completed")
    done = [event.task_id for event in await opened.events("build-it", e.TaskCompleted)]
    snapshots = [event for event in await opened.events("build-it", e.CheckpointCreated) if event.snapshot]
    pauses = [move for move in await opened.events("build-it", e.WorkflowMoved) if move.after == "paused"]
    assert done == [f"t{n}" for n in range(1, TASKS + 1)]
    assert view.sessions == 1 and view.runs == len(pauses) + 1
    assert len(snapshots) == view.runs and {move.trigger for move in pauses} == {Trigger.PAUSE}
    assert len(opened.diary("prompt")) == TASKS


async def test_work_that_never_began_is_still_pending_after_a_restart(theatre: Theatre) -> None:
    async with theatre.open(agents_at_once=1):
        await theatre.begin("turns: [{match: Do A, do: [{hang: true}]}]")
        await theatre.until_prompted(1)
        await theatre.begin(SCRIPT, title="Another")
    async with theatre.open():
        view = await theatre.orchestrator.workflow("another")
        assert (view.status, view.runs) == ("pending", 1)
        assert await theatre.events("another", e.AgentStarted) == []
        view = await theatre.resume_until("another", "completed")
    assert view.sessions == 1
