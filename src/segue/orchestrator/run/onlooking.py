"""Whoever was only to read, and changed files all the same: people must know."""

from pathlib import Path

from segue.model.errors import SegueError
from segue.orchestrator.run.tenure import Tenure
from segue.workspace.checkpoints import tree_of
from segue.workspace.comparison import between


async def files_of(tenure: Tenure) -> str | None:
    """What the worktree holds now; None where nobody can tell, which must keep nobody from going on."""
    try:
        return await tree_of(Path(tenure.workflow.worktree))
    except (SegueError, OSError):
        return None


async def changes_since(tenure: Tenure, before: str | None) -> str:
    """What is different from then, in sentences; empty where nothing is, or nobody can tell."""
    after = await files_of(tenure)
    if before is None or after is None or before == after:
        return ""
    return " ".join(await between(Path(tenure.workflow.worktree), before, after))
