import pytest

from segue.workspace import divergence, read_state, save
from tests.workspace.checkout import Repository

pytestmark = pytest.mark.anyio

REF = "refs/segue/checkpoints/one"


async def test_an_untouched_worktree_has_not_diverged(repository: Repository) -> None:
    repository.write("src/app.py", "changed")
    repository.write("new.txt", "new")
    before = await read_state(repository.path, None)
    saved = await save(repository.path, REF, "one")
    assert await divergence(repository.path, before) == ()
    assert await divergence(repository.path, before, saved.commit) == ()


async def test_a_change_of_the_branch_is_reported(repository: Repository) -> None:
    before = await read_state(repository.path, None)
    repository.git("switch", "--quiet", "--create", "other")
    assert await divergence(repository.path, before) == ("The branch was main and is now other.",)


async def test_commits_made_since_are_counted(repository: Repository) -> None:
    before = await read_state(repository.path, None)
    repository.commit()
    head = repository.commit()
    moved = f"HEAD moved from {before.head[:10]} to {head[:10]}, 2 commits ahead."
    assert await divergence(repository.path, before) == (moved,)


async def test_removed_commits_are_counted(repository: Repository) -> None:
    repository.commit()
    before = await read_state(repository.path, None)
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    (sentence,) = await divergence(repository.path, before)
    assert sentence.endswith("1 commit behind.")


async def test_an_amended_commit_is_both_ahead_and_behind(repository: Repository) -> None:
    repository.commit()
    before = await read_state(repository.path, None)
    repository.git("commit", "--quiet", "--amend", "--allow-empty", "--message", "Better")
    (sentence,) = await divergence(repository.path, before)
    assert sentence.endswith("1 commit ahead and 1 commit behind.")


async def test_an_unrelated_history_is_named_so(repository: Repository) -> None:
    before = await read_state(repository.path, None)
    other = repository.git("commit-tree", "-m", "Another beginning", "HEAD^{tree}")
    repository.git("reset", "--quiet", "--hard", other)
    (sentence,) = await divergence(repository.path, before)
    assert sentence.endswith("1 commit ahead and 1 commit behind, unrelated.")


async def test_a_deleted_head_commit_is_reported(repository: Repository) -> None:
    before = await read_state(repository.path, None)
    repository.git("commit", "--quiet", "--amend", "--message", "Better")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("prune", "--expire=now")
    (sentence,) = await divergence(repository.path, before)
    assert sentence.endswith("; the earlier commit is no longer in the repository.")


async def test_files_that_changed_or_were_put_back_are_named(repository: Repository) -> None:
    repository.write("src/app.py", "changed")
    repository.write("src/util.py", "changed")
    before = await read_state(repository.path, None)
    repository.git("checkout", "--quiet", "src/app.py")
    (repository.path / "src/util.py").unlink()
    repository.write("new.txt", "new")
    assert await divergence(repository.path, before) == (
        "The file new.txt changed, and had no changes before.",
        "The file src/util.py changed in another way than before.",
        "The file src/app.py had changes before and lost them.",
    )


async def test_a_dirty_file_that_changed_again_is_seen_with_a_checkpoint(repository: Repository) -> None:
    repository.write("src/app.py", "changed")
    before = await read_state(repository.path, None)
    saved = await save(repository.path, REF, "one")
    repository.write("src/app.py", "changes")
    repository.write("new.txt", "new")
    (repository.path / "readme.md").unlink()
    assert await divergence(repository.path, before, saved.commit) == (
        "The file new.txt appeared.",
        "The file readme.md disappeared.",
        "The file src/app.py changed.",
    )


async def test_committing_what_was_saved_moves_only_head(repository: Repository) -> None:
    repository.write("src/app.py", "changed")
    before = await read_state(repository.path, None)
    saved = await save(repository.path, REF, "one")
    repository.commit()
    (sentence,) = await divergence(repository.path, before, saved.commit)
    assert sentence.startswith("HEAD moved")


async def test_many_files_are_counted_and_some_of_them_named(repository: Repository) -> None:
    before = await read_state(repository.path, None)
    for number in range(15):
        repository.write(f"{number:02}.txt", "new")
    (sentence,) = await divergence(repository.path, before)
    assert sentence.startswith("15 files changed, and had no changes before: 00.txt, 01.txt, ")
    assert sentence.endswith("09.txt and 5 more.")
