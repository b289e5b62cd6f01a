"""A task that is done becomes a commit on the workflow's branch, where the user chose so."""

from collections.abc import Mapping
from pathlib import Path

from segue.journal.rows import WorkflowRow
from segue.model.agents import Choices, CommitPolicy
from segue.model.codec import decode
from segue.model.crash import crash_point
from segue.model.errors import WorkspaceError
from segue.model.events import Warned, WorkCommitted
from segue.model.plan import Task
from segue.workspace.commits import Commit, commit_all


async def commit_task(
    row: WorkflowRow, task: Task, environment: Mapping[str, str], execution: str
) -> WorkCommitted | Warned | None:
    """Commit a task's files and return the event for the journal. After a crash in between, the commit exists and the
    next try finds nothing to commit."""
    if decode(Choices, row.choices).commit is not CommitPolicy.TASK:
        return None
    wanted = Commit(
        branch=row.branch,
        title=task.title,
        body=row.title if row.title != task.title else "",
        environment=environment,
        execution=execution,
    )
    try:
        committed = await commit_all(Path(row.worktree), wanted)
    except WorkspaceError as error:
        message = f"“{task.title}” is done and was not committed: {error.message} {error.hint}".strip()
        return Warned(code="not_committed", message=message)
    crash_point("work.committed")
    if committed is None:
        return None
    return WorkCommitted(task_id=task.id, commit=committed.commit, files=committed.files)
