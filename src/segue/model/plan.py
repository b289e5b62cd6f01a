"""Issue and plan. A plan is a DAG of tasks."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from segue.model.errors import BadPlan
from segue.model.ids import TaskId

PLANNING = TaskId("@plan")
"""Id of the planning step before all tasks; no task can have it."""


class TaskStatus(StrEnum):
    """Status of a task."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Request of the user."""

    title: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Node of the plan, as it was given; its status is part of the state."""

    id: TaskId
    title: str
    description: str = ""
    depends_on: tuple[TaskId, ...] = ()
    expected_failures: tuple[str, ...] = ()
    """Tests that may still fail when the task is done, because a later task makes them pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Tasks in the order in which they were written, with their dependencies."""

    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        """Raise BadPlan for no tasks, a duplicate or reserved id, an unknown dependency or a cycle."""
        if not self.tasks:
            raise BadPlan("The plan has no tasks.", hint="Give it at least one, or leave the plan out.")
        _refuse_duplicates(self.tasks)
        _refuse_unknown_dependencies(self.tasks)
        _refuse_cycles(self.tasks)

    def next_ready(self, finished: Iterable[TaskId]) -> Task | None:
        """Return the first task, in written order, that is not finished and whose dependencies are; None if there is
        none."""
        done = set(finished)
        for task in self.tasks:
            if task.id not in done and done.issuperset(task.depends_on):
                return task
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """Planning that is under way."""

    reason: str = ""
    """Reason why an earlier plan was dropped, if there was one."""
    refusals: tuple[str, ...] = ()
    """Reasons of people for rejecting earlier proposals."""
    proposed: Plan | None = None


def _refuse_duplicates(tasks: tuple[Task, ...]) -> None:
    """Raise BadPlan if two tasks have one id, or one has the reserved id of the planning."""
    seen: set[TaskId] = set()
    for task in tasks:
        if task.id == PLANNING:
            raise BadPlan(f"No task can be called {PLANNING!r}.", hint="Give it another id.")
        if task.id in seen:
            raise BadPlan(f"Two tasks of the plan are called {task.id!r}.", hint="Give each task an id of its own.")
        seen.add(task.id)


def _refuse_unknown_dependencies(tasks: tuple[Task, ...]) -> None:
    """Raise BadPlan if a task depends on one that is not in the plan."""
    known = {task.id for task in tasks}
    for task in tasks:
        for dependency in task.depends_on:
            if dependency not in known:
                raise BadPlan(
                    f"Task {task.id!r} depends on {dependency!r}, which is not in the plan.",
                    hint=f"Known tasks: {', '.join(sorted(known))}.",
                )


def _refuse_cycles(tasks: tuple[Task, ...]) -> None:
    """Raise BadPlan, with one cycle, if tasks depend on each other in a circle."""
    waiting = {task.id: set(task.depends_on) for task in tasks}
    while ready := [name for name, needs in waiting.items() if not needs]:
        for name in ready:
            del waiting[name]
        for needs in waiting.values():
            needs.difference_update(ready)
    if waiting:
        raise BadPlan(
            f"The plan goes round in a circle: {' → '.join(_one_cycle(waiting))}.",
            hint="Remove one of these dependencies.",
        )


def _one_cycle(waiting: dict[TaskId, set[TaskId]]) -> list[TaskId]:
    """Return the ids of one cycle, the first one again at the end."""
    path = [next(iter(waiting))]
    while True:
        step = min(waiting[path[-1]])
        if step in path:
            return [*path[path.index(step) :], step]
        path.append(step)
