"""Commits on the user's branch: everything but secrets, with the user's own git."""

import os
from pathlib import Path

import pytest

from segue.model.errors import WorkspaceError
from segue.workspace.commits import LONGEST_DIFF, Commit, commit_all, difference
from segue.workspace.git import git, head_commit

pytestmark = pytest.mark.anyio


@pytest.fixture
async def worktree(tmp_path: Path) -> Path:
    path = tmp_path / "worktree"
    path.mkdir()
    await git("init", "--quiet", "--initial-branch=main", cwd=path)
    for key in ("name", "email"):
        await git("config", f"user.{key}", "ada@example.org", cwd=path)
    (path / "kept.txt").write_text("kept\n")
    await git("add", "-A", cwd=path)
    await git("commit", "--quiet", "-m", "Begin", cwd=path)
    return path


def wanted(branch: str = "main", title: str = "Do it") -> Commit:
    return Commit(branch=branch, title=title, body="For Ada", environment=os.environ, execution="commit-test")


async def test_changes_deletions_and_new_files_are_committed_and_a_second_time_nothing(worktree: Path) -> None:
    (worktree / "kept.txt").unlink()
    (worktree / "new [1].txt").write_text("new\n")
    committed = await commit_all(worktree, wanted(title="# Do it"))
    assert committed is not None and committed.files == 2
    assert committed.commit == await head_commit(worktree)
    assert (await git("log", "-1", "--format=%B", cwd=worktree)).strip() == "# Do it\n\nFor Ada"
    assert await commit_all(worktree, wanted()) is None
    assert await head_commit(worktree) == committed.commit


async def test_secret_files_and_nested_repositories_stay_out_staged_or_not(worktree: Path) -> None:
    nested = worktree / "nested"
    nested.mkdir()
    await git("init", "--quiet", cwd=nested)
    await git("-c", "user.name=a", "-c", "user.email=a", "commit", "--allow-empty", "-qm", "x", cwd=nested)
    for name in (".env", "server.key", "good.txt"):
        (worktree / name).write_text("x\n")
    await git("add", "server.key", cwd=worktree)
    assert await commit_all(worktree, wanted()) is not None
    assert (await git("ls-files", cwd=worktree)).split() == ["good.txt", "kept.txt"]
    assert (worktree / "server.key").exists()


async def test_with_nothing_but_a_secret_there_is_nothing_to_commit(worktree: Path) -> None:
    (worktree / ".env").write_text("x\n")
    assert await commit_all(worktree, wanted()) is None


async def test_on_another_branch_nothing_is_committed(worktree: Path) -> None:
    (worktree / "new.txt").write_text("new\n")
    before = await head_commit(worktree)
    with pytest.raises(WorkspaceError, match="on main, not on segue/it"):
        await commit_all(worktree, wanted("segue/it"))
    assert await head_commit(worktree) == before


async def test_a_long_difference_begins_with_what_changed_in_all_files(worktree: Path) -> None:
    before = await head_commit(worktree)
    (worktree / "long.txt").write_text("line\n" * LONGEST_DIFF)
    (worktree / "zebra.txt").write_text("z\n")
    await commit_all(worktree, wanted())
    after = await head_commit(worktree)
    assert before is not None and after is not None
    told = await difference(worktree, before, after)
    assert len(told) < 2 * LONGEST_DIFF and "zebra.txt |" in told and "characters left out" in told
