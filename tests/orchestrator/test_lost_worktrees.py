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


async def test_a_task_whose_worktree_is_gone_is_not_done_and_the_files_of_those_before_come_back(
    theatre: Theatre,
) -> None:
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
async def test_a_worktree_that_is_gone_at_a_pause_comes_back_with_its_files(theatre: Theatre, agent: bool) -> None:
    async with theatre.open():
        await begun(theatre, tasks=1)
        await theatre.until("build-it", "paused")
        (worktree_of(theatre) / "a.txt").write_text("A, but changed since")
        shutil.rmtree(worktree_of(theatre))
        (theatre.root / "go").touch()
        if agent:
            await theatre.resume("build-it")
            await theatre.until("build-it", "completed")
        else:
            restored = await theatre.orchestrator.restore_workspace("build-it")
            assert "with the files of checkpoint" in restored.note
        (told,) = await gone(theatre)
        assert "what was changed after that is lost" in told
        assert (worktree_of(theatre) / "a.txt").read_text() == "A"


async def test_a_worktree_that_was_not_filled_is_not_taken_for_a_whole_one(theatre: Theatre) -> None:
    async with theatre.open():
        await begun(theatre, tasks=1)
        await theatre.until("build-it", "paused")
        shutil.rmtree(worktree_of(theatre))
        with dying_at("worktree.held"):
            await theatre.orchestrator.restore_workspace("build-it")
        assert worktree_of(theatre).is_dir() and "a.txt" not in names(theatre)
        await theatre.orchestrator.restore_workspace("build-it")
        assert names(theatre) == {"a.txt"}
        assert "locked" not in git(theatre.repository, "worktree", "list", "--porcelain")


async def test_a_worktree_whose_checkpoints_are_gone_too_is_made_from_its_branch(theatre: Theatre) -> None:
    async with theatre.open():
        await begun(theatre, tasks=1)
        await theatre.until("build-it", "paused")
        shutil.rmtree(worktree_of(theatre))
        for ref in git(theatre.repository, "for-each-ref", "--format=%(refname)", "refs/segue/checkpoints").split():
            git(theatre.repository, "update-ref", "-d", ref)
        git(theatre.repository, "worktree", "prune")
        git(theatre.repository, "reflog", "expire", "--expire=now", "--all")
        git(theatre.repository, "gc", "--quiet", "--prune=now")
        restored = await theatre.orchestrator.restore_workspace("build-it")
        assert "since no checkpoint has its files" in restored.note
