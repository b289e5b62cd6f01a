import os
import subprocess
from pathlib import Path

import pytest

from segue.model.checkpoint import FileChange, GitState
from segue.model.codec import decode, encode
from segue.model.errors import EmptyRepository, NotARepository, WorkspaceError
from segue.workspace import read_state, repository_root
from segue.workspace.git import committed_between, git
from tests.workspace.checkout import Repository

pytestmark = pytest.mark.anyio


def change(path: str, action: str, staged: bool = False) -> FileChange:
    return FileChange(path=path, action=action, staged=staged)  # pyright: ignore[reportArgumentType]


async def test_the_root_is_found_from_a_directory_inside_the_repository(repository: Repository) -> None:
    assert await repository_root(repository.path / "src") == repository.path


async def test_a_directory_outside_any_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="not inside a git repository") as refused:
        await repository_root(tmp_path)
    assert "git init" in refused.value.hint


async def test_a_directory_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="There is no directory"):
        await repository_root(tmp_path / "nowhere")


async def test_a_repository_without_a_commit_is_refused(empty: Repository) -> None:
    with pytest.raises(EmptyRepository, match="no commit yet") as refused:
        await repository_root(empty.path)
    assert "git commit" in refused.value.hint


async def test_a_bare_repository_is_refused(repository: Repository, tmp_path: Path) -> None:
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare.git"))
    with pytest.raises(NotARepository, match="bare repository"):
        await repository_root(tmp_path / "bare.git")


async def test_the_inside_of_gits_own_directory_is_refused(repository: Repository) -> None:
    with pytest.raises(NotARepository, match="git's own directory"):
        await repository_root(repository.path / ".git")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_a_repository_of_another_user_is_refused(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(repository.path, 65534, 65534)
    monkeypatch.delenv("GIT_CONFIG_COUNT")
    with pytest.raises(WorkspaceError, match="dubious ownership") as refused:
        await repository_root(repository.path)
    assert "safe.directory" in refused.value.hint


async def test_a_machine_without_git_is_reported(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorkspaceError, match="git was not found") as refused:
        await repository_root(repository.path)
    assert "Install git" in refused.value.hint


async def test_a_missing_worktree_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="does not exist"):
        await read_state(tmp_path / "gone", None)


async def test_the_variables_of_a_surrounding_hook_do_not_mislead_git(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert await repository_root(repository.path) == repository.path
    assert (await read_state(repository.path, None)).changes == ()


async def test_a_refusal_contains_gits_own_message(repository: Repository) -> None:
    with pytest.raises(WorkspaceError, match=r"git cat-file failed: fatal: .*nonsense"):
        await git("cat-file", "-p", "nonsense", cwd=repository.path)


async def test_git_may_refuse_before_it_has_read_its_input(repository: Repository) -> None:
    with pytest.raises(WorkspaceError, match="git update-index failed"):
        await git("update-index", "--index-info", cwd=repository.path, input="not a line of an index\n" * 100_000)


async def test_a_clean_worktree_has_no_changes(repository: Repository) -> None:
    head = repository.git("rev-parse", "HEAD")
    assert await read_state(repository.path, "base") == GitState(branch="main", head=head, base="base")


async def test_committed_and_uncommitted_changes_are_separate(repository: Repository) -> None:
    base = repository.git("rev-parse", "HEAD")
    repository.write("new name.txt", "new")
    repository.write("src/app.py", "print('changed')\n")
    (repository.path / "src/util.py").unlink()
    repository.commit()
    repository.write("later.txt", "later")
    head = repository.git("rev-parse", "HEAD")
    assert set(await committed_between(repository.path, base, head)) == {
        change("new name.txt", "created"),
        change("src/app.py", "modified"),
        change("src/util.py", "deleted"),
    }
    assert (await read_state(repository.path, base)).changes == (change("later.txt", "created"),)
    assert await committed_between(repository.path, "0" * 40, head) == ()


async def test_every_kind_of_change_is_seen(repository: Repository) -> None:
    repository.write("old.txt", "a line\nanother line\na third line\n")
    repository.commit()
    repository.git("mv", "old.txt", "new.txt")
    repository.write("staged.txt", "staged")
    repository.git("add", "staged.txt")
    repository.write("src/app.py", "print('changed')\n")
    repository.write("readme.md", "Staged.\n")
    repository.git("add", "readme.md")
    (repository.path / "src/util.py").unlink()
    repository.write("folder/untracked.txt", "new")
    state = await read_state(repository.path, None)
    assert set(state.changes) == {
        change("new.txt", "renamed", staged=True),
        change("staged.txt", "created", staged=True),
        change("src/app.py", "modified"),
        change("readme.md", "modified", staged=True),
        change("src/util.py", "deleted"),
        change("folder/untracked.txt", "created"),
    }


async def test_a_conflict_is_a_modified_file(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "other")
    repository.write("readme.md", "Theirs.\n")
    repository.commit()
    repository.git("switch", "--quiet", "main")
    repository.write("readme.md", "Ours.\n")
    repository.commit()
    assert subprocess.run(["git", "merge", "other"], cwd=repository.path, capture_output=True).returncode == 1
    assert (await read_state(repository.path, None)).changes == (change("readme.md", "modified"),)


async def test_a_detached_head_has_no_branch(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--detach")
    assert (await read_state(repository.path, None)).branch == "(detached)"


async def test_a_branch_without_a_commit_is_refused(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--orphan", "fresh")
    with pytest.raises(EmptyRepository, match="fresh"):
        await read_state(repository.path, None)


@pytest.mark.parametrize("name", ["with space", " -dash", "new\nline", "tab\tbed", 'quo"ted', "ünï→", "*[x]", "a -> b"])
async def test_unusual_names_come_back_as_they_are(repository: Repository, name: str) -> None:
    repository.write(name, "x")
    assert (await read_state(repository.path, None)).changes == (change(name, "created"),)


async def test_a_name_that_is_not_unicode_can_still_be_stored(repository: Repository) -> None:
    Path(os.fsdecode(os.fsencode(repository.path) + b"/caf\xe9.txt")).write_text("x")
    state = await read_state(repository.path, None)
    assert state.changes == (change("caf\\xe9.txt", "created"),)
    assert decode(GitState, encode(state)) == state


async def test_reading_the_state_changes_nothing(repository: Repository) -> None:
    index = repository.path / ".git/index"
    os.utime(repository.path / "readme.md")
    before = index.read_bytes(), index.stat().st_mtime_ns
    await read_state(repository.path, None)
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before
