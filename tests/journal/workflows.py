"""Small workflows to write journals about."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from segue.journal import Journal, NewWorkflowRow, Transaction
from segue.model.events import RunQueued
from segue.model.ids import SessionId, TaskId, WorkflowId, new_boot_id
from segue.model.plan import Issue, Plan, Task
from segue.model.status import Permissions, Way

_numbers = count(1)
BOOT = new_boot_id()


@dataclass
class TickingClock:
    """Each look at it takes a millisecond."""

    time: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def now(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time

    def away_since(self, moment: datetime) -> timedelta:
        return timedelta(0)

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def new_workflow(*tasks: str, worktree: str | None = None, title: str = "Build it") -> NewWorkflowRow:
    number = next(_numbers)
    return NewWorkflowRow(
        id=WorkflowId(f"workflow-{number}"),
        slug=f"build-it-{number}",
        issue=Issue(title=title),
        plan=Plan(tasks=tuple(Task(id=TaskId(name), title=name) for name in tasks or ("a", "b"))),
        agent="rehearsal",
        permissions=Permissions.ASK,
        repository="/repository",
        here=False,
        worktree=worktree or f"/worktrees/{number}",
        branch=f"segue/{number}",
    )


async def begun(journal: Journal, new: NewWorkflowRow | None = None) -> tuple[WorkflowId, SessionId]:
    """A workflow with its first session and a queued run."""
    new = new or new_workflow()
    session_id = SessionId(f"session-of-{new.id}")

    def begin(t: Transaction) -> None:
        t.sessions.create(session_id, new.agent)
        t.runs.queue(session_id, RunQueued(way=Way.FIRST, reason="new"), BOOT)

    await journal.create(new, begin)
    return new.id, session_id
