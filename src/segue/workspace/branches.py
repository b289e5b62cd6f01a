"""Branches of the user's repository."""

from pathlib import Path

import anyio

from segue.workspace.git import ask, git, head_commit, read_state


async def branch_exists(repository: Path, branch: str) -> bool:
    answer = await ask("show-ref", "--verify", "--quiet", f"refs/heads/{branch}", cwd=repository)
    return answer.code == 0


async def discard_worktree(repository: Path, path: Path, branch: str, base: str) -> bool:
    """Take a worktree and its branch away again; false when somebody has committed there, so that it stays."""
    if await anyio.Path(path).exists() and await head_commit(path) != base:
        return False
    await ask("worktree", "remove", "--force", str(path), cwd=repository)
    await git("worktree", "prune", cwd=repository)
    await ask("branch", "-D", branch, cwd=repository)
    return True


async def current_branch(worktree: Path) -> str:
    return (await read_state(worktree, None)).branch
