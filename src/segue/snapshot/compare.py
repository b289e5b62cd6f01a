"""What changed from one snapshot to another. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from segue.model.checkpoint import FileChange
from segue.model.findings import Findings
from segue.model.ids import CheckpointId, WorkflowId
from segue.model.snapshots import Snapshot

Value = str | int | float
About = Literal["tasks", "decisions", "errors", "files", "tests", "usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that came, went or is another now."""

    about: About
    sign: Literal["+", "-", "~"]
    name: str
    before: Value | None = None
    after: Value | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDiff:
    """Difference between two snapshots of a workflow."""

    workflow_id: WorkflowId
    before: CheckpointId
    after: CheckpointId
    changes: tuple[Change, ...]


def compare(before: Snapshot, after: Snapshot) -> SnapshotDiff:
    """Return the differences between two snapshots in tasks, decisions, errors, files, tests and usage."""
    return SnapshotDiff(
        workflow_id=after.checkpoint.workflow_id,
        before=before.checkpoint.id,
        after=after.checkpoint.id,
        changes=tuple(change for about, look in LOOKS.items() for change in _changes(about, look(before), look(after))),
    )


def _changes(about: About, before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterator[Change]:
    """Yield a change for each name that was added, removed or has another value."""
    for name, value in after.items():
        if name not in before:
            yield Change(about=about, sign="+", name=name, after=value)
        elif before[name] != value:
            yield Change(about=about, sign="~", name=name, before=before[name], after=value)
    for name, value in before.items():
        if name not in after:
            yield Change(about=about, sign="-", name=name, before=value)


def _tasks(snapshot: Snapshot) -> dict[str, Value]:
    """Return the status of each task by its id and title."""
    return {f"[{task.id}] {task.title}": str(task.status) for task in snapshot.checkpoint.tasks}


def _decisions(snapshot: Snapshot) -> dict[str, Value]:
    """Return the type of each decision by its description, with a mark if it was withdrawn."""
    return {
        each.description: each.decision_type + (", taken back" if each.superseded_by else "")
        for each in _found(snapshot).decisions
    }


def _errors(snapshot: Snapshot) -> dict[str, Value]:
    """Return the resolution of each error by its message."""
    return {each.error_message: each.resolution for each in _found(snapshot).errors}


def _files(snapshot: Snapshot) -> dict[str, Value]:
    """Return the action on each changed file by its path; empty without git state."""
    git = snapshot.checkpoint.git
    if git is None:
        return {}
    committed: dict[str, Value] = {each.path: f"{each.action}, committed" for each in git.committed}
    return {**committed, **{each.path: _action(each) for each in git.changes}}


def _action(change: FileChange) -> str:
    """Return the action on an uncommitted file, with a mark if it is staged."""
    return f"{change.action}, staged" if change.staged else change.action


def _tests(snapshot: Snapshot) -> dict[str, Value]:
    """Return the test phase, the known counts and each failing test; empty if no tests ran."""
    tests = _found(snapshot).tests
    if tests is None:
        return {}
    numbers = {"passing": tests.passing, "failing": tests.failing, "pending": tests.pending}
    return {"phase": tests.phase, **_known(numbers), **dict.fromkeys(tests.failing_tests, "failing")}


def _usage(snapshot: Snapshot) -> dict[str, Value]:
    """Return the known figures of the usage by name."""
    usage = snapshot.checkpoint.usage
    return _known(
        {
            "context_tokens": usage.context_tokens,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
            "turns": usage.turns,
            "tool_calls": usage.tool_calls,
        }
    )


def _known(numbers: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return the numbers that are not None."""
    return {name: number for name, number in numbers.items() if number is not None}


def _found(snapshot: Snapshot) -> Findings:
    """Return the snapshot's findings, or empty ones."""
    return snapshot.findings or Findings(checkpoint_id=snapshot.checkpoint.id)


LOOKS: Mapping[About, Callable[[Snapshot], Mapping[str, Value]]] = {
    "tasks": _tasks,
    "decisions": _decisions,
    "errors": _errors,
    "files": _files,
    "tests": _tests,
    "usage": _usage,
}
"""What two snapshots are compared by: each look gives names and what is said of them."""
