"""Read-only guard: warnings about files that changed although an agent was only to read."""

from pathlib import Path

from segue.model.errors import SegueError
from segue.orchestrator.run.lease import Lease
from segue.workspace.checkpoints import tree_of
from segue.workspace.comparison import between


async def files_of(lease: Lease) -> str | None:
    """Return the tree of the worktree's files, or None if it cannot be read, which must not stop the work."""
    try:
        return await tree_of(Path(lease.workflow.worktree))
    except (SegueError, OSError):
        return None


async def changes_since(lease: Lease, before: str | None) -> str:
    """Return sentences about changed files; empty if there are none or they are unknown."""
    after = await files_of(lease)
    if before is None or after is None or before == after:
        return ""
    return " ".join(await between(Path(lease.workflow.worktree), before, after))
