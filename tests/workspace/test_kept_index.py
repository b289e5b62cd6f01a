"""Copy of the index that a checkpoint keeps; it never changes the saved content."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from segue.workspace import ensure_worktree, restore, save, tree_of
from tests.workspace.checkout import Repository

pytestmark = pytest.mark.anyio

REF = "refs/segue/checkpoints/ckpt-1"
LONG_AGO = (1_000_000_000, 1_000_000_000)


def kept(repository: Repository) -> list[Path]:
    return sorted((repository.path / ".git/segue").glob("*"))


def young(repository: Repository) -> Repository:
    """As a checkout leaves it: files with the time of the index, so that git must look into them."""
    for name in ("readme.md", "src/app.py", "src/util.py"):
        os.utime(repository.path / name, LONG_AGO)
    repository.git("update-index", "--refresh")
    os.utime(repository.path / ".git/index", LONG_AGO)
    return repository


def tree_from_nothing(repository: Repository) -> str:
    """The tree of all files, by a git that has never seen one of them."""
    index = repository.path.parent / "index-from-nothing"
    index.unlink(missing_ok=True)
    environment = os.environ | {"GIT_INDEX_FILE": str(index)}
    subprocess.run(["git", "add", "--all"], cwd=repository.path, env=environment, check=True)
    return subprocess.check_output(["git", "write-tree"], cwd=repository.path, env=environment, text=True).strip()


async def test_the_refreshed_index_is_kept_beside_the_users_index(repository: Repository) -> None:
    index = young(repository).path / ".git/index"
    before = index.read_bytes(), index.stat().st_mtime_ns
    first = await save(repository.path, REF, "one")
    (file,) = kept(repository)
    assert file.stat().st_mtime_ns > before[1]
    assert await save(repository.path, REF, "one") == first
    assert kept(repository) == [file]
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before


async def test_nothing_is_kept_if_the_users_index_is_up_to_date(repository: Repository) -> None:
    for name in ("readme.md", "src/app.py", "src/util.py"):
        os.utime(repository.path / name, LONG_AGO)
    repository.git("update-index", "--refresh")
    await save(repository.path, REF, "one")
    assert kept(repository) == []


async def test_a_change_in_the_same_moment_as_the_kept_index_is_seen(repository: Repository) -> None:
    repository.git("config", "core.trustctime", "false")
    path = repository.path / "src/app.py"
    os.utime(path, LONG_AGO)
    await save(repository.path, REF, "one")
    moment = path.stat().st_mtime_ns
    (file,) = kept(repository)
    source, _, digest = file.name.split("-")
    os.utime(file.rename(file.with_name(f"{source}-{moment}-{digest}")), ns=(moment, moment))
    path.write_text("print('hEllo')\n")
    os.utime(path, LONG_AGO)
    saved = await save(repository.path, REF, "two")
    assert repository.git("show", f"{saved.commit}:src/app.py") == "print('hEllo')"


async def test_a_copy_kept_for_another_index_is_not_used_and_removed(repository: Repository) -> None:
    await save(young(repository).path, REF, "one")
    before = kept(repository)
    repository.git("rm", "--quiet", "--cached", "src/app.py")
    repository.write(".gitignore", "app.py\n")
    os.utime(repository.path / ".git/index", LONG_AGO)
    saved = await save(repository.path, REF, "two")
    assert repository.files(saved.commit) == {".gitignore", "readme.md", "src/util.py"}
    assert len(kept(repository)) == 1
    assert kept(repository) != before


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: bytes(len(content)),
        lambda content: content.replace(b"src/app.py", b"src/apq.py"),
        lambda content: b"not an index at all",
    ],
    ids=["empty", "half", "zeros", "another name", "nonsense"],
)
async def test_a_damaged_kept_index_is_not_used(repository: Repository, damage: Callable[[bytes], bytes]) -> None:
    first = await save(young(repository).path, REF, "one")
    (file,) = kept(repository)
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_bytes(damage(file.read_bytes()))
    os.utime(file, ns=times)
    assert await save(repository.path, REF, "one") == first
    (again,) = kept(repository)
    assert again != file


async def test_a_kept_index_that_was_touched_is_not_used(repository: Repository) -> None:
    """It would make files look older than the moment of the look."""
    repository.git("config", "core.trustctime", "false")
    path = young(repository).path / "src/app.py"
    await save(repository.path, REF, "one")
    (file,) = kept(repository)
    os.utime(file, ns=(2**61, 2**61))
    path.write_text("print('hEllo')\n")
    os.utime(path, LONG_AGO)
    saved = await save(repository.path, REF, "two")
    assert repository.git("show", f"{saved.commit}:src/app.py") == "print('hEllo')"


async def test_a_read_only_git_directory_does_not_matter(repository: Repository) -> None:
    young(repository).write(".git/segue", "a file stands where the directory would")
    saved = await save(repository.path, REF, "one")
    assert repository.git("rev-parse", f"{saved.commit}^{{tree}}") == tree_from_nothing(repository)


async def test_a_deleted_and_recreated_worktree_is_saved_as_it_is(repository: Repository, tmp_path: Path) -> None:
    linked = Repository(tmp_path / "linked")
    await ensure_worktree(repository.path, linked.path, "segue/x")
    linked.write("new.txt", "new")
    first = await save(linked.path, REF, "one")
    shutil.rmtree(linked.path)
    repository.git("worktree", "prune")
    assert not list((repository.path / ".git").glob("worktrees/*/segue/*"))
    await ensure_worktree(repository.path, linked.path, "segue/x")
    linked.write("src/app.py", "print('hellO')\n")
    saved = await save(linked.path, REF, "two")
    assert repository.git("rev-parse", f"{saved.commit}^{{tree}}") == tree_from_nothing(linked)
    await restore(linked.path, first.commit)
    assert (linked.path / "new.txt").read_text() == "new"
    assert (linked.path / "src/app.py").read_text() == "print('hello')\n"


async def test_a_sparse_index_is_saved_whole_from_the_kept_copy(repository: Repository) -> None:
    repository.write("docs/deep/guide.md", "Read on.\n")
    repository.commit()
    repository.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
    saved = await save(repository.path, REF, "one")
    assert kept(repository)
    repository.write("src/app.py", "print('hellO')\n")
    assert repository.files((await save(repository.path, REF, "two")).commit) == repository.files(saved.commit)
    assert "docs/deep/guide.md" in repository.files(saved.commit)
    await restore(repository.path, saved.commit)
    assert (repository.path / "src/app.py").read_text() == "print('hello')\n"
    assert not (repository.path / "docs").exists()


# ── whatever happens between two checkpoints ────────────────────────────────────────────────────────


def _write(repository: Repository, random: Random) -> None:
    repository.write(random.choice(["a", "src/app.py", "src/b", "deep/er/c"]), random.choice("xyz") * 8)


def _touch(repository: Repository, random: Random) -> None:
    os.utime(random.choice([*repository.path.glob("src/*"), repository.path / "readme.md"]))


def _delete(repository: Repository, random: Random) -> None:
    (repository.path / random.choice(["a", "src/b", "deep/er/c"])).unlink(missing_ok=True)


def _link(repository: Repository, random: Random) -> None:
    path = repository.path / "link"
    path.unlink(missing_ok=True)
    path.symlink_to(random.choice(["readme.md", "src/b"]))


def _mode(repository: Repository, random: Random) -> None:
    (repository.path / "readme.md").chmod(random.choice([0o644, 0o755]))


def _stage(repository: Repository, random: Random) -> None:
    repository.git("add", "--all")


def _commit(repository: Repository, random: Random) -> None:
    repository.commit()


def _stash(repository: Repository, random: Random) -> None:
    repository.git("stash", "--quiet", "--include-untracked")


DEEDS = (_write, _write, _write, _touch, _delete, _link, _mode, _stage, _commit, _stash)


@pytest.mark.parametrize("seed", range(4))
async def test_each_checkpoint_holds_all_files_after_any_history(repository: Repository, seed: int) -> None:
    """All within a second or two, and with contents of one size: the times tell git little."""
    random = Random(seed)
    for _ in range(12):
        random.choice(DEEDS)(repository, random)
        assert await tree_of(repository.path) == tree_from_nothing(repository)
