"""What a container sees of this machine: the worktree, and of its repository no more than commits need.

Whoever writes git's settings, its hooks or where they are looked for decides what runs here, outside of the container,
at the next call of git. So these are to be read only in there.
"""

import os
from pathlib import Path

from segue.model.agents import Container
from segue.workspace.git import git

_WRITTEN = ("objects", "refs", "logs", "rr-cache", "lfs")
"""What commits need of a repository beside the worktree's own part of it."""
_GUARDED = ("config", "hooks")
_POINTERS = ("commondir", "gitdir")


async def mounts_for(directory: Path, container: Container) -> list[str]:
    """As engines take them: `PATH:PATH`, with `:ro` for what is to be read only."""
    given = [os.path.expanduser(mount) for mount in container.mounts]  # noqa: ASYNC240, PTH111 - it is no path
    # Engines refuse to put two things in one place.
    taken = {mount.split(":")[1] for mount in given}
    needed = [mount for mount in await _needed(directory) if mount.split(":")[1] not in taken]
    return [*needed, *given]


async def _needed(directory: Path) -> list[str]:
    words = ("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir")
    found = (await git(*words, cwd=directory, check=False)).splitlines()
    if len(found) != 2:
        return [_mount(directory)]
    own, repository = map(Path, found)
    return _of_checkout(directory, repository) if own == repository else _of_worktree(directory, own, repository)


def _of_worktree(directory: Path, own: Path, repository: Path) -> list[str]:
    """The rest of the repository is to be read only, so nothing that is guarded can be moved out of the way either."""
    # Without them git could not note where a branch has been.
    (repository / "logs").mkdir(exist_ok=True)
    written = [_mount(path) for name in _WRITTEN if (path := repository / name).is_dir()]
    pointers = [_mount(own / name, "ro") for name in _POINTERS]
    return [
        _mount(directory),
        _mount(directory / ".git", "ro"),
        _mount(repository, "ro"),
        *written,
        _mount(own),
        *pointers,
    ]


def _of_checkout(directory: Path, repository: Path) -> list[str]:
    """The index and HEAD stand beside what is guarded, so all of it must be there to write in."""
    guarded = [_mount(path, "ro") for name in _GUARDED if (path := repository / name).exists()]
    return [_mount(directory), _mount(repository), *guarded]


def _mount(path: Path, *options: str) -> str:
    return ":".join([str(path), str(path), *options])
