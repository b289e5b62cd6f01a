"""Worktrees: one for each workflow, on a branch of its own."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

import anyio
import anyio.to_thread

from segue.model.crash import crash_point
from segue.model.errors import WorkspaceError, WorktreeInUse, WorktreeMissing
from segue.workspace.checkpoints import restore
from segue.workspace.git import DETACHED, ask, branch_exists, git, head_commit, refusal, repository_root
from segue.workspace.processes import run_guarded

_HEADS = "refs/heads/"
_BASES = "refs/segue/bases/"
"""Refs with the start of each branch, written before the branch is created."""
_LAST_LINES = 20
_HALF_MADE = "initializing"
"""Lock reason of a worktree that git, or Segue, has not finished."""
_HELD = ("--lock", "--reason", _HALF_MADE)


@dataclass(frozen=True, slots=True)
class Worktree:
    """Checkout with a branch of its own."""

    path: Path
    branch: str
    commit: str
    """Start of the branch."""
    made: bool = field(default=False, compare=False)
    """True if it was created by this call."""


@dataclass(frozen=True, slots=True)
class _Registered:
    """Worktree, as registered in git."""

    path: Path
    branch: str
    head: str
    half_made: bool
    """True if `git worktree add` was killed."""


async def ensure_worktree(
    repository: Path, path: Path, branch: str, start: str = "HEAD", *, files: str | None = None
) -> Worktree:
    """Return the worktree, created if necessary; a creation that was killed is continued or cleaned up.

    A missing branch starts at `start`. A new worktree gets the `files` of a checkpoint, if one is named; if that fails
    it is not created.
    """
    root = await repository_root(repository)
    path = Path(await anyio.Path(path).resolve())
    for registered in await _registered(root):
        if registered.path == path:
            if _is_whole(registered):
                return await _accepted(root, registered, branch)
            await _clear_away(root, registered)
        elif registered.branch == branch:
            raise _in_use(registered)
    _refuse_foreign_files(path)
    commit = await _ensure_branch(root, branch, start)
    crash_point("worktree.branch_made")
    if files is None:
        await _add(root, path, branch)
    else:
        await _add(root, path, branch, *_HELD)
        crash_point("worktree.held")
        await restore(path, files)
        await git("worktree", "unlock", str(path), cwd=root)
    return Worktree(path, branch, commit, made=True)


def stands(path: Path) -> bool:
    """Return True if a `.git` is there and the creation of the worktree was not interrupted."""
    return (path / ".git").exists() and not is_half_made(path)


def is_half_made(path: Path) -> bool:
    """Return True if the creation of this worktree was interrupted before its files were there."""
    try:
        folder = (path / ".git").read_text("utf-8", "surrogateescape").strip()[len("gitdir: ") :]
        return (path / folder / "locked").read_text("utf-8", "replace").strip() == _HALF_MADE
    except OSError:
        return False


async def require_worktree(repository: Path, path: Path, branch: str, *, here: bool) -> None:
    """Raise an error unless the worktree exists, or can be created again from its branch; it is never replaced by
    another one."""
    if await anyio.Path(path).is_dir() or (not here and await branch_exists(repository, branch)):
        return
    hint = "Bring the directory back." if here else f"Bring the branch {branch} or the directory back."
    raise WorktreeMissing(f"The worktree {path} is gone, and no branch {branch} is left to make it from.", hint=hint)


async def find_worktree(repository: Path, path: Path) -> Worktree | None:
    """Return the complete worktree at this path, on any branch, or None; its commit is the start of its branch, else
    HEAD."""
    root = await repository_root(repository)
    path = Path(await anyio.Path(path).resolve())
    for registered in await _registered(root):
        if registered.path == path and _is_whole(registered):
            commit = await _base(root, registered.branch) or registered.head
            return Worktree(registered.path, registered.branch, commit)
    return None


async def discard_worktree(repository: Path, worktree: Worktree) -> bool:
    """Remove a worktree and its branch; return False if HEAD moved or git refuses, and all stays."""
    if await anyio.Path(worktree.path).exists() and await head_commit(worktree.path) != worktree.commit:
        return False
    removed = await ask("worktree", "remove", "--force", str(worktree.path), cwd=repository)
    if removed.code != 0 and await anyio.Path(worktree.path).exists():
        return False
    await ask("branch", "-D", worktree.branch, cwd=repository)
    await ask("update-ref", "-d", f"{_BASES}{worktree.branch}", cwd=repository)
    return True


async def run_setup(
    command: str, worktree: Path, environment: Mapping[str, str], timeout: float, *, execution: str | None = None
) -> None:
    """Run the user's shell command that prepares a new worktree; raise WorkspaceError if it fails or takes too long."""
    done = await run_guarded(
        ["/bin/sh", "-c", command],
        directory=worktree,
        environment=environment,
        execution=execution or f"setup-{token_hex(6)}",
        timeout=timeout,
    )
    if done.code == 0:
        return
    how = f"did not finish within {timeout:g} seconds" if done.timed_out else f"failed with exit code {done.code}"
    last = "\n".join(done.output.splitlines()[-_LAST_LINES:])
    raise WorkspaceError(
        f"The setup command {how}: {command}\n{last}".rstrip(),
        hint=f"Correct the `setup` setting, or try the command yourself in {worktree}.",
    )


async def _registered(root: Path) -> list[_Registered]:
    """Return the repository's worktrees as git lists them, complete or not."""
    listing = await git("worktree", "list", "--porcelain", cwd=root)
    return [_parsed(block) for block in listing.split("\n\n") if block.strip()]


def _parsed(block: str) -> _Registered:
    """Read one worktree from its lines in git's listing."""
    lines = [line.partition(" ") for line in block.splitlines()]
    fields = {name: value for name, _, value in lines}
    return _Registered(
        path=Path(fields["worktree"]).resolve(),
        branch=fields.get("branch", DETACHED).removeprefix(_HEADS),
        head=fields.get("HEAD", ""),
        half_made=fields.get("locked", "") == _HALF_MADE,
    )


def _is_whole(registered: _Registered) -> bool:
    """Return True if the worktree is not half made and its `.git` is there."""
    return not registered.half_made and (registered.path / ".git").exists()


async def _accepted(root: Path, registered: _Registered, branch: str) -> Worktree:
    """Return a registered worktree with the start of its branch; raise WorktreeInUse if it is on another branch."""
    if registered.branch != branch:
        raise WorktreeInUse(
            f"The worktree {registered.path} is on {registered.branch}, not on {branch}.",
            hint=f"Switch it back: git -C {registered.path} switch {branch}",
        )
    return Worktree(registered.path, branch, await _base(root, branch) or registered.head)


async def _clear_away(root: Path, registered: _Registered) -> None:
    """Unregister a worktree whose directory is gone, or was never finished and holds no work."""
    if registered.half_made:
        await anyio.to_thread.run_sync(_delete, registered.path)
    await git("worktree", "remove", "--force", "--force", str(registered.path), cwd=root)


def _delete(path: Path) -> None:
    """Delete a directory tree; one that is absent is no error, any other failure raises WorkspaceError."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be removed: {error.strerror}.", hint="Remove it by hand.") from error


def _in_use(registered: _Registered) -> WorktreeInUse:
    """Return the error that names the worktree which has this branch, whether it still exists or not."""
    if registered.path.exists():
        return WorktreeInUse(
            f"The branch {registered.branch} is checked out in {registered.path}.",
            hint="Switch that checkout to another branch, or give the workflow another name.",
        )
    return WorktreeInUse(
        f"The branch {registered.branch} belongs to the worktree {registered.path}, which is not there any more.",
        hint="Bring that directory back, or make git forget it: git worktree prune",
    )


def _refuse_foreign_files(path: Path) -> None:
    """Raise WorkspaceError if the path is a file or a directory with content; else do nothing."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise WorkspaceError(
            f"{path} is in the way: it exists and is not a worktree of this repository.", hint="Move it away."
        )


async def _ensure_branch(root: Path, branch: str, start: str) -> str:
    """Return the commit at which the branch starts; create the branch, and record its start, if it is missing."""
    if tip := await _commit_of(root, f"{_HEADS}{branch}"):
        return await _base(root, branch) or tip
    head = (await git("rev-parse", start, cwd=root)).strip()
    await git("update-ref", f"{_BASES}{branch}", head, cwd=root)
    crash_point("worktree.base_written")
    await git("branch", "--no-track", "--", branch, head, cwd=root)
    return head


async def _base(root: Path, branch: str) -> str | None:
    """Return the recorded start of the branch, or None if none is recorded or the branch does not contain it."""
    base = await _commit_of(root, f"{_BASES}{branch}")
    if base is None:
        return None
    contained = await ask("merge-base", "--is-ancestor", base, f"{_HEADS}{branch}", cwd=root)
    return base if contained.code == 0 else None


async def _commit_of(root: Path, ref: str) -> str | None:
    """Return the id of the commit that a ref names, or None if there is none."""
    return (await git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", cwd=root, check=False)).strip() or None


async def _add(root: Path, path: Path, branch: str, *options: str) -> None:
    """Add a git worktree of the branch at the path; raise an error with git's complaint if it fails."""
    answer = await ask("worktree", "add", *options, "--", str(path), branch, cwd=root)
    if answer.code != 0:
        raise refusal("worktree add", answer, hint=f"Try it yourself: git worktree add {path} {branch}")
