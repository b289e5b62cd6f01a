"""Workflows: queries, creation, and the lock under which one is changed."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from segue.journal.chain import GENESIS, Entry, append_in
from segue.journal.database import Database
from segue.journal.redaction import redact, redact_text
from segue.journal.rows import WorkflowRow, as_value
from segue.model.agents import Choices
from segue.model.codec import encode
from segue.model.errors import SegueError, WorkflowNotFound, WorktreeInUse, WrongState
from segue.model.events import Event, Origin, WorkflowCreated
from segue.model.ids import Seq, SessionId, WorkflowId
from segue.model.plan import Issue, Plan, TaskStatus
from segue.model.status import Permissions, PromptStatus, RunStatus, WorkflowStatus
from segue.state.moves import WORKFLOW_ENDED
from segue.store import tables as t


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflowRow:
    """Values of a workflow that is about to be created."""

    id: WorkflowId
    slug: str
    issue: Issue
    plan: Plan | None
    agent: str
    permissions: Permissions
    repository: str
    here: bool
    worktree: str
    branch: str
    choices: Choices = field(default_factory=Choices)
    imported: bool = False
    title: str = ""
    """Title of the workflow, if it differs from the issue's."""
    forked_from: Origin | None = None


# ── queries ─────────────────────────────────────────────────────────────────────────────────────────


def workflow_by_id(connection: Connection, workflow_id: WorkflowId) -> WorkflowRow:
    """Select the workflow with this id, which must exist."""
    return as_value(WorkflowRow, connection.execute(select(t.workflows).where(t.workflows.c.id == workflow_id)).one())


def workflow_named(connection: Connection, name: str) -> WorkflowRow:
    """Select the workflow with this id or slug; raise WorkflowNotFound if there is none."""
    row = connection.execute(select(t.workflows).where(_has_name(name))).first()
    if row is None:
        raise _not_found(name)
    return as_value(WorkflowRow, row)


def workflow_at_head(connection: Connection, name: str) -> tuple[WorkflowRow, Seq]:
    """Select the workflow with this id or slug, and the number of its last event; raise WorkflowNotFound if there is
    none."""
    heads = t.journal_heads
    query = select(t.workflows, heads.c.seq.label("head")).join(heads, heads.c.workflow_id == t.workflows.c.id)
    row = connection.execute(query.where(_has_name(name))).first()
    if row is None:
        raise _not_found(name)
    return as_value(WorkflowRow, row), Seq(row.head)


def _has_name(name: str) -> ColumnElement[bool]:
    """Build the condition for a workflow with this id or slug."""
    return or_(t.workflows.c.id == name, t.workflows.c.slug == name)


def _not_found(name: str) -> WorkflowNotFound:
    """Build the error that no workflow has this name."""
    return WorkflowNotFound(f"No workflow is called {name!r}.", hint="`segue status` lists them.")


def all_workflows(connection: Connection, statuses: Collection[WorkflowStatus] = ()) -> list[WorkflowRow]:
    """Select all workflows, or those in these statuses, newest first."""
    query = select(t.workflows).order_by(t.workflows.c.created_at.desc(), t.workflows.c.id.desc())
    if statuses:
        query = query.where(t.workflows.c.status.in_(statuses))
    return [as_value(WorkflowRow, row) for row in connection.execute(query)]


def scheduled_retries(connection: Connection) -> list[WorkflowRow]:
    """Select the workflows with a scheduled retry, the earliest retry first."""
    query = select(t.workflows).where(t.workflows.c.retry_at.is_not(None), t.workflows.c.status.not_in(WORKFLOW_ENDED))
    query = query.order_by(t.workflows.c.retry_at, t.workflows.c.id)
    return [as_value(WorkflowRow, row) for row in connection.execute(query)]


def slugs_like(connection: Connection, slug: str) -> set[str]:
    """Select the slugs that begin like this one."""
    query = select(t.workflows.c.slug).where(t.workflows.c.slug.startswith(slug, autoescape=True))
    return set(connection.execute(query).scalars())


def workflow_in(connection: Connection, worktree: str) -> WorkflowRow | None:
    """Select the workflow that has this worktree and is neither completed nor cancelled; None if there is none."""
    query = select(t.workflows).where(t.workflows.c.worktree == worktree, t.workflows.c.status.not_in(WORKFLOW_ENDED))
    row = connection.execute(query).first()
    return None if row is None else as_value(WorkflowRow, row)


def workflow_with_token(connection: Connection, token: str) -> WorkflowRow | None:
    """Select the workflow whose session has this resume token, or was imported from that conversation, and that is
    neither completed nor cancelled; else None."""
    run = (
        select(t.sessions.c.workflow_id)
        .join(t.runtimes, t.runtimes.c.session_id == t.sessions.c.id)
        .where(t.runtimes.c.token == token)
    )
    # A session imported for an agent without native resume has no token.
    imported = select(t.imports.c.workflow_id).where(t.imports.c.conversation == token)
    query = select(t.workflows).where(
        t.workflows.c.id.in_(run.union(imported)), t.workflows.c.status.not_in(WORKFLOW_ENDED)
    )
    row = connection.execute(query).first()
    return None if row is None else as_value(WorkflowRow, row)


def imported_as(connection: Connection, sha256: str) -> WorkflowId | None:
    """Select the id of the workflow that was made from a session file with this content; None if there is none."""
    return connection.execute(select(t.imports.c.workflow_id).where(t.imports.c.sha256 == sha256)).scalar()


def nothing_open() -> tuple[ColumnElement[bool], ...]:
    """Build the conditions for a workflow with no open run, question or message, and no scheduled retry."""
    run = exists().where(t.runs.c.workflow_id == t.workflows.c.id, t.runs.c.status != RunStatus.ENDED)
    question = exists().where(t.questions.c.workflow_id == t.workflows.c.id, t.questions.c.outcome.is_(None))
    message = exists().where(t.prompts.c.workflow_id == t.workflows.c.id, *message_waits())
    return ~run, ~question, ~message, t.workflows.c.retry_at.is_(None)


def message_waits() -> tuple[ColumnElement[bool], ...]:
    """Build the conditions for a person's message that no run has taken yet."""
    return t.prompts.c.status == PromptStatus.QUEUED, t.prompts.c.task_id.is_(None), t.prompts.c.run.is_(None)


class WorkflowReads:
    """Reads of workflows."""

    def __init__(self, database: Database) -> None:
        self._read = database.read

    async def get(self, name: str) -> WorkflowRow:
        """Return the workflow with this id or slug; raise WorkflowNotFound if there is none."""
        return await self._read(workflow_named, name)

    async def at_head(self, name: str) -> tuple[WorkflowRow, Seq]:
        """Return the workflow with this id or slug, and the number of its last event; raise WorkflowNotFound if
        there is none."""
        return await self._read(workflow_at_head, name)

    async def all(self, statuses: Collection[WorkflowStatus] = ()) -> list[WorkflowRow]:
        """Return all workflows, or those in these statuses, newest first."""
        return await self._read(all_workflows, statuses)

    async def scheduled_retries(self) -> list[WorkflowRow]:
        """Return the workflows with a scheduled retry, the earliest retry first."""
        return await self._read(scheduled_retries)

    async def slugs_like(self, slug: str) -> set[str]:
        """Return the slugs that begin like this one."""
        return await self._read(slugs_like, slug)

    async def in_worktree(self, worktree: str) -> WorkflowRow | None:
        """Return the workflow that has this worktree and is neither completed nor cancelled; None if there is none."""
        return await self._read(workflow_in, worktree)

    async def with_token(self, token: str) -> WorkflowRow | None:
        """Return the open workflow that has this resume token, or was imported from that conversation; None if there
        is none."""
        return await self._read(workflow_with_token, token)

    async def imported_as(self, sha256: str) -> WorkflowId | None:
        """Return the id of the workflow that was made from a session file with this content; None if there is none."""
        return await self._read(imported_as, sha256)


# ── creation ────────────────────────────────────────────────────────────────────────────────────────


def insert_workflow(connection: Connection, new: NewWorkflowRow, now: datetime) -> WorkflowCreated:
    """Insert the first rows of a workflow, and return the event of its creation; raise if its worktree or name is
    taken."""
    in_event_only = ("issue", "plan", "imported", "forked_from")
    row = {
        **{key: value for key, value in asdict(new).items() if key not in in_event_only},
        "title": redact_text(new.title or new.issue.title),
        "choices": redact(encode(new.choices)).decode(),
        "status": WorkflowStatus.PENDING,
        "session_count": 0,
        "checkpoint_count": 0,
        "created_at": now,
        "updated_at": now,
    }
    try:
        connection.execute(insert(t.workflows), row)
    except IntegrityError as error:
        raise _collision(error, new) from error
    connection.execute(insert(t.journal_heads), {"workflow_id": new.id, "seq": 0, "hash": GENESIS})
    if tasks := _task_rows(new):
        connection.execute(insert(t.tasks), tasks)
    return WorkflowCreated(
        slug=new.slug,
        issue=new.issue,
        plan=new.plan,
        agent=new.agent,
        permissions=new.permissions,
        repository=new.repository,
        here=new.here,
        choices=new.choices,
        imported=new.imported,
        forked_from=new.forked_from,
    )


def _task_rows(new: NewWorkflowRow) -> list[dict[str, Any]]:
    """Build the rows of the plan's tasks, with a fork's statuses; none without a plan."""
    statuses = new.forked_from.tasks if new.forked_from else {}
    return [
        {
            "workflow_id": new.id,
            "id": task.id,
            "position": position,
            "status": statuses.get(task.id, TaskStatus.PENDING),
        }
        for position, task in enumerate(new.plan.tasks if new.plan else ())
    ]


def _collision(error: IntegrityError, new: NewWorkflowRow) -> SegueError:
    """Convert the database's error to one of ours: the worktree is in use, or else the name is taken."""
    if "worktree" in str(error.orig):
        return WorktreeInUse(
            f"Another workflow is at work in {new.worktree}.",
            hint="Finish or cancel it (`segue status`), or run without --here to get a worktree of its own.",
        )
    return WrongState("Two workflows were given the same name at the same moment.", hint="Try again.")


# ── the lock ────────────────────────────────────────────────────────────────────────────────────────


class LockedWorkflow:
    """Workflow that one transaction has locked. The parts of the transaction write through it."""

    def __init__(self, connection: Connection, workflow_id: WorkflowId, now: datetime) -> None:
        """Lock the workflow's head row until the transaction ends, and read its last event's number."""
        self.connection = connection
        self.id = workflow_id
        self.now = now
        self.head: Seq = append_in(connection, workflow_id, ())
        self._row: WorkflowRow | None = None

    @property
    def row(self) -> WorkflowRow:
        """Row of the workflow, read again after each update."""
        if self._row is None:
            self._row = workflow_by_id(self.connection, self.id)
        return self._row

    def append(self, *events: Event, session_id: SessionId | None = None, run: int | None = None) -> Seq:
        """Append events, and return the number of the last one."""
        entries: Sequence[Entry] = [Entry(event, self.now, session_id, run) for event in events]
        self.head = append_in(self.connection, self.id, entries)
        return self.head

    def update(self, **values: Any) -> None:
        """Change columns of the workflow's row and its time of change; no event is appended."""
        self._row = None
        query = update(t.workflows).where(t.workflows.c.id == self.id)
        self.connection.execute(query.values(updated_at=self.now, **values))
