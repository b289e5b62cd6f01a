"""Branches of the user's repository."""

from pathlib import Path

from segue.workspace.git import ask, read_state


async def branch_exists(repository: Path, branch: str) -> bool:
    answer = await ask("show-ref", "--verify", "--quiet", f"refs/heads/{branch}", cwd=repository)
    return answer.code == 0


async def current_branch(worktree: Path) -> str:
    return (await read_state(worktree, None)).branch
