"""Prompts and people's messages: queries, and their moves inside a transaction."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, update

from segue.journal.database import Database
from segue.journal.records import record_at
from segue.journal.rows import PromptRow, as_value
from segue.journal.sessions import SessionWrites
from segue.journal.workflows import LockedWorkflow, message_waits
from segue.model.errors import WrongState
from segue.model.events import ContextCarried, PromptAcknowledged, PromptNotSent, PromptQueued, PromptSent
from segue.model.ids import PromptId, SessionId, WorkflowId
from segue.model.pictures import Shown
from segue.model.status import Carrying, PromptStatus
from segue.store import tables as t

# ── queries ─────────────────────────────────────────────────────────────────────────────────────────


def prompt_by_id(connection: Connection, prompt_id: PromptId) -> PromptRow:
    """Select the prompt with this id, which must exist."""
    return as_value(PromptRow, connection.execute(select(t.prompts).where(t.prompts.c.id == prompt_id)).one())


def open_prompts(connection: Connection, session_id: SessionId, run: int | None) -> list[PromptRow]:
    """Select prompts of a run, or of a helper session (run None), that are queued or sent but not acknowledged."""
    query = select(t.prompts).where(
        t.prompts.c.session_id == session_id,
        t.prompts.c.run == run,
        t.prompts.c.status.in_([PromptStatus.QUEUED, PromptStatus.SENT]),
    )
    return [as_value(PromptRow, row) for row in connection.execute(query)]


def waiting_messages(connection: Connection, workflow_id: WorkflowId) -> list[PromptRow]:
    """Select people's messages that no run has taken yet, oldest first."""
    query = select(t.prompts).where(t.prompts.c.workflow_id == workflow_id, *message_waits()).order_by(t.prompts.c.seq)
    return [as_value(PromptRow, row) for row in connection.execute(query)]


def queued_prompt(connection: Connection, prompt_id: PromptId) -> PromptQueued:
    """Select the event that holds a prompt's text."""
    row = connection.execute(select(t.prompts.c.workflow_id, t.prompts.c.seq).where(t.prompts.c.id == prompt_id)).one()
    event = record_at(connection, row.workflow_id, row.seq).event
    assert isinstance(event, PromptQueued), "a prompt's row names the event that holds its text"
    return event


def queued_prompts(connection: Connection, prompt_ids: Sequence[PromptId]) -> dict[PromptId, PromptQueued]:
    """Select the events that hold the text of these prompts."""
    return {prompt_id: queued_prompt(connection, prompt_id) for prompt_id in prompt_ids}


def pictures_of(connection: Connection, prompt: PromptQueued) -> list[bytes]:
    """Select the pictures that are sent with a prompt, in its order."""
    row = connection.execute(select(t.prompts.c.workflow_id).where(t.prompts.c.id == prompt.prompt_id)).one()
    hashes = [each.sha256 for each in prompt.pictures]
    query = select(t.pictures.c.sha256, t.pictures.c.data)
    query = query.where(t.pictures.c.workflow_id == row.workflow_id, t.pictures.c.sha256.in_(hashes))
    found = {row.sha256: row.data for row in connection.execute(query)}
    return [found[each] for each in hashes]


class PromptReads:
    """Reads of prompts and their pictures."""

    def __init__(self, database: Database) -> None:
        self._read = database.read

    async def get(self, prompt_id: PromptId) -> PromptRow:
        """Return the prompt with this id."""
        return await self._read(prompt_by_id, prompt_id)

    async def queued(self, prompt_id: PromptId) -> PromptQueued:
        """Return the event that holds a prompt's text."""
        return await self._read(queued_prompt, prompt_id)

    async def all_queued(self, prompt_ids: Sequence[PromptId]) -> dict[PromptId, PromptQueued]:
        """Return the events that hold the text of these prompts."""
        return await self._read(queued_prompts, prompt_ids)

    async def pictures(self, prompt: PromptQueued) -> list[bytes]:
        """Return the pictures that are sent with a prompt, in its order."""
        return await self._read(pictures_of, prompt)


# ── in a transaction ────────────────────────────────────────────────────────────────────────────────

_MOVES: dict[PromptStatus, tuple[PromptStatus, type[PromptSent | PromptAcknowledged | PromptNotSent]]] = {
    PromptStatus.SENT: (PromptStatus.QUEUED, PromptSent),
    PromptStatus.ACKNOWLEDGED: (PromptStatus.SENT, PromptAcknowledged),
    PromptStatus.NOT_SENT: (PromptStatus.QUEUED, PromptNotSent),
}
"""For each status the status before it, and the event of the move."""


class PromptWrites:
    """Prompts of a locked workflow."""

    def __init__(self, workflow: LockedWorkflow, sessions: SessionWrites) -> None:
        self._workflow = workflow
        self._sessions = sessions

    def get(self, prompt_id: PromptId) -> PromptRow:
        """Return the prompt with this id."""
        return prompt_by_id(self._workflow.connection, prompt_id)

    def queued(self, prompt_id: PromptId) -> PromptQueued:
        """Return the event that holds a prompt's text."""
        return queued_prompt(self._workflow.connection, prompt_id)

    def open(self, session_id: SessionId, run: int | None) -> list[PromptRow]:
        """Return prompts of a run, or of a helper session (run None), that are queued or sent but not acknowledged."""
        return open_prompts(self._workflow.connection, session_id, run)

    def waiting(self) -> list[PromptRow]:
        """Return people's messages that no run has taken yet, oldest first."""
        return waiting_messages(self._workflow.connection, self._workflow.id)

    def queue(self, prompt: PromptQueued, session_id: SessionId, run: int | None, shown: Sequence[Shown] = ()) -> None:
        """Insert a prompt as queued, store its pictures, and append its event; without a run it waits for the next
        one. `shown` holds the pictures' data; a picture that is stored already is not needed."""
        for picture, each in zip(prompt.pictures, shown, strict=False):
            self._keep_picture(picture.sha256, each.data)
        row = {
            "id": prompt.prompt_id,
            "workflow_id": self._workflow.id,
            "session_id": session_id,
            "run": run,
            "task_id": prompt.task_id,
            "status": PromptStatus.QUEUED,
            "seq": self._workflow.append(prompt, session_id=session_id, run=run),
            "carries": False,
        }
        self._workflow.connection.execute(insert(t.prompts), row)

    def _keep_picture(self, sha256: str, data: bytes) -> None:
        """Insert a picture under its hash, unless the workflow has it already."""
        row = {"workflow_id": self._workflow.id, "sha256": sha256}
        if self._workflow.connection.execute(select(t.pictures.c.sha256).filter_by(**row)).first() is None:
            self._workflow.connection.execute(insert(t.pictures), {**row, "data": data})

    def take(self, message: PromptRow, session_id: SessionId, run: int) -> PromptQueued:
        """Assign a waiting message to this session and run, and return the event with its text."""
        self._update(message.id, session_id=session_id, run=run)
        return self.queued(message.id)

    def give_back(self, message: PromptRow) -> None:
        """Let a message that was not sent wait for the next run; no event is appended."""
        self._update(message.id, run=None, carries=False)

    def carry(self, carried: ContextCarried, session_id: SessionId, run: int) -> None:
        """Mark the prompt as one that carries the earlier conversation, and append the event of that."""
        self._update(carried.prompt_id, carries=True)
        self._workflow.append(carried, session_id=session_id, run=run)

    def move(
        self,
        prompt_id: PromptId,
        after: PromptStatus,
        session_id: SessionId,
        run: int | None,
        *,
        understood: bool = True,
        reason: str = "",
        part_of: PromptId | None = None,
    ) -> None:
        """Move a prompt to its next status and append the event; raise WrongState if its status does not allow it.
        `understood`: the conversation has received what the prompt carries, not only the agent's process. `reason`:
        cause of not sending it. `part_of`: the prompt that it is sent with."""
        before, event = _MOVES[after]
        if not self._update(prompt_id, t.prompts.c.status == before, status=after):
            raise WrongState(f"Prompt {prompt_id} cannot become {after} now.")
        moved = PromptNotSent(prompt_id=prompt_id, reason=reason) if reason else event(prompt_id=prompt_id)
        if part_of is not None:
            moved = PromptSent(prompt_id=prompt_id, part_of=part_of)
        self._workflow.append(moved, session_id=session_id, run=run)
        if after is PromptStatus.ACKNOWLEDGED and understood and self.get(prompt_id).carries:
            self._sessions.set_carrying(session_id, Carrying.DONE)

    def _update(self, prompt_id: PromptId, *conditions: ColumnElement[bool], **values: Any) -> bool:
        """Change columns of a prompt's row if the conditions hold; return False if they do not."""
        query = update(t.prompts).where(t.prompts.c.id == prompt_id, *conditions).values(**values)
        return self._workflow.connection.execute(query).rowcount == 1
