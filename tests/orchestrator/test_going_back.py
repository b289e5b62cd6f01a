"""Going back to an earlier snapshot: files, tasks and what is known; and undoing that."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from segue.model import crash
from segue.model import events as e
from segue.model.checkpoint import Checkpoint
from segue.model.errors import CheckpointNotFound, WorkspaceError, WrongState
from segue.model.ids import PromptId
from segue.model.plan import TaskStatus
from segue.model.status import SessionStatus, Way, WorkflowStatus
from segue.model.views import Resumed
from segue.protocol.admission import AtWork
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

THREE_TASKS = "[{id: a, title: Do A}, {id: b, title: Do B, depends_on: [a]}, {id: c, title: Do C, depends_on: [b]}]"
SCRIPT = """
turns:
  - match: "Task 1 of 3"
    do: [{say: I decided to use alpaca.}, {write: {path: a.txt, content: "A"}}, {wait_for: go-a}]
  - match: "Task 2 of 3"
    do:
      - say: I decided to use buffalo.
      - write: {path: sub/b.txt, content: "B"}
      - write: {path: a.txt, content: "A, spoilt"}
      - run: rm old.txt
      - wait_for: go-b
  - match: "Task 3 of 3"
    do: [{write: {path: c.txt, content: "C"}}]
"""


def files(root: Path) -> dict[str, str]:
    """Everything that git does not ignore."""
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return {name: (root / name).read_text() for name in sorted(set(listed)) if (root / name).exists()}


async def snapshots_of(theatre: Theatre) -> list[Checkpoint]:
    return [each.checkpoint for each in await theatre.orchestrator.snapshots("build-it")]


async def paused_after(theatre: Theatre, letter: str) -> Checkpoint:
    await theatre.pause("build-it", f"after {letter}")
    (worktree_of(theatre) / f"go-{letter}").touch()
    await theatre.until("build-it", "paused")
    return (await snapshots_of(theatre))[0]


async def said(theatre: Theatre, text: str, name: str = "build-it") -> None:
    workflow_id = (await theatre.orchestrator.workflow(name)).id
    with anyio.fail_after(30):
        async for record in theatre.services.journal.follow(workflow_id):
            if isinstance(record.event, e.AgentMessage) and text in record.event.text:
                return


async def after_two_tasks(theatre: Theatre) -> tuple[Checkpoint, Checkpoint]:
    """A workflow with two of its three tasks done; the snapshots after the first and after the second."""
    (theatre.repository / "old.txt").write_text("old")
    (theatre.repository / ".gitignore").write_text("*.log\n")
    git(theatre.repository, "add", "-A")
    git(theatre.repository, "commit", "--quiet", "--message", "second")
    await theatre.begin(SCRIPT, plan=THREE_TASKS)
    await said(theatre, "alpaca")
    first = await paused_after(theatre, "a")
    await theatre.resume("build-it")
    await said(theatre, "buffalo")
    return first, await paused_after(theatre, "b")


async def go_back(theatre: Theatre, snapshot: str, way: Way | None = None) -> Resumed:
    with anyio.fail_after(30):
        return await theatre.resume("build-it", way=way, snapshot=snapshot)


@contextmanager
def looking(theatre: Theatre) -> Generator[dict[str, str]]:
    """The files as they are brought back, before an agent sees them."""
    found: dict[str, str] = {}
    crash.arm(lambda name: found.update(files(worktree_of(theatre))) if name == "rewind.restored" else None)
    try:
        yield found
    finally:
        crash.arm(None)


class Died(BaseException):
    """Where a server would have been killed."""


@contextmanager
def dying_at(point: str) -> Generator[None]:
    def pull(name: str) -> None:
        if name == point:
            raise Died

    crash.arm(pull)
    try:
        with pytest.raises(Died):
            yield
    finally:
        crash.arm(None)


async def test_files_tasks_and_what_is_known_are_those_of_the_snapshot(on_each: Theatre) -> None:
    first, second = await after_two_tasks(on_each)
    (worktree_of(on_each) / "noise.log").write_text("ignored")
    (worktree_of(on_each) / "mine.txt").write_text("untracked")
    index, head = git(worktree_of(on_each), "ls-files", "--stage"), git(worktree_of(on_each), "rev-parse", "HEAD")
    with looking(on_each) as found:
        back = await go_back(on_each, first.id)
    assert (back.way, back.session_number, back.tasks_done, back.divergence) == (Way.CONTEXT, 2, 1, ())
    assert found == {".gitignore": "*.log\n", "a.txt": "A", "go-a": "", "old.txt": "old"}
    assert (worktree_of(on_each) / "noise.log").exists()
    assert git(worktree_of(on_each), "ls-files", "--stage") == index
    assert git(worktree_of(on_each), "rev-parse", "HEAD") == head
    await on_each.event("build-it", e.ContextCarried)
    (worktree_of(on_each) / "go-b").touch()
    view = await on_each.until("build-it", "completed")
    assert (view.tasks_done, view.sessions) == (3, 2)
    assert back.saved is not None
    saved = (await on_each.orchestrator.snapshot("build-it", back.saved)).checkpoint
    assert saved.reason == f"before going back to {first.id}"
    assert "'Do B' became completed" in back.undone[0]
    assert {mark.id: mark.status for mark in second.tasks}["b"] is TaskStatus.COMPLETED
    told = on_each.diary("prompt")[2]["text"]
    assert told.index(f"The work was taken back to snapshot {first.id}") < told.index("Do A")
    assert "alpaca" in told and "buffalo" not in told
    assert "## Task 2 of 3: Do B" in told


async def test_going_back_is_undone_by_going_back_to_what_was_saved(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    (worktree_of(opened) / "mine.txt").write_text("untracked")
    before = files(worktree_of(opened))
    back = await go_back(opened, first.id)
    await opened.event("build-it", e.ContextCarried)
    await paused_after(opened, "b")
    assert back.saved is not None
    again = await go_back(opened, back.saved)
    assert again.tasks_done == 2
    await opened.until("build-it", "completed")
    assert files(worktree_of(opened)) == {**before, "c.txt": "C"}
    facts = await opened.services.facts.facts(again.workflow_id)
    spoken = [sentence.text for sentence in facts.sentences if sentence.voice == "agent"]
    assert spoken == ["I decided to use alpaca.", "I decided to use buffalo."]
    assert "buffalo" in opened.diary("prompt")[-1]["text"]


async def test_the_previous_snapshot_and_a_number_name_a_snapshot_too(opened: Theatre) -> None:
    first, second = await after_two_tasks(opened)
    back = await go_back(opened, "previous")
    assert (await opened.events("build-it", e.WorkflowRewound))[0].checkpoint_id == first.id
    await opened.event("build-it", e.ContextCarried)
    await paused_after(opened, "b")
    assert back.saved is not None
    await go_back(opened, str(int(second.id[-3:])))
    assert (await opened.events("build-it", e.WorkflowRewound))[1].checkpoint_id == second.id
    await opened.until("build-it", "completed")


async def test_the_previous_snapshot_is_never_one_that_was_undone(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    await go_back(opened, first.id)
    await opened.event("build-it", e.ContextCarried)
    await paused_after(opened, "b")
    await go_back(opened, "previous")
    rewound = await opened.events("build-it", e.WorkflowRewound)
    assert [event.checkpoint_id for event in rewound] == [first.id, first.id]


async def test_a_task_boundary_that_is_no_snapshot_can_be_gone_back_to(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    boundary = (await opened.events("build-it", e.CheckpointCreated))[1]
    assert not boundary.snapshot and boundary.checkpoint_id != first.id
    back = await go_back(opened, boundary.checkpoint_id, Way.FRESH)
    assert (back.way, back.tasks_done) == (Way.FRESH, 1)
    await opened.until_prompted(3)
    told = opened.diary("prompt")[2]["text"]
    assert f"The work was taken back to snapshot {boundary.checkpoint_id}" in told


async def test_the_history_that_is_told_leaves_out_what_was_undone(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    await go_back(opened, first.id, Way.HISTORY)
    await opened.until_prompted(3)
    told = opened.diary("prompt")[2]["text"]
    assert "alpaca" in told and "buffalo" not in told


async def test_what_cannot_be_done_is_refused_before_anything_is_touched(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    before, snapshots = files(worktree_of(opened)), await snapshots_of(opened)
    with pytest.raises(CheckpointNotFound):
        await go_back(opened, "099")
    with pytest.raises(WrongState, match="gone beyond the snapshot"):
        await go_back(opened, first.id, Way.NATIVE)
    git(worktree_of(opened), "switch", "--quiet", "--create", "elsewhere")
    with pytest.raises(WrongState, match="on branch segue/build-it"):
        await go_back(opened, first.id)
    git(worktree_of(opened), "switch", "--quiet", "segue/build-it")
    for ref in git(opened.repository, "for-each-ref", "--format=%(refname)", "refs/segue/checkpoints").splitlines():
        git(opened.repository, "update-ref", "-d", ref)
    git(opened.repository, "gc", "--quiet", "--prune=now")
    with pytest.raises(WorkspaceError, match="not in this repository"):
        await go_back(opened, first.id)
    assert files(worktree_of(opened)) == before
    assert await snapshots_of(opened) == snapshots


async def test_commits_stay_and_are_told(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    git(worktree_of(opened), "add", "-A")
    git(worktree_of(opened), "commit", "--quiet", "--message", "B, spoilt")
    head = git(worktree_of(opened), "rev-parse", "HEAD")
    with looking(opened) as found:
        back = await go_back(opened, first.id)
    assert git(worktree_of(opened), "rev-parse", "HEAD") == head
    assert len(back.divergence) == 1 and back.divergence[0].endswith(", 1 commit ahead.")
    assert (found["a.txt"], found["old.txt"]) == ("A", "old")


async def test_an_agent_at_work_is_not_pulled_the_files_from_under_it(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    await go_back(opened, first.id)
    await opened.event("build-it", e.ContextCarried)
    with pytest.raises(AtWork):
        await go_back(opened, first.id)


async def test_an_agent_that_only_talks_makes_room(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    await opened.prompt("build-it", "Well?")
    back = await go_back(opened, first.id)
    assert (back.session_number, back.status) == (2, "resumed")
    session = (await opened.orchestrator.sessions("build-it"))[0]
    assert session.status is SessionStatus.COMPLETED


async def test_nobody_starts_an_agent_while_the_files_are_taken_back(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)

    async def resume() -> None:
        with suppress(WrongState):
            await opened.resume("build-it")

    def meanwhile(name: str) -> None:
        if name == "rewind.saved":
            others.start_soon(resume)
            others.start_soon(resume)

    async with anyio.create_task_group() as others:
        crash.arm(meanwhile)
        try:
            back = await go_back(opened, first.id)
        finally:
            crash.arm(None)
    ways = [event.way for event in await opened.events("build-it", e.RunQueued)]
    assert ways == [Way.FIRST, Way.NATIVE, Way.CONTEXT]
    assert back.session_number == 2


async def test_words_that_nobody_got_yet_belong_to_what_comes_now(opened: Theatre) -> None:
    first, _ = await after_two_tasks(opened)
    session = (await opened.orchestrator.sessions("build-it"))[-1].id
    words = e.PromptQueued(prompt_id=PromptId("prompt-x"), text="Mind the gap.")
    await opened.services.journal.transact(first.workflow_id, lambda t: t.prompts.queue(words, session, None))
    await go_back(opened, first.id)
    await opened.until_prompted(4)
    facts = await opened.services.facts.facts(first.workflow_id)
    assert [ask.text for ask in facts.said] == ["Mind the gap."]
    assert sum("Mind the gap." in entry["text"] for entry in opened.diary("prompt")[2:3]) == 1


async def test_a_server_that_dies_after_the_saving_leaves_the_work_where_it_was(theatre: Theatre) -> None:
    async with theatre.open():
        first, second = await after_two_tasks(theatre)
        before = files(worktree_of(theatre))
        with dying_at("rewind.saved"):
            await go_back(theatre, first.id)
    async with theatre.open():
        assert files(worktree_of(theatre)) == before
        resumed = await theatre.resume("build-it")
        assert (resumed.way, resumed.divergence, resumed.tasks_done) == (Way.NATIVE, (), 2)
        await theatre.until("build-it", "completed")
        assert second.tasks_completed == 2


async def test_a_server_that_dies_with_the_files_back_completes_when_asked_again(theatre: Theatre) -> None:
    async with theatre.open():
        first, _ = await after_two_tasks(theatre)
        with dying_at("rewind.restored"):
            await go_back(theatre, first.id)
    async with theatre.open():
        view = await theatre.orchestrator.workflow("build-it")
        assert (view.status, view.tasks_done) == (WorkflowStatus.PAUSED, 2)
        context = await theatre.orchestrator.context("build-it", None)
        assert "files disappeared: go-b, sub/b.txt" in context.context
        snapshots = len(await snapshots_of(theatre))
        back = await go_back(theatre, first.id)
        assert (back.tasks_done, back.saved) == (1, view.last_snapshot)
        assert len(await snapshots_of(theatre)) == snapshots
        await theatre.event("build-it", e.ContextCarried)
        (worktree_of(theatre) / "go-b").touch()
        await theatre.until("build-it", "completed")
