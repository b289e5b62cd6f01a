import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import anyio
import pytest

from segue.model.errors import EmptyRepository, WorkspaceError
from segue.workspace import ensure_worktree, read_state, restore, save, save_with_state, tree_of
from tests.workspace.checkout import Repository, begun

pytestmark = pytest.mark.anyio

REF = "refs/segue/checkpoints/ckpt-1"
NOBODY = 65534


def everything(top: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a directory, git's own but for objects and what is ours included: mode, time and content."""
    return {
        str(path.relative_to(top)): (path.lstat().st_mode, path.lstat().st_mtime_ns, _content(path))
        for path in sorted(top.rglob("*"))
        if not any(path.is_relative_to(top / ".git" / ours) for ours in ("objects", "refs/segue", "segue"))
        if not path.is_dir() or path.is_symlink()
    }


def _content(path: Path) -> bytes:
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


def contents(top: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of the user's, without its time."""
    return {name: (mode, data) for name, (mode, _, data) in everything(top).items() if not name.startswith(".git/")}


def make_a_mess(repository: Repository) -> None:
    """Every kind of change at once."""
    repository.write("src/app.py", "print('changed')\n")
    repository.write("staged.txt", "staged\n")
    repository.git("add", "staged.txt")
    repository.write("staged.txt", "staged, then changed\n")
    repository.write("folder/deep/untracked.txt", "new\n")
    repository.write("tool.sh", "#!/bin/sh\n").chmod(0o755)
    (repository.path / "link").symlink_to("readme.md")
    (repository.path / "src/util.py").unlink()


@pytest.fixture
def public() -> Generator[Repository]:
    """A repository where any user of the machine may come, unlike those below pytest's own directory."""
    with TemporaryDirectory(prefix="segue-test-") as path:
        Path(path).chmod(0o755)
        yield begun(Path(path))


@contextmanager
def unprivileged(repository: Repository) -> Generator[None]:
    """File permissions mean nothing to root."""
    if os.geteuid() != 0:
        yield
        return
    for path in (repository.path, *repository.path.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_a_checkpoint_holds_the_whole_worktree(repository: Repository) -> None:
    make_a_mess(repository)
    saved = await save(repository.path, REF, "Task 1 is done")
    assert saved.left_out == ()
    assert repository.git("rev-parse", REF) == saved.commit
    assert repository.files(saved.commit) == {
        *("readme.md", "src/app.py", "staged.txt", "folder/deep/untracked.txt", "tool.sh", "link")
    }
    assert repository.git("show", f"{REF}:staged.txt") == "staged, then changed"
    assert repository.git("log", "-1", "--format=%an <%ae> %s %P", REF) == (
        f"Segue <segue@localhost> Task 1 is done {repository.git('rev-parse', 'HEAD')}"
    )


async def test_saving_touches_neither_files_nor_index_nor_head(repository: Repository) -> None:
    make_a_mess(repository)
    os.utime(repository.path / "readme.md")
    before = everything(repository.path)
    await save(repository.path, REF, "one")
    await tree_of(repository.path)
    assert everything(repository.path) == before


async def test_no_spare_index_is_left(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    await save(repository.path, REF, "one")
    with pytest.raises(WorkspaceError):
        await save(repository.path, "not a ref", "two")
    assert gettempdir() == str(tmp_path)
    assert set(tmp_path.iterdir()) == before


async def test_saving_the_same_again_gives_the_same_commit(repository: Repository) -> None:
    repository.write("new.txt", "new")
    first = await save(repository.path, REF, "one")
    assert await save(repository.path, REF, "one, again") == first


async def test_saving_something_else_under_the_same_ref_moves_the_ref(repository: Repository) -> None:
    first = await save(repository.path, REF, "one")
    repository.write("new.txt", "new")
    second = await save(repository.path, REF, "one, later")
    assert second.commit != first.commit
    assert repository.git("rev-parse", REF) == second.commit
    repository.commit()
    assert (await save(repository.path, REF, "the same files on another HEAD")).commit != second.commit


async def test_saves_at_the_same_time_do_not_collide(repository: Repository) -> None:
    make_a_mess(repository)
    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(save, repository.path, f"{REF}-{number}", "one")
    trees = {repository.git("rev-parse", f"{REF}-{number}^{{tree}}") for number in range(6)}
    assert trees == {await tree_of(repository.path)}


async def test_a_linked_worktree_is_saved_from_its_own_index(repository: Repository, tmp_path: Path) -> None:
    await ensure_worktree(repository.path, tmp_path / "linked", "segue/x")
    linked = Repository(tmp_path / "linked")
    make_a_mess(linked)
    assert "staged.txt" in repository.files((await save(linked.path, REF, "one")).commit)
    assert linked.git("diff", "--cached", "--name-only") == "staged.txt"


async def test_a_worktree_without_an_index_is_saved(repository: Repository) -> None:
    repository.write(".env", "A=tracked")
    repository.commit()
    (repository.path / ".git/index").unlink()
    saved = await save(repository.path, REF, "one")
    assert saved.left_out == ()
    assert repository.files(saved.commit) == {"readme.md", "src/app.py", "src/util.py", ".env"}
    assert not (repository.path / ".git/index").exists()


async def test_an_empty_index_is_saved(repository: Repository) -> None:
    repository.git("rm", "--quiet", "-r", "--cached", ".")
    saved = await save(repository.path, REF, "one")
    assert repository.files(saved.commit) == {"readme.md", "src/app.py", "src/util.py"}


async def test_a_branch_without_a_commit_is_saved(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--orphan", "fresh")
    repository.write("new.txt", "new")
    saved = await save(repository.path, REF, "one")
    assert repository.git("log", "-1", "--format=%P", saved.commit) == ""
    assert repository.files(saved.commit) == {"new.txt"}
    assert await save(repository.path, REF, "one") == saved


async def test_a_change_in_the_same_moment_as_the_index_is_seen(repository: Repository) -> None:
    repository.git("config", "core.trustctime", "false")
    path, index, moment = repository.path / "src/app.py", repository.path / ".git/index", (1_000_000_000, 1_000_000_000)
    path.write_text("print('hellO')\n")
    os.utime(path, moment)
    repository.git("add", "src/app.py")
    path.write_text("print('hEllo')\n")
    os.utime(path, moment)
    os.utime(index, moment)
    saved = await save(repository.path, REF, "one")
    assert repository.git("show", f"{saved.commit}:src/app.py") == "print('hEllo')"


@pytest.mark.parametrize(
    "name", ["with space", " -dash", "new\nline", "tab\tbed", 'quo"ted', "ünï→", "*[x]", ":(top)x"]
)
async def test_unusual_names_are_saved_and_restored(repository: Repository, name: str) -> None:
    repository.write(name, "unusual")
    saved = await save(repository.path, REF, "one")
    assert name in repository.files(saved.commit)
    (repository.path / name).unlink()
    await restore(repository.path, saved.commit)
    assert (repository.path / name).read_text() == "unusual"


async def test_a_name_that_is_not_unicode_is_saved_and_restored(repository: Repository) -> None:
    path = Path(os.fsdecode(os.fsencode(repository.path) + b"/caf\xe9.txt"))
    path.write_text("x")
    saved = await save(repository.path, REF, "one")
    path.unlink()
    await restore(repository.path, saved.commit)
    assert path.read_text() == "x"


async def test_files_that_became_directories_and_the_reverse_are_saved_and_restored(repository: Repository) -> None:
    (repository.path / "readme.md").unlink()
    repository.write("readme.md/part.md", "Now a directory.")
    shutil.rmtree(repository.path / "src")
    (repository.path / "elsewhere").mkdir()
    repository.write("elsewhere/app.py", "elsewhere")
    (repository.path / "src").symlink_to("elsewhere")
    there = contents(repository.path)
    saved = await save(repository.path, REF, "one")
    assert repository.files(saved.commit) == {"readme.md/part.md", "src", "elsewhere/app.py"}
    await restore(repository.path, repository.git("rev-parse", "HEAD"))
    assert set(contents(repository.path)) == {"readme.md", "src/app.py", "src/util.py"}
    await restore(repository.path, saved.commit)
    assert contents(repository.path) == there


async def test_hooks_signing_and_names_are_not_needed(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pre-commit", "post-index-change", "reference-transaction", "post-checkout", "commit-msg"):
        repository.write(f".git/hooks/{name}", "#!/bin/sh\ntouch hook-ran; exit 1\n").chmod(0o755)
    repository.git("config", "commit.gpgsign", "true")
    repository.git("config", "gpg.program", "/nonexistent")
    repository.git("config", "user.useConfigOnly", "true")
    repository.git("config", "core.fsmonitor", "/nonexistent/fsmonitor")
    repository.git("config", "core.splitIndex", "true")
    repository.git("config", "core.safecrlf", "true")
    repository.git("config", "core.autocrlf", "input")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_NAME")
        monkeypatch.delenv(f"GIT_{role}_EMAIL")
    repository.write("windows.txt", "one\r\ntwo\r\n")
    saved = await save(repository.path, REF, "one")
    (repository.path / "src/app.py").unlink()
    await restore(repository.path, saved.commit)
    assert not (repository.path / "hook-ran").exists()
    assert "windows.txt" in repository.files(saved.commit)


async def test_a_split_index_is_not_disturbed(repository: Repository) -> None:
    repository.git("config", "core.splitIndex", "true")
    repository.git("update-index", "--split-index")
    make_a_mess(repository)
    # Git itself renews the time of a shared index with every look.
    before = {name: (mode, data) for name, (mode, _, data) in everything(repository.path).items()}
    saved = await save(repository.path, REF, "one")
    assert {name: (mode, data) for name, (mode, _, data) in everything(repository.path).items()} == before
    assert "folder/deep/untracked.txt" in repository.files(saved.commit)


async def test_a_conflict_is_saved_as_the_file_stands(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "other")
    repository.write("readme.md", "Theirs.\n")
    repository.commit()
    repository.git("switch", "--quiet", "main")
    repository.write("readme.md", "Ours.\n")
    repository.commit()
    with pytest.raises(Exception, match="merge"):
        repository.git("merge", "other")
    saved = await save(repository.path, REF, "one")
    assert "<<<<<<<" in repository.git("show", f"{saved.commit}:readme.md")
    assert repository.git("ls-files", "--unmerged")


async def test_files_added_with_intent_to_add_are_saved(repository: Repository) -> None:
    for name in ("announced.txt", "gone.txt"):
        repository.write(name, "soon")
    repository.git("add", "--intent-to-add", "announced.txt", "gone.txt")
    (repository.path / "gone.txt").unlink()
    saved = await save(repository.path, REF, "one")
    assert repository.git("show", f"{saved.commit}:announced.txt") == "soon"
    assert "gone.txt" not in repository.files(saved.commit)


async def test_one_call_gives_the_state_and_the_same_tree(repository: Repository) -> None:
    make_a_mess(repository)
    state, saved = await save_with_state(repository.path, REF, "one", "base")
    assert state == await read_state(repository.path, "base")
    assert saved == await save(repository.path, REF, "one")


async def test_a_branch_without_a_commit_has_no_state_and_is_not_saved(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--orphan", "fresh")
    with pytest.raises(EmptyRepository, match="fresh"):
        await save_with_state(repository.path, REF, "one", None)
    assert repository.git("for-each-ref", "refs/segue") == ""


async def test_renamed_files_are_saved_as_they_stand(repository: Repository) -> None:
    for name in ("staged", "twice", "announced", "back"):
        repository.write(name, f"{name}, the same in every line\n" * 20)
    repository.commit()
    repository.git("mv", "staged", "staged-2")
    repository.git("mv", "twice", "twice-2")
    (repository.path / "twice-2").rename(repository.path / "twice-3")
    (repository.path / "announced").rename(repository.path / "announced-2")
    repository.git("add", "--intent-to-add", "twice-3", "announced-2")
    repository.git("mv", "back", "back-2")
    (repository.path / "back-2").rename(repository.path / "back")
    there = contents(repository.path)
    state, saved = await save_with_state(repository.path, REF, "one", None)
    renamed = {change.path for change in state.changes if change.action == "renamed"}
    assert renamed >= {"staged-2", "twice-3", "announced-2"}
    assert repository.files(saved.commit) == set(there)
    assert repository.git("rev-parse", f"{saved.commit}^{{tree}}") == await tree_of(repository.path)


async def test_a_file_renamed_to_a_secret_one_is_left_out(repository: Repository) -> None:
    repository.write("plain.txt", "the same in every line\n" * 20)
    repository.commit()
    repository.git("mv", "plain.txt", "server.key")
    _, saved = await save_with_state(repository.path, REF, "one", None)
    assert saved.left_out == ("server.key",)
    assert repository.files(saved.commit) == {"readme.md", "src/app.py", "src/util.py"}


async def test_a_secret_file_in_git_is_kept_though_another_was_renamed_to_it(repository: Repository) -> None:
    repository.write("plain.txt", "the same in every line\n" * 20)
    repository.write("server.key", "as git has it\n")
    repository.commit()
    repository.git("rm", "--quiet", "--cached", "server.key")
    (repository.path / "plain.txt").rename(repository.path / "server.key")
    repository.git("add", "--intent-to-add", "server.key")
    _, saved = await save_with_state(repository.path, REF, "one", None)
    assert repository.git("show", f"{saved.commit}:server.key") == "as git has it"
    assert "plain.txt" not in repository.files(saved.commit)


async def test_a_sparse_checkout_is_saved_whole(repository: Repository) -> None:
    repository.git("sparse-checkout", "set", "--no-cone", "/readme.md")
    assert not (repository.path / "src").exists()
    saved = await save(repository.path, REF, "one")
    assert repository.files(saved.commit) == {"readme.md", "src/app.py", "src/util.py"}
    repository.write("readme.md", "broken")
    await restore(repository.path, saved.commit)
    assert (repository.path / "readme.md").read_text() == "Read me.\n"
    assert not (repository.path / "src").exists()


async def test_ignored_files_are_not_saved(repository: Repository) -> None:
    repository.write(".gitignore", "build/\n")
    repository.write("build/out.bin", "big")
    saved = await save(repository.path, REF, "one")
    assert saved.left_out == ()
    assert "build/out.bin" not in repository.files(saved.commit)


async def test_secret_files_are_left_out_and_named(repository: Repository) -> None:
    for name in (".env", "config/.env.local", "server.key", ".env.example"):
        repository.write(name, "A=1")
    repository.write("staged.pem", "-----BEGIN")
    repository.git("add", "staged.pem")
    saved = await save(repository.path, REF, "one")
    assert saved.left_out == (".env", "config/.env.local", "server.key", "staged.pem")
    assert repository.files(saved.commit) == {"readme.md", "src/app.py", "src/util.py", ".env.example"}


async def test_a_secret_file_that_is_already_in_git_is_kept_as_git_has_it(repository: Repository) -> None:
    for name in (".env", "staged.key", "same.pem", "removed.key"):
        repository.write(name, "in git")
    repository.commit()
    repository.write(".env", "a new secret")
    repository.write("staged.key", "a new secret")
    repository.git("add", "staged.key")
    (repository.path / "removed.key").unlink()
    saved = await save(repository.path, REF, "one")
    assert saved.left_out == (".env", "staged.key")
    assert "removed.key" not in repository.files(saved.commit)
    assert {repository.git("show", f"{saved.commit}:{name}") for name in (".env", "staged.key", "same.pem")} == {
        "in git"
    }


async def test_nested_repositories_are_left_out_and_named(repository: Repository) -> None:
    for name in ("vendored", "without-a-commit"):
        nested = Repository(repository.path / name)
        nested.path.mkdir()
        nested.git("init", "--quiet")
    nested = Repository(repository.path / "vendored")
    nested.write("code.py", "x = 1")
    nested.commit()
    saved = await save(repository.path, REF, "one")
    assert saved.left_out == ("vendored (nested repository)", "without-a-commit (nested repository)")
    assert repository.files(saved.commit) == {"readme.md", "src/app.py", "src/util.py"}
    await restore(repository.path, saved.commit)
    assert (nested.path / "code.py").read_text() == "x = 1"


async def test_a_submodule_is_named_only_when_it_changed(repository: Repository, tmp_path: Path) -> None:
    library = Repository(tmp_path / "library")
    library.path.mkdir()
    library.git("init", "--quiet")
    library.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "library")
    repository.commit()
    assert (await save(repository.path, REF, "one")).left_out == ()
    inside = Repository(repository.path / "library")
    inside.write("changed.txt", "changed")
    assert (await save(repository.path, REF, "one")).left_out == ("library (nested repository)",)
    inside.commit()
    saved = await save(repository.path, REF, "one")
    assert saved.left_out == ("library (nested repository)",)
    await restore(repository.path, saved.commit)
    assert (inside.path / "changed.txt").exists()


async def test_an_unreadable_file_is_left_out_and_named(public: Repository) -> None:
    for number in range(20):
        public.write(f"{number}.txt", "new")
    (public.path / "7.txt").chmod(0o000)
    public.write("closed/inside.txt", "inside")
    (public.path / "closed").chmod(0o000)
    with unprivileged(public):
        saved = await save(public.path, REF, "one")
    (public.path / "closed").chmod(0o755)
    assert saved.left_out == ("7.txt (could not be read)", "closed (could not be read)")
    assert {f"{number}.txt" for number in range(20)} - public.files(saved.commit) == {"7.txt"}


async def test_a_file_whose_filter_fails_is_left_out_and_named(repository: Repository) -> None:
    repository.write(".gitattributes", "*.bin filter=large\n")
    repository.git("config", "filter.large.clean", "not-installed-here")
    repository.git("config", "filter.large.required", "true")
    for name in ("one.bin", "two.bin", "plain.txt"):
        repository.write(name, "x")
    saved = await save(repository.path, REF, "one")
    assert saved.left_out == ("one.bin (could not be read)", "two.bin (could not be read)")
    assert {".gitattributes", "plain.txt"} <= repository.files(saved.commit)


async def test_a_repository_that_cannot_be_written_to_fails_as_a_whole(public: Repository) -> None:
    public.write("new.txt", "new")
    for path in (public.path / ".git/objects").rglob("*"):
        path.chmod(0o555)
    (public.path / ".git/objects").chmod(0o555)
    with unprivileged(public), pytest.raises(WorkspaceError, match="insufficient permission"):
        await save(public.path, REF, "one")


async def test_a_restore_brings_back_every_file_and_nothing_else(repository: Repository) -> None:
    repository.write(".gitignore", "build/\n")
    repository.write("build/out.bin", "first")
    make_a_mess(repository)
    there, saved = contents(repository.path), await save(repository.path, REF, "one")
    repository.commit("The agent commits")
    repository.write("src/app.py", "broken")
    repository.write("later/new.txt", "made later")
    repository.write("build/out.bin", "second")
    (repository.path / "tool.sh").chmod(0o644)
    (repository.path / "link").unlink()
    repository.git("add", "later")
    index, head = (repository.path / ".git/index").read_bytes(), repository.git("rev-parse", "HEAD")
    assert await restore(repository.path, saved.commit) == ()
    expected = there | {"build/out.bin": (there["build/out.bin"][0], b"second")}
    assert contents(repository.path) == expected
    assert not (repository.path / "later").exists()
    assert (repository.path / ".git/index").read_bytes() == index
    assert repository.git("rev-parse", "HEAD") == head
    assert await tree_of(repository.path) == repository.git("rev-parse", f"{saved.commit}^{{tree}}")


async def test_a_restore_does_not_touch_files_that_are_the_same(repository: Repository) -> None:
    saved = await save(repository.path, REF, "one")
    repository.write("src/app.py", "broken")
    before = everything(repository.path)
    await restore(repository.path, saved.commit)
    after = everything(repository.path)
    assert {name for name in before if before[name] != after.get(name)} == {"src/app.py"}


async def test_a_restore_is_not_stopped_by_files_that_were_only_touched(repository: Repository) -> None:
    repository.write("src/app.py", "changed")
    saved = await save(repository.path, REF, "one")
    repository.git("checkout", "--quiet", "src/app.py")
    os.utime(repository.path / "src/app.py", (1, 1))
    await restore(repository.path, saved.commit)
    assert (repository.path / "src/app.py").read_text() == "changed"


async def test_a_restore_leaves_secret_files_alone(repository: Repository) -> None:
    repository.write("tracked.key", "in git")
    repository.commit()
    repository.write("tracked.key", "changed before")
    saved = await save(repository.path, REF, "one")
    repository.git("rm", "--quiet", "--cached", "tracked.key")
    repository.commit()
    repository.write("tracked.key", "changed after")
    repository.write(".env", "made after")
    repository.write("new.txt", "made after")
    assert await restore(repository.path, saved.commit) == (".env", "tracked.key")
    assert (repository.path / ".env").read_text() == "made after"
    assert (repository.path / "tracked.key").read_text() == "changed after"
    assert not (repository.path / "new.txt").exists()


async def test_a_restore_of_lost_ignore_rules_spares_what_they_ignore(repository: Repository) -> None:
    repository.write(".gitignore", "node_modules/\n")
    repository.write("node_modules/big/index.js", "big")
    saved = await save(repository.path, REF, "one")
    (repository.path / ".gitignore").unlink()
    repository.write("src/.gitignore", "*.py\n")
    repository.write("new.txt", "made after")
    await restore(repository.path, saved.commit)
    assert (repository.path / "node_modules/big/index.js").read_text() == "big"
    assert (repository.path / ".gitignore").exists()
    assert not (repository.path / "src/.gitignore").exists()
    assert not (repository.path / "new.txt").exists()


async def test_a_restore_to_an_unknown_commit_says_so(repository: Repository) -> None:
    with pytest.raises(WorkspaceError, match="is not in this repository"):
        await restore(repository.path, "0123456789" * 4)


async def test_a_restore_that_could_not_remove_a_file_says_so(public: Repository) -> None:
    saved = await save(public.path, REF, "one")
    public.write("closed/inside.txt", "inside")
    (public.path / "closed").chmod(0o555)
    with unprivileged(public), pytest.raises(WorkspaceError, match=r"not brought back exactly: closed/inside\.txt"):
        await restore(public.path, saved.commit)
