"""Recovery of a worktree that is gone, with the files that were saved last."""

from dataclasses import dataclass
from pathlib import Path

from segue.journal.rows import WorkflowRow
from segue.model.errors import WorkspaceError
from segue.model.events import CheckpointCreated, Warned
from segue.model.ids import CheckpointId
from segue.orchestrator.runtime.services import RuntimeServices
from segue.workspace.checkpoints import tree_in
from segue.workspace.worktrees import Worktree, ensure_worktree, stands

MADE_AGAIN = "worktree_made_again"


@dataclass(frozen=True, slots=True)
class Saved:
    """The files that a checkpoint holds."""

    checkpoint_id: CheckpointId
    commit: str


async def files_to_bring(services: RuntimeServices, row: WorkflowRow) -> Saved | None:
    """Return the workflow's last checkpoint with saved files; None if there is none, or its commit is gone from the
    repository."""
    for record in await services.facts.last_records(row.id, ["checkpoint.created"]):
        made = record.event
        if isinstance(made, CheckpointCreated) and record.workflow_id == row.id and made.commit is not None:
            return Saved(made.checkpoint_id, made.commit) if await _is_there(row, made.commit) else None
    return None


async def made_again(services: RuntimeServices, row: WorkflowRow) -> tuple[Worktree, Warned | None]:
    """Make the worktree if it is missing; return it with a warning if it existed before and was gone, else with
    None."""
    repository, path = Path(row.repository), Path(row.worktree)
    if row.base is None or stands(path):
        return await ensure_worktree(repository, path, row.branch), None
    saved = await files_to_bring(services, row)
    worktree = await ensure_worktree(repository, path, row.branch, files=saved.commit if saved else None)
    return worktree, Warned(code=MADE_AGAIN, message=_sentence(row, saved))


def _sentence(row: WorkflowRow, saved: Saved | None) -> str:
    """Describe how the worktree was made again, and what is lost."""
    if saved is None:
        return (
            f"The worktree was gone. It was made again from the branch {row.branch}, since no checkpoint has its files."
        )
    return (
        f"The worktree was gone. It was made again, with the files of checkpoint {saved.checkpoint_id}; "
        "what was changed after that is lost."
    )


async def _is_there(row: WorkflowRow, commit: str) -> bool:
    """Return True if the repository still has the commit."""
    try:
        await tree_in(Path(row.repository), commit)
    except WorkspaceError:
        return False
    return True
