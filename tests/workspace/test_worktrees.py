import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from segue.model import crash
from segue.model.errors import WorkspaceError, WorktreeInUse
from segue.workspace import Worktree, ensure_worktree, find_worktree, is_alive, run_setup
from segue.workspace.processes import ProcessIdentity, identity
from tests.workspace.checkout import Repository

pytestmark = pytest.mark.anyio

BRANCH = "segue/fix-login"


class Unplugged(BaseException):
    """The plug was pulled."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "worktrees" / "fix-login"


@pytest.fixture
def unplug_at() -> Generator[list[str]]:
    """The crash points at which the plug is pulled, as the test fills them in."""
    names: list[str] = []

    def plug(name: str) -> None:
        if name in names:
            raise Unplugged

    crash.arm(plug)
    yield names
    crash.arm(None)


async def test_a_worktree_is_made_on_a_branch_of_its_own(repository: Repository, path: Path) -> None:
    head = repository.git("rev-parse", "HEAD")
    assert await ensure_worktree(repository.path / "src", path, BRANCH) == Worktree(path, BRANCH, head)
    assert Repository(path).git("branch", "--show-current") == BRANCH
    assert (path / "src/app.py").read_text() == "print('hello')\n"
    assert repository.git("branch", "--show-current") == "main"


async def test_a_worktree_that_is_there_already_is_returned_as_it_is(repository: Repository, path: Path) -> None:
    first = await ensure_worktree(repository.path, path, BRANCH)
    Repository(path).write("work.txt", "precious")
    Repository(path).commit()
    Repository(path).write("more.txt", "uncommitted")
    repository.commit("The main branch moves on")
    assert await ensure_worktree(repository.path, path, BRANCH) == first
    assert (path / "more.txt").read_text() == "uncommitted"


async def test_a_branch_that_exists_is_used_with_its_commits(repository: Repository, path: Path) -> None:
    repository.git("switch", "--quiet", "--create", BRANCH)
    tip = repository.commit("Begun by hand")
    repository.git("switch", "--quiet", "main")
    assert await ensure_worktree(repository.path, path, BRANCH) == Worktree(path, BRANCH, tip)
    assert Repository(path).git("rev-parse", "HEAD") == tip


async def test_a_lost_directory_is_made_again_from_its_branch(repository: Repository, path: Path) -> None:
    first = await ensure_worktree(repository.path, path, BRANCH)
    Repository(path).write("work.txt", "committed")
    Repository(path).commit()
    shutil.rmtree(path)
    assert await find_worktree(repository.path, path) is None
    assert await ensure_worktree(repository.path, path, BRANCH) == first
    assert (path / "work.txt").read_text() == "committed"


async def test_a_branch_that_was_deleted_starts_anew_from_head(repository: Repository, path: Path) -> None:
    await ensure_worktree(repository.path, path, BRANCH)
    repository.git("worktree", "remove", str(path))
    repository.git("branch", "--delete", "--force", BRANCH)
    head = repository.commit("The main branch moves on")
    assert (await ensure_worktree(repository.path, path, BRANCH)).commit == head


async def test_a_branch_that_is_checked_out_elsewhere_is_in_use(repository: Repository, path: Path) -> None:
    repository.git("switch", "--quiet", "--create", BRANCH)
    with pytest.raises(WorktreeInUse, match=f"{BRANCH} is checked out in {repository.path}") as refused:
        await ensure_worktree(repository.path, path, BRANCH)
    assert refused.value.hint
    assert not path.exists()


async def test_the_branch_of_a_moved_worktree_is_in_use(repository: Repository, path: Path, tmp_path: Path) -> None:
    await ensure_worktree(repository.path, path, BRANCH)
    path.rename(tmp_path / "moved")
    with pytest.raises(WorktreeInUse, match="not there any more") as refused:
        await ensure_worktree(repository.path, tmp_path / "other", BRANCH)
    assert "git worktree prune" in refused.value.hint


async def test_a_worktree_that_was_switched_to_another_branch_is_not_taken(repository: Repository, path: Path) -> None:
    await ensure_worktree(repository.path, path, BRANCH)
    Repository(path).git("switch", "--quiet", "--create", "other")
    with pytest.raises(WorktreeInUse, match=f"is on other, not on {BRANCH}"):
        await ensure_worktree(repository.path, path, BRANCH)
    found = await find_worktree(repository.path, path)
    assert found is not None and found.branch == "other"


async def test_a_foreign_directory_is_never_overwritten(repository: Repository, path: Path) -> None:
    path.mkdir(parents=True)
    (path / "precious.txt").write_text("precious")
    with pytest.raises(WorkspaceError, match="in the way"):
        await ensure_worktree(repository.path, path, BRANCH)
    assert (path / "precious.txt").read_text() == "precious"


async def test_a_name_that_collides_with_a_branch_is_refused_as_git_says(repository: Repository, path: Path) -> None:
    repository.git("branch", "segue")
    with pytest.raises(WorkspaceError, match="refs/heads/segue"):
        await ensure_worktree(repository.path, path, BRANCH)


async def test_the_users_hooks_do_not_run(repository: Repository, path: Path) -> None:
    hook = repository.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch hook-ran; exit 1\n")
    hook.chmod(0o755)
    await ensure_worktree(repository.path, path, BRANCH)
    assert not (path / "hook-ran").exists()


@pytest.mark.parametrize("point", ["worktree.base_written", "worktree.branch_made"])
async def test_creation_continues_after_a_crash_between_two_steps(
    repository: Repository, path: Path, unplug_at: list[str], point: str
) -> None:
    head = repository.git("rev-parse", "HEAD")
    unplug_at.append(point)
    with pytest.raises(Unplugged):
        await ensure_worktree(repository.path, path, BRANCH)
    unplug_at.clear()
    assert await ensure_worktree(repository.path, path, BRANCH) == Worktree(path, BRANCH, head)


async def test_an_interrupted_worktree_add_is_cleaned_up(repository: Repository, path: Path) -> None:
    stuck = repository.path.parent / "stuck"
    repository.write(".gitattributes", "slow.txt filter=slow\n")
    repository.write("slow.txt", "slow\n")
    repository.commit()
    os.mkfifo(stuck)
    # The filter opens the pipe, which this test waits for, and then hangs in the middle of the checkout.
    repository.git("config", "filter.slow.smudge", f"echo > {stuck}; exec sleep 1000")
    repository.git("branch", BRANCH)
    adding = subprocess.Popen(
        ["git", "worktree", "add", str(path), BRANCH],
        cwd=repository.path,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    await anyio.to_thread.run_sync(stuck.read_text)
    os.killpg(adding.pid, signal.SIGKILL)
    adding.wait()
    assert "locked initializing" in repository.git("worktree", "list", "--porcelain")
    repository.git("config", "--unset", "filter.slow.smudge")
    assert await find_worktree(repository.path, path) is None
    await ensure_worktree(repository.path, path, BRANCH)
    assert Repository(path).git("status", "--porcelain") == ""
    assert (path / "slow.txt").read_text() == "slow\n"


@pytest.mark.parametrize("lost", [{"HEAD"}, {"HEAD", "commondir"}, {"HEAD", "commondir", ".git"}, {".git", "gitdir"}])
async def test_an_earlier_worktree_add_is_cleaned_up(repository: Repository, path: Path, lost: set[str]) -> None:
    await ensure_worktree(repository.path, path, BRANCH)
    record = repository.path / ".git/worktrees/fix-login"
    (record / "locked").write_text("initializing")
    for name in lost:
        ((path if name == ".git" else record) / name).unlink()
    for name in ("readme.md", "src/app.py", "src/util.py"):
        (path / name).unlink()
    (path / "src").rmdir()
    await ensure_worktree(repository.path, path, BRANCH)
    assert Repository(path).git("status", "--porcelain", "--branch") == f"## {BRANCH}"


async def test_setup_runs_in_the_worktree_with_the_given_environment(repository: Repository) -> None:
    environment = {"PATH": os.environ["PATH"], "COLOUR": "blue"}
    await run_setup('echo "$COLOUR" > made.txt && ls readme.md', repository.path, environment, timeout=60)
    assert (repository.path / "made.txt").read_text() == "blue\n"


async def test_a_failed_setup_shows_the_last_lines_it_printed(repository: Repository) -> None:
    command = "seq 1 50; echo 'no such package' >&2; exit 3"
    with pytest.raises(WorkspaceError) as refused:
        await run_setup(command, repository.path, os.environ, timeout=60)
    assert f"failed with exit code 3: {command}\n32\n" in refused.value.message
    assert refused.value.message.endswith("50\nno such package")
    assert "setup" in refused.value.hint


async def test_a_setup_that_hangs_is_ended_with_everything_it_started(repository: Repository) -> None:
    command = f"setsid {sys.executable} -c 'import os, time; print(os.getpid(), flush=True); time.sleep(1000)'"
    with pytest.raises(WorkspaceError, match="did not finish within 5 seconds") as refused:
        await run_setup(command, repository.path, os.environ, timeout=5)
    assert identity(int(refused.value.message.splitlines()[-1])) is None


async def test_processes_left_by_a_setup_are_ended(repository: Repository) -> None:
    command = "setsid sleep 1000 >/dev/null 2>&1 & echo $! > pid; cut -d' ' -f22 /proc/$!/stat > started"
    await run_setup(command, repository.path, os.environ, timeout=60)
    pid, started = ((repository.path / name).read_text().strip() for name in ("pid", "started"))
    here = identity(os.getpid())
    assert here is not None
    assert not is_alive(ProcessIdentity(int(pid), started, here.boot))
