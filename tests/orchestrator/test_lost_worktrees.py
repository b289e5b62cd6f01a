"""A worktree is deleted under the work: it comes back with what was saved, and that is said."""

import shutil

import pytest

from segue.model import events as e
from segue.model.agents import Choices, Limits
from tests.orchestrator.test_going_back import dying_at
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre, git

pytestmark = pytest.mark.anyio

SCRIPT = """
turns:
  - match: "Task 1 of 2: Do A"
    do: [{write: {path: a.txt, content: "A"}}]
  - match: Do B
    do: [{write: {path: b.txt, content: "B"}}, {wait_for: /GO/}]
"""


async def begun(theatre: Theatre, **limits: int) -> None:
    theatre.choices = Choices(limits=Limits(**limits))
    await theatre.begin(SCRIPT.replace("/GO/", str(theatre.root / "go")))


async def gone(theatre: Theatre) -> list[str]:
    return [each.message for each in await theatre.events("build-it", e.Warned) if each.code == "worktree_made_again"]


def names(theatre: Theatre) -> set[str]:
    return {path.name for path in worktree_of(theatre).iterdir()} - {".git"}


async def test_a_task_without_worktree_is_not_done_and_earlier_files_come_back(theatre: Theatre) -> None:
    async with theatre.open(retry_attempts=3):
        await begun(theatre)
        await theatre.until_there(worktree_of(theatre) / "b.txt")
        shutil.rmtree(worktree_of(theatre))
        (theatre.root / "go").touch()
        view = await theatre.as_time_goes_by("build-it", "completed")
        (failed,) = await theatre.events("build-it", e.StepFailed)
        assert "is gone, and what was done there for “Do B” with it" in failed.reason
        assert len(await gone(theatre)) == 1
        assert (view.tasks_done, names(theatre)) == (2, {"a.txt", "b.txt"})


@pytest.mark.parametrize("agent", [True, False], ids=["resumed", "without an agent"])
async def test_a_worktree_that_is_gone_at_a_pause_comes_back_with_its_files(opened: Theatre, agent: bool) -> None:
    await begun(opened, tasks=1)
    await opened.until("build-it", "paused")
    (worktree_of(opened) / "a.txt").write_text("A, but changed since")
    shutil.rmtree(worktree_of(opened))
    (opened.root / "go").touch()
    if agent:
        await opened.resume_until("build-it", "completed")
    else:
        assert "with the files of checkpoint" in (await opened.orchestrator.restore_workspace("build-it")).note
    (told,) = await gone(opened)
    assert "what was changed after that is lost" in told
    assert (worktree_of(opened) / "a.txt").read_text() == "A"


async def test_a_worktree_that_was_not_filled_is_not_taken_for_a_whole_one(opened: Theatre) -> None:
    await begun(opened, tasks=1)
    await opened.until("build-it", "paused")
    shutil.rmtree(worktree_of(opened))
    with dying_at("worktree.held"):
        await opened.orchestrator.restore_workspace("build-it")
    assert worktree_of(opened).is_dir() and "a.txt" not in names(opened)
    await opened.orchestrator.restore_workspace("build-it")
    assert names(opened) == {"a.txt"}
    assert "locked" not in git(opened.repository, "worktree", "list", "--porcelain")


async def test_a_worktree_whose_checkpoints_are_gone_too_is_made_from_its_branch(opened: Theatre) -> None:
    await begun(opened, tasks=1)
    await opened.until("build-it", "paused")
    shutil.rmtree(worktree_of(opened))
    for ref in git(opened.repository, "for-each-ref", "--format=%(refname)", "refs/segue/checkpoints").split():
        git(opened.repository, "update-ref", "-d", ref)
    git(opened.repository, "worktree", "prune")
    git(opened.repository, "reflog", "expire", "--expire=now", "--all")
    git(opened.repository, "gc", "--quiet", "--prune=now")
    assert "since no checkpoint has its files" in (await opened.orchestrator.restore_workspace("build-it")).note
