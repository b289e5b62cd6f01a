"""Transaction on one workflow: guarded moves, each with its event, all or nothing."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert

from segue.journal.checkpoints import CheckpointWrites
from segue.journal.prompts import PromptWrites
from segue.journal.questions import QuestionWrites
from segue.journal.records import NO_LIMIT, records_after
from segue.journal.redaction import redact, redact_text
from segue.journal.rows import WorkflowRow
from segue.journal.runs import RunWrites
from segue.journal.runtimes import RuntimeWrites
from segue.journal.sessions import SessionWrites
from segue.journal.tasks import TaskWrites
from segue.journal.workflows import LockedWorkflow, NewWorkflowRow, insert_workflow
from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.codec import decode, encode
from segue.model.ids import Seq, SessionId, WorkflowId
from segue.model.status import PromptStatus, SessionStatus, Trigger, WorkflowStatus
from segue.state.fold import WorkflowState, fold
from segue.state.moves import check_workflow_move
from segue.state.pauses import RequestedPause, combine_pauses
from segue.store.tables import imports


class Transaction:
    """Transaction that holds a workflow's lock; what it reads stays true until it commits.

    Its own methods change the workflow. Each part changes one subject of it.
    """

    def __init__(self, connection: Connection, workflow_id: WorkflowId, now: datetime) -> None:
        """Lock the workflow on this connection, until the transaction ends; all writes have the time `now`."""
        self.workflow_id = workflow_id
        self.now = now
        self._locked = LockedWorkflow(connection, workflow_id, now)
        self.sessions = SessionWrites(self._locked)
        self.runtimes = RuntimeWrites(self._locked)
        self.runs = RunWrites(self._locked, self.sessions, self.runtimes)
        self.tasks = TaskWrites(self._locked)
        self.prompts = PromptWrites(self._locked, self.sessions)
        self.questions = QuestionWrites(self._locked)
        self.checkpoints = CheckpointWrites(self._locked)
        self.calls_when_committed: list[Callable[[], None]] = []

    def when_committed(self, call: Callable[[], None]) -> None:
        """Call `call` in the journal's event loop after this transaction has committed."""
        self.calls_when_committed.append(call)

    @property
    def driver_connection(self) -> Any:
        """Connection of the database driver, for a run queue that writes inside this transaction."""
        return self._locked.connection.connection.driver_connection

    @classmethod
    def create(cls, connection: Connection, new: NewWorkflowRow, now: datetime) -> "Transaction":
        """Insert a workflow's first rows, lock it, append the event of its creation, and return the transaction."""
        created = insert_workflow(connection, new, now)
        transaction = cls(connection, new.id, now)
        transaction.append(created)
        return transaction

    # ── the journal ─────────────────────────────────────────────────────────────────────────────────

    @property
    def head(self) -> Seq:
        """Number of the workflow's last event."""
        return self._locked.head

    def append(self, *events: e.Event, session_id: SessionId | None = None, run: int | None = None) -> Seq:
        """Append events, and return the number of the last one."""
        return self._locked.append(*events, session_id=session_id, run=run)

    def catch_up(self, state: WorkflowState) -> WorkflowState:
        """Return the present state, folded from an earlier one with the events since, also those of this
        transaction."""
        if state.seq == self.head:
            return state
        return fold(records_after(self._locked.connection, self.workflow_id, state.seq, NO_LIMIT), state)

    # ── the workflow ────────────────────────────────────────────────────────────────────────────────

    @property
    def workflow(self) -> WorkflowRow:
        """Row of the workflow."""
        return self._locked.row

    def move_workflow(self, after: WorkflowStatus, *, reason: str = "", trigger: Trigger | None = None) -> None:
        """Move the workflow to another status, which removes any requested pause, and append the event; raise
        IllegalMove if the table does not allow it."""
        before = self.workflow.status
        check_workflow_move(before, after)
        paused = after is WorkflowStatus.PAUSED
        self._locked.update(
            status=after,
            paused_from=before if paused else None,
            paused_at=self.now if paused else None,
            pause_trigger=None,
            pause_reason=None,
            force_pause_at=None,
        )
        self.append(e.WorkflowMoved(before=before, after=after, reason=reason, trigger=trigger))

    def schedule_retry(self, retry: e.RetryScheduled, session_id: SessionId, run: int | None) -> None:
        """Store the time of a retry, which starts by itself unless a person decides otherwise before, and append the
        event."""
        self._locked.update(retry_at=retry.at)
        self.append(retry, session_id=session_id, run=run)

    def cancel_retry(self, state: WorkflowState, reason: str) -> bool:
        """Remove the scheduled retry and append the event; return False, with nothing written, when there is none."""
        retry = self.catch_up(state).retry
        if retry is None:
            return False
        self._locked.update(retry_at=None)
        self.append(e.RetryCancelled(step=retry.step, reason=reason))
        return True

    def request_pause(self, asked: RequestedPause) -> None:
        """Store the request to pause the workflow's run at its next boundary, and append it; do nothing if the
        present request holds."""
        row = self.workflow
        before = None
        if row.pause_trigger is not None and row.force_pause_at is not None:
            reason = row.pause_reason or ""
            before = RequestedPause(trigger=row.pause_trigger, reason=reason, force_at=row.force_pause_at)
        pause = combine_pauses(before, asked)
        if pause != before:
            reason, at = pause.reason, pause.force_at
            self._locked.update(pause_trigger=pause.trigger, pause_reason=redact_text(reason), force_pause_at=at)
            self.append(e.PauseRequested(trigger=pause.trigger, reason=reason, force_at=at))

    def withdraw_pause(self) -> None:
        """Remove a requested pause that has not happened yet, and append the event."""
        self._locked.update(pause_trigger=None, pause_reason=None, force_pause_at=None)
        self.append(e.PauseWithdrawn())

    def worktree_ready(self, path: str, branch: str, commit: str) -> None:
        """Append the event of the worktree; the first commit recorded is the workflow's base and never changes."""
        self._locked.update(base=self.workflow.base or commit)
        self.append(e.WorktreeReady(path=path, branch=branch, commit=commit))

    def worktree_discarded(self, path: str, branch: str) -> None:
        """Append the event that the worktree was removed before any work was done in it, and remove the workflow's
        base."""
        self._locked.update(base=None)
        self.append(e.WorktreeDiscarded(path=path, branch=branch))

    def change_agent(self, agent: str, choices: Choices) -> None:
        """Store the workflow's agent and choices; no event is appended, since that of the session created with this
        has them."""
        self._locked.update(agent=agent, choices=redact(encode(choices)).decode())

    def change_limits(self, limits: Limits, wait_for_quota: bool | None = None) -> None:
        """Store the workflow's limits, and whether it waits when the agent's quota is used up (None: as before), and
        append the event."""
        choices = replace(decode(Choices, self.workflow.choices), limits=limits)
        if wait_for_quota is not None:
            choices = replace(choices, wait_for_quota=wait_for_quota)
        self._locked.update(choices=redact(encode(choices)).decode())
        self.append(e.LimitsChanged(limits=limits, wait_for_quota=choices.wait_for_quota))

    # ── several subjects ────────────────────────────────────────────────────────────────────────────

    def end_helper(self, session_id: SessionId, after: SessionStatus, reason: str = "") -> None:
        """Move a reviewer or fixer session whose process is gone to its end, and mark its queued prompts as not
        sent."""
        for prompt in self.prompts.open(session_id, None):
            if prompt.status is PromptStatus.QUEUED:
                self.prompts.move(prompt.id, PromptStatus.NOT_SENT, session_id, None)
        self.sessions.move(session_id, after, reason=reason)
        self.runtimes.end(session_id)

    def import_session(self, imported: e.SessionImported, session_id: SessionId, token: str | None) -> None:
        """Store an imported session file and its token, if any, and append the events. A second import of the same
        content fails as a whole."""
        row = {
            "sha256": imported.sha256,
            "workflow_id": self.workflow_id,
            "conversation": imported.conversation,
            "file": imported.file,
            "imported_at": self.now,
        }
        self._locked.connection.execute(insert(imports), row)
        self.append(imported, session_id=session_id)
        if token is not None:
            self.runtimes.import_token(session_id, token)
