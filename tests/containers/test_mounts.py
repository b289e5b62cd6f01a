"""What a container may write of the repository that its worktree belongs to."""

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from segue.model.agents import Container
from segue.workspace.containers import contained
from segue.workspace.mounts import mounts_for
from segue.workspace.worktrees import ensure_worktree
from tests.containers.engines import IMAGE, REAL, Engine

pytestmark = pytest.mark.anyio

BOX = Container(image=IMAGE)


def git(directory: Path, *words: str) -> str:
    me = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    done = subprocess.run(("git", *me, *words), cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    checkout = (tmp_path / "checkout").resolve()
    checkout.mkdir()
    git(checkout, "init", "-q")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "first")
    return checkout


@pytest.fixture
async def worktree(checkout: Path) -> Path:
    return (await ensure_worktree(checkout, checkout.parent / "worktree", "segue/it")).path


async def test_of_a_repository_only_what_commits_need_can_be_written(checkout: Path, worktree: Path) -> None:
    written, read_only = apart(await mounts_for(worktree, BOX))
    repository = checkout / ".git"
    own = repository / "worktrees" / "worktree"
    assert written == {worktree, repository / "objects", repository / "refs", repository / "logs", own}
    assert read_only == {worktree / ".git", repository, own / "commondir", own / "gitdir"}


async def test_in_a_checkout_itself_settings_and_hooks_are_to_be_read_only(checkout: Path) -> None:
    written, read_only = apart(await mounts_for(checkout, BOX))
    assert written == {checkout, checkout / ".git"}
    assert read_only == {checkout / ".git" / "config", checkout / ".git" / "hooks"}


async def test_what_the_user_mounts_somewhere_goes_before_it(checkout: Path, worktree: Path) -> None:
    mine = f"/elsewhere:{checkout / '.git'}"
    mounts = await mounts_for(worktree, replace(BOX, mounts=(mine,)))
    assert [each for each in mounts if each.split(":")[1] == str(checkout / ".git")] == [mine]


@pytest.mark.skipif(not REAL, reason="the stand-in for an engine mounts nothing: scripts/containers.sh plays this")
@pytest.mark.parametrize("here", [False, True])
async def test_an_agent_in_a_container_commits_but_does_not_say_what_git_runs(
    engine: Engine, tmp_path: Path, checkout: Path, worktree: Path, here: bool
) -> None:
    directory = checkout if here else worktree
    nowhere = str(tmp_path)
    box = engine.container(tmp_path)
    box = replace(box, mounts=tuple(each for each in box.mounts if each.split(":")[1] != nowhere))
    tries = [
        "git config filter.x.clean evil",
        "echo '[filter \"x\"]' >> $(git rev-parse --git-common-dir)/config",
        "mv $(git rev-parse --git-common-dir)/config $(git rev-parse --git-common-dir)/moved",
        "touch $(git rev-parse --git-common-dir)/hooks/pre-commit",
        "echo gitdir: evil > .git" if not here else "mv .git moved",
        "rm -f .git" if not here else "rm -f .git/config",
        *([] if here else ["mv $(git rev-parse --git-common-dir)/worktrees $(git rev-parse --git-common-dir)/moved"]),
        *([] if here else ["echo evil > $(git rev-parse --git-dir)/commondir"]),
    ]
    commit = "echo done > file && git add file && git -c user.name=a -c user.email=a@b commit -q -m second"
    lines = [f"( {each} ) 2>/dev/null && echo {shlex.quote(f'DONE: {each}')}" for each in tries]
    script = "\n".join([f"{commit} && echo committed", *lines, "echo over"])
    with anyio.fail_after(60):
        async with contained(
            ("/bin/sh", "-c", script),
            directory=directory,
            environment={"HOME": "/tmp"},
            execution="attempt-1",
            container=box,
            engine=engine.address,
        ) as process:
            said = (await process.stdout.read()).decode().splitlines()
            assert said == ["committed", "over"], process.stderr_tail()
    assert git(directory, "log", "-1", "--format=%s") == "second"


def apart(mounts: list[str]) -> tuple[set[Path], set[Path]]:
    """What can be written, and what can only be read."""
    words = [mount.split(":") for mount in mounts]
    assert all(source == target for source, target, *_ in words)
    written = {Path(each[0]) for each in words if each[2:] == []}
    return written, {Path(each[0]) for each in words if each[2:] == ["ro"]}
