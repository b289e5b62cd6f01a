"""Whoever was only to read, and changed files all the same: people must know."""

from pathlib import Path

from segue.model.errors import SegueError
from segue.orchestrator.run.lease import Lease
from segue.workspace.checkpoints import tree_of
from segue.workspace.comparison import between


async def files_of(lease: Lease) -> str | None:
    """What the worktree holds now; None where nobody can tell, which must keep nobody from going on."""
    try:
        return await tree_of(Path(lease.workflow.worktree))
    except (SegueError, OSError):
        return None


async def changes_since(lease: Lease, before: str | None) -> str:
    """What is different from then, in sentences; empty where nothing is, or nobody can tell."""
    after = await files_of(lease)
    if before is None or after is None or before == after:
        return ""
    return " ".join(await between(Path(lease.workflow.worktree), before, after))
