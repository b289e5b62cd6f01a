"""Tasks of a workflow's plan: queries, and their changes inside a transaction."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, delete, insert, select, update

from segue.journal.rows import TaskRow, as_value
from segue.journal.workflows import LockedWorkflow
from segue.model.errors import WrongState
from segue.model.events import (
    PlanAdopted,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    TaskStarted,
    WorkflowRewound,
)
from segue.model.ids import AttemptId, SessionId, TaskId, WorkflowId
from segue.model.plan import TaskStatus
from segue.store import tables as t


def tasks_of(connection: Connection, workflow_id: WorkflowId) -> list[TaskRow]:
    """Select the plan's tasks, in written order."""
    query = select(t.tasks).where(t.tasks.c.workflow_id == workflow_id).order_by(t.tasks.c.position)
    return [as_value(TaskRow, row) for row in connection.execute(query)]


class TaskWrites:
    """Tasks of a locked workflow's plan."""

    def __init__(self, workflow: LockedWorkflow) -> None:
        self._workflow = workflow

    def all(self) -> list[TaskRow]:
        """Return the plan's tasks, in written order."""
        return tasks_of(self._workflow.connection, self._workflow.id)

    def statuses(self) -> list[tuple[TaskId, TaskStatus]]:
        """Return each task's status, in written order."""
        return [(task.id, task.status) for task in self.all()]

    def adopt_plan(self, adopted: PlanAdopted) -> None:
        """Replace the tasks by those of this plan, where completed ones stay completed and others are pending;
        append the event."""
        done = {task.id for task in self.all() if task.status is TaskStatus.COMPLETED}
        ids = [task.id for task in adopted.plan.tasks]
        self._replace({each: TaskStatus.COMPLETED if each in done else TaskStatus.PENDING for each in ids})
        self._workflow.append(adopted)

    def rewind(self, rewound: WorkflowRewound) -> None:
        """Replace the tasks by those of the event, and append it; no attempt owns one afterwards."""
        self._replace(rewound.tasks)
        self._workflow.append(rewound)

    def _replace(self, statuses: Mapping[TaskId, TaskStatus]) -> None:
        """Delete the workflow's tasks and insert these, in this order and owned by no attempt."""
        self._workflow.connection.execute(delete(t.tasks).where(t.tasks.c.workflow_id == self._workflow.id))
        rows = [
            {"workflow_id": self._workflow.id, "id": task_id, "position": position, "status": status}
            for position, (task_id, status) in enumerate(statuses.items())
        ]
        if rows:
            self._workflow.connection.execute(insert(t.tasks), rows)

    def start(self, task_id: TaskId, attempt: AttemptId, session_id: SessionId, run: int) -> None:
        """Move a pending or failed task to in progress, owned by this attempt, and append the event."""
        self._move(task_id, {TaskStatus.PENDING, TaskStatus.FAILED}, TaskStatus.IN_PROGRESS, attempt)
        self._workflow.append(TaskStarted(task_id=task_id, attempt=attempt), session_id=session_id, run=run)

    def complete(self, task_id: TaskId, attempt: AttemptId, session_id: SessionId, run: int) -> None:
        """Complete the task that this attempt works on, and append the event; raise WrongState if another attempt
        owns it."""
        self._end(task_id, TaskStatus.COMPLETED, attempt)
        self._workflow.append(TaskCompleted(task_id=task_id, attempt=attempt), session_id=session_id, run=run)

    def accept(self, task_id: TaskId, attempt: AttemptId, session_id: SessionId) -> None:
        """Complete a pending or failed task that no attempt works on, because a person accepts it as done, and
        append the event."""
        self._move(task_id, {TaskStatus.PENDING, TaskStatus.FAILED}, TaskStatus.COMPLETED, None)
        self._workflow.append(TaskCompleted(task_id=task_id, attempt=attempt), session_id=session_id)

    def fail(self, task_id: TaskId, attempt: AttemptId, session_id: SessionId, run: int, reason: str) -> None:
        """Mark the task that this attempt works on as failed, and append the event; raise WrongState if another
        attempt owns it."""
        self._end(task_id, TaskStatus.FAILED, attempt)
        failed = TaskFailed(task_id=task_id, attempt=attempt, reason=reason)
        self._workflow.append(failed, session_id=session_id, run=run)

    def interrupt(self, task_id: TaskId, session_id: SessionId, run: int | None, reason: str) -> None:
        """Make the task pending again, taken from the attempt that works on it, and append the event; raise
        WrongState if none does."""
        attempt = next(task.attempt for task in self.all() if task.id == task_id)
        if attempt is None:
            raise WrongState(f"Task {task_id!r} is not being worked on.")
        self._end(task_id, TaskStatus.PENDING, attempt)
        interrupted = TaskInterrupted(task_id=task_id, attempt=attempt, reason=reason)
        self._workflow.append(interrupted, session_id=session_id, run=run)

    def _end(self, task_id: TaskId, after: TaskStatus, attempt: AttemptId) -> None:
        """Move the task in progress to its next status, owned by no attempt; raise WrongState if this attempt does
        not own it."""
        query = select(t.tasks.c.attempt).where(t.tasks.c.workflow_id == self._workflow.id, t.tasks.c.id == task_id)
        if self._workflow.connection.execute(query).scalar_one() != attempt:
            raise WrongState(f"Task {task_id!r} belongs to another attempt.")
        self._move(task_id, {TaskStatus.IN_PROGRESS}, after, None)

    def _move(
        self, task_id: TaskId, before: Collection[TaskStatus], after: TaskStatus, attempt: AttemptId | None
    ) -> None:
        """Change a task's status and owner; raise WrongState if it is in none of the statuses `before`."""
        query = (
            update(t.tasks)
            .where(t.tasks.c.workflow_id == self._workflow.id, t.tasks.c.id == task_id, t.tasks.c.status.in_(before))
            .values(status=after, attempt=attempt)
        )
        if self._workflow.connection.execute(query).rowcount != 1:
            raise WrongState(f"Task {task_id!r} cannot become {after} now.")
