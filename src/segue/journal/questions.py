"""Permission requests of agents: queries, and their changes inside a transaction."""

from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from segue.journal.database import Database
from segue.journal.redaction import redact_text
from segue.journal.rows import QuestionRow, as_value
from segue.journal.workflows import LockedWorkflow
from segue.model.events import PermissionAnswered, PermissionRequested
from segue.model.ids import SessionId, WorkflowId
from segue.store import tables as t


def open_questions(connection: Connection, workflow_id: WorkflowId) -> list[QuestionRow]:
    """Select a workflow's unanswered permission requests, oldest first."""
    query = (
        select(t.questions)
        .where(t.questions.c.workflow_id == workflow_id, t.questions.c.outcome.is_(None))
        .order_by(t.questions.c.seq)
    )
    return [as_value(QuestionRow, row) for row in connection.execute(query)]


def overdue_questions(connection: Connection, now: datetime) -> list[QuestionRow]:
    """Select the unanswered permission requests of all workflows whose deadline has passed."""
    query = select(t.questions).where(t.questions.c.outcome.is_(None), t.questions.c.deadline <= now)
    return [as_value(QuestionRow, row) for row in connection.execute(query)]


def workflows_asking(connection: Connection) -> set[WorkflowId]:
    """Select the workflows with an unanswered permission request."""
    query = select(t.questions.c.workflow_id).where(t.questions.c.outcome.is_(None)).distinct()
    return set(connection.execute(query).scalars())


class QuestionReads:
    """Reads of permission requests."""

    def __init__(self, database: Database) -> None:
        self._read = database.read

    async def overdue(self, now: datetime) -> list[QuestionRow]:
        """Return the unanswered requests of all workflows whose deadline has passed."""
        return await self._read(overdue_questions, now)

    async def workflows_asking(self) -> set[WorkflowId]:
        """Return the workflows with an unanswered request."""
        return await self._read(workflows_asking)


class QuestionWrites:
    """Permission requests of a locked workflow."""

    def __init__(self, workflow: LockedWorkflow) -> None:
        self._workflow = workflow

    def open(self) -> list[QuestionRow]:
        """Return this workflow's unanswered requests, oldest first."""
        return open_questions(self._workflow.connection, self._workflow.id)

    def ask(self, question: PermissionRequested, session_id: SessionId, run: int | None, deadline: datetime) -> None:
        """Insert a request that waits for an answer until the deadline, and append its event."""
        row = {
            "id": question.request_id,
            "workflow_id": self._workflow.id,
            "session_id": session_id,
            "seq": self._workflow.append(question, session_id=session_id, run=run),
            "title": redact_text(question.title),
            "deadline": deadline,
        }
        self._workflow.connection.execute(insert(t.questions), row)

    def answer(self, answer: PermissionAnswered, session_id: SessionId, run: int | None) -> bool:
        """Store the first answer and append its event; return False, with nothing written, if the request was
        answered before."""
        query = (
            update(t.questions)
            .where(t.questions.c.id == answer.request_id, t.questions.c.outcome.is_(None))
            .values(outcome=answer.outcome)
        )
        if self._workflow.connection.execute(query).rowcount != 1:
            return False
        self._workflow.append(answer, session_id=session_id, run=run)
        return True
