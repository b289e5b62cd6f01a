"""Mounts of a container: the worktree, and the parts of its repository that commits need.

Git's settings, its hooks and their location decide what later calls of git execute outside of the container, so these
are mounted read-only.
"""

import os
from pathlib import Path

from segue.model.agents import Container
from segue.workspace.git import git

_WRITTEN = ("objects", "refs", "logs", "rr-cache", "lfs")
"""Directories of a repository that commits need, beside the worktree's own part."""
_GUARDED = ("config", "hooks")
_POINTERS = ("commondir", "gitdir")


async def mounts_for(directory: Path, container: Container) -> list[str]:
    """Return the mounts as engines take them: `PATH:PATH`, with `:ro` for read-only ones."""
    given = [os.path.expanduser(mount) for mount in container.mounts]  # noqa: ASYNC240, PTH111 - it is not a path
    # Engines refuse two mounts at one path.
    taken = {mount.split(":")[1] for mount in given}
    needed = [mount for mount in await _needed(directory) if mount.split(":")[1] not in taken]
    return [*needed, *given]


async def _needed(directory: Path) -> list[str]:
    """Return the mounts of a directory that the agent needs to work there with git; without a repository only
    itself."""
    words = ("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir")
    found = (await git(*words, cwd=directory, check=False)).splitlines()
    if len(found) != 2:
        return [_mount(directory)]
    own, repository = map(Path, found)
    return _of_checkout(directory, repository) if own == repository else _of_worktree(directory, own, repository)


def _of_worktree(directory: Path, own: Path, repository: Path) -> list[str]:
    """Mount the rest of the repository read-only, so that nothing guarded can be moved away either."""
    # Without this directory git could not write the reflogs.
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
    """Mount the whole `.git` writable except the guarded parts, because the index and HEAD are beside them."""
    guarded = [_mount(path, "ro") for name in _GUARDED if (path := repository / name).exists()]
    return [_mount(directory), _mount(repository), *guarded]


def _mount(path: Path, *options: str) -> str:
    """Return a mount of a path at the same path, with its options."""
    return ":".join([str(path), str(path), *options])
