"""One transaction on one workflow: guarded moves, each with its event, all or nothing."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from segue.journal import rows
from segue.journal.chain import GENESIS, Entry, append_in
from segue.journal.reading import EVERYTHING, queued_prompt, records_after
from segue.journal.redaction import redact, redact_text
from segue.model import events as e
from segue.model.agents import Choices, Limits
from segue.model.checkpoint import Checkpoint, CheckpointType
from segue.model.codec import decode, encode, encode_checkpoint, encode_findings
from segue.model.errors import SegueError, WorktreeInUse, WrongState
from segue.model.findings import Findings
from segue.model.ids import (
    AttemptId,
    BootId,
    CheckpointId,
    PromptId,
    Seq,
    SessionId,
    TaskId,
    WorkflowId,
    checkpoint_id,
)
from segue.model.pictures import Shown
from segue.model.plan import Issue, Plan, TaskStatus
from segue.model.status import (
    Carrying,
    Permissions,
    PromptStatus,
    Purpose,
    Role,
    RunStatus,
    RuntimeStatus,
    SessionStatus,
    Trigger,
    WaitingFor,
    WorkflowStatus,
)
from segue.state.fold import WorkflowState, fold
from segue.state.moves import check_session_move, check_workflow_move
from segue.store import tables as t


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflowRow:
    """What a workflow is made of."""

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
    """What it is called, if not like its issue."""
    forked_from: e.Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """An agent's process, so that nobody mistakes another one for it."""

    execution: AttemptId
    pid: int
    pid_started: str | None
    guardian_pid: int
    machine_boot: str | None
    container: str | None = None


class Transaction:
    """Holds a workflow's lock; what it reads stays true until it commits."""

    def __init__(self, connection: Connection, workflow_id: WorkflowId, now: datetime) -> None:
        self.connection = connection
        self.workflow_id = workflow_id
        self.now = now
        self.head: Seq = append_in(connection, workflow_id, ())
        self._row: rows.WorkflowRow | None = None
        self.calls_when_committed: list[Callable[[], None]] = []

    def when_committed(self, call: Callable[[], None]) -> None:
        """Have `call` made in the journal's event loop once this transaction has committed."""
        self.calls_when_committed.append(call)

    @property
    def driver_connection(self) -> Any:
        """Connection of the database driver, for a library that writes inside this transaction."""
        return self.connection.connection.driver_connection

    @classmethod
    def create(cls, connection: Connection, new: NewWorkflowRow, now: datetime) -> "Transaction":
        """Write a workflow's first rows, and hold its lock."""
        told = ("issue", "plan", "imported", "forked_from")
        row = {
            **{key: value for key, value in asdict(new).items() if key not in told},
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
        if rows_ := _task_rows(new):
            connection.execute(insert(t.tasks), rows_)
        transaction = cls(connection, new.id, now)
        transaction.append(
            e.WorkflowCreated(
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
        )
        return transaction

    def append(self, *events: e.Event, session_id: SessionId | None = None, run: int | None = None) -> Seq:
        entries = [Entry(event=event, at=self.now, session_id=session_id, run=run) for event in events]
        self.head = append_in(self.connection, self.workflow_id, entries)
        return self.head

    def catch_up(self, state: WorkflowState) -> WorkflowState:
        """The state as it is now, from one that was folded before the lock was taken."""
        return fold(records_after(self.connection, self.workflow_id, state.seq, EVERYTHING), state)

    # ── reading under the lock ──────────────────────────────────────────────────────────────────────

    @property
    def workflow(self) -> rows.WorkflowRow:
        if self._row is None:
            self._row = rows.workflow_by_id(self.connection, self.workflow_id)
        return self._row

    @property
    def session(self) -> rows.SessionRow:
        return rows.current_session(self.connection, self.workflow_id)

    @property
    def open_run(self) -> rows.RunRow | None:
        return next(iter(rows.open_runs(self.connection, self.workflow_id)), None)

    @property
    def messages(self) -> list[rows.PromptRow]:
        return rows.waiting_messages(self.connection, self.workflow_id)

    @property
    def tasks(self) -> list[rows.TaskRow]:
        return rows.tasks_of(self.connection, self.workflow_id)

    # ── workflow ────────────────────────────────────────────────────────────────────────────────────

    def move_workflow(self, after: WorkflowStatus, *, reason: str = "", trigger: Trigger | None = None) -> None:
        before = self.workflow.status
        check_workflow_move(before, after)
        paused = after is WorkflowStatus.PAUSED
        self._workflow(
            status=after,
            paused_from=before if paused else None,
            paused_at=self.now if paused else None,
            pause_trigger=None,
            pause_reason=None,
            force_pause_at=None,
        )
        self.append(e.WorkflowMoved(before=before, after=after, reason=reason, trigger=trigger))

    def schedule_retry(self, retry: e.RetryScheduled, session_id: SessionId, run: int | None) -> None:
        """The work goes on by itself then, unless somebody decides otherwise before."""
        self._workflow(retry_at=retry.at)
        self.append(retry, session_id=session_id, run=run)

    def cancel_retry(self, state: WorkflowState, reason: str) -> bool:
        """Nothing goes on by itself; false, and nothing is done, where nothing was to."""
        retry = self.catch_up(state).retry
        if retry is None:
            return False
        self._workflow(retry_at=None)
        self.append(e.RetryCancelled(step=retry.step, reason=reason))
        return True

    def adopt_plan(self, adopted: e.PlanAdopted) -> None:
        """The tasks are those of this plan from now on; what was done stays done."""
        done = {task.id for task in self.tasks if task.status is TaskStatus.COMPLETED}
        ids = [task.id for task in adopted.plan.tasks]
        self._replace_tasks({each: TaskStatus.COMPLETED if each in done else TaskStatus.PENDING for each in ids})
        self.append(adopted)

    def _replace_tasks(self, statuses: Mapping[TaskId, TaskStatus]) -> None:
        """In the order in which they are given."""
        self.connection.execute(delete(t.tasks).where(t.tasks.c.workflow_id == self.workflow_id))
        fresh = [
            {"workflow_id": self.workflow_id, "id": task_id, "position": position, "status": status}
            for position, (task_id, status) in enumerate(statuses.items())
        ]
        if fresh:
            self.connection.execute(insert(t.tasks), fresh)

    def request_pause(self, trigger: Trigger, reason: str, force_at: datetime) -> None:
        self._workflow(pause_trigger=trigger, pause_reason=redact_text(reason), force_pause_at=force_at)
        self.append(e.PauseRequested(trigger=trigger, reason=reason, force_at=force_at))

    def withdraw_pause(self) -> None:
        """Somebody wants the work to go on after all."""
        self._workflow(pause_trigger=None, pause_reason=None, force_pause_at=None)
        self.append(e.PauseWithdrawn())

    def worktree_ready(self, path: str, branch: str, commit: str) -> None:
        """Remembers the commit the work started from; it never changes after."""
        self._workflow(base=self.workflow.base or commit)
        self.append(e.WorktreeReady(path=path, branch=branch, commit=commit))

    def worktree_discarded(self, path: str, branch: str) -> None:
        self._workflow(base=None)
        self.append(e.WorktreeDiscarded(path=path, branch=branch))

    def change_agent(self, agent: str, choices: Choices) -> None:
        """Another agent takes over; who it is stands in the session that is created with this."""
        self._workflow(agent=agent, choices=redact(encode(choices)).decode())

    def rewind(self, event: e.WorkflowRewound) -> None:
        """Take the tasks back, those of another plan too; whoever had one has it no more."""
        self._replace_tasks(event.tasks)
        self.append(event)

    def change_limits(self, limits: Limits, wait_for_quota: bool | None = None) -> None:
        choices = replace(decode(Choices, self.workflow.choices), limits=limits)
        if wait_for_quota is not None:
            choices = replace(choices, wait_for_quota=wait_for_quota)
        self._workflow(choices=redact(encode(choices)).decode())
        self.append(e.LimitsChanged(limits=limits, wait_for_quota=choices.wait_for_quota))

    def _workflow(self, **values: Any) -> None:
        self._row = None
        query = update(t.workflows).where(t.workflows.c.id == self.workflow_id)
        self.connection.execute(query.values(updated_at=self.now, **values))

    # ── sessions ────────────────────────────────────────────────────────────────────────────────────

    def create_session(
        self,
        session_id: SessionId,
        agent: str,
        parent: SessionId | None = None,
        carrying: Carrying = Carrying.NOTHING,
        choices: Choices | None = None,
    ) -> None:
        number = self.workflow.session_count + 1
        self._workflow(session_count=number)
        self._insert_session(session_id, number, agent, parent, Role.WRITER, carrying)
        created = e.SessionCreated(number=number, agent=agent, parent=parent, choices=choices)
        self.append(created, session_id=session_id)

    def create_helper(self, session_id: SessionId, agent: str, parent: SessionId, role: Role) -> None:
        """A session beside the one that works: it is not numbered, and nothing follows from it."""
        lowest = rows.lowest_session_number(self.connection, self.workflow_id)
        self._insert_session(session_id, min(lowest, 0) - 1, agent, parent, role, Carrying.NOTHING)
        self.append(e.SessionCreated(number=0, agent=agent, parent=parent, role=role), session_id=session_id)

    def end_helper(self, session_id: SessionId, after: SessionStatus, reason: str = "") -> None:
        """Its process is gone; what it was not asked yet is not asked any more."""
        for prompt in rows.open_prompts(self.connection, session_id, None):
            if prompt.status is PromptStatus.QUEUED:
                self.move_prompt(prompt.id, PromptStatus.NOT_SENT, session_id, None)
        self.move_session(session_id, after, reason=reason)
        self._runtime(session_id, t.runtimes.c.status == RuntimeStatus.LIVE, status=RuntimeStatus.ENDED)

    def _insert_session(
        self, session_id: SessionId, number: int, agent: str, parent: SessionId | None, role: Role, carrying: Carrying
    ) -> None:
        row = {
            "id": session_id,
            "workflow_id": self.workflow_id,
            "number": number,
            "agent": agent,
            "parent": parent,
            "status": SessionStatus.CREATED,
            "reason": "",
            "run_count": 0,
            "created_at": self.now,
            "moved_at": self.now,
            "carrying": carrying,
            "role": role,
        }
        self.connection.execute(insert(t.sessions), row)
        runtime = {"session_id": session_id, "status": RuntimeStatus.NONE, "generation": 0, "dropped_events": 0}
        self.connection.execute(insert(t.runtimes), runtime)

    def move_session(
        self,
        session_id: SessionId,
        after: SessionStatus,
        *,
        run: int | None = None,
        reason: str = "",
        waiting_for: WaitingFor | None = None,
    ) -> None:
        before = rows.session_by_id(self.connection, session_id).status
        check_session_move(before, after)
        values: dict[str, Any] = {"status": after, "reason": redact_text(reason), "waiting_for": waiting_for}
        if after is SessionStatus.STARTING:
            values["started_from"] = before
        self._session(session_id, **values)
        self.append(
            e.SessionMoved(before=before, after=after, reason=reason, waiting_for=waiting_for),
            session_id=session_id,
            run=run,
        )

    def carried(self, session_id: SessionId) -> None:
        """The agent has what was said before; it is not told again."""
        self._session(session_id, carrying=Carrying.DONE)

    def will_carry(self, session_id: SessionId, carrying: Carrying) -> None:
        """Whether a session that has not begun yet is to be told what was said before."""
        self._session(session_id, carrying=carrying)

    def _session(self, session_id: SessionId, **values: Any) -> None:
        query = update(t.sessions).where(t.sessions.c.id == session_id)
        self.connection.execute(query.values(moved_at=self.now, **values))

    # ── the agent's process ─────────────────────────────────────────────────────────────────────────

    def occupy(self, session_id: SessionId, process: Process) -> None:
        """A new process belongs to the session; the one before has no say any more."""
        self._runtime(session_id, status=RuntimeStatus.LIVE, last_seen_at=self.now, **asdict(process))

    def capture_token(self, session_id: SessionId, run: int | None, execution: AttemptId, token: str) -> None:
        """The execution that is in charge has told the conversation's name; anybody else's word is not taken."""
        runtime = rows.runtime_of(self.connection, session_id)
        if runtime.token == token:
            return
        taken = self._runtime(
            session_id,
            t.runtimes.c.execution == execution,
            t.runtimes.c.generation == runtime.generation,
            token=token,
            generation=runtime.generation + 1,
        )
        if not taken:
            raise WrongState("The conversation belongs to another execution by now.")
        self.append(e.TokenCaptured(token=token), session_id=session_id, run=run)

    def refuse_token(self, session_id: SessionId, run: int, token: str, reason: str) -> None:
        """The token stays in the journal, but is not tried again unless somebody asks for that."""
        generation = rows.runtime_of(self.connection, session_id).generation
        self._runtime(session_id, t.runtimes.c.token == token, token=None, generation=generation + 1)
        self.append(e.TokenRefused(token=token, reason=reason), session_id=session_id, run=run)

    def retry_token(self, session_id: SessionId, token: str) -> None:
        """Somebody wants a refused token tried again."""
        generation = rows.runtime_of(self.connection, session_id).generation
        self._runtime(session_id, token=token, generation=generation + 1)
        self.append(e.TokenCaptured(token=token), session_id=session_id)

    def seen(self, session_id: SessionId, execution: AttemptId) -> bool:
        """A sign of life; false when it comes from a dead one."""
        return self._runtime(session_id, t.runtimes.c.execution == execution, last_seen_at=self.now)

    def _runtime(self, session_id: SessionId, *conditions: ColumnElement[bool], **values: Any) -> bool:
        query = update(t.runtimes).where(t.runtimes.c.session_id == session_id, *conditions).values(**values)
        return self.connection.execute(query).rowcount == 1

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────

    def queue_run(self, session_id: SessionId, queued: e.RunQueued, boot: BootId) -> int:
        """The next run of a session; the caller enqueues it in this same transaction."""
        number = rows.session_by_id(self.connection, session_id).run_count + 1
        self._session(session_id, run_count=number)
        row = {
            "session_id": session_id,
            "number": number,
            "workflow_id": self.workflow_id,
            "status": RunStatus.QUEUED,
            "way": queued.way,
            "purpose": queued.purpose,
            "boot": boot,
            "queued_at": self.now,
        }
        self.connection.execute(insert(t.runs), row)
        if queued.purpose is Purpose.WORK:
            # Whatever was to be tried again is tried now.
            self._workflow(retry_at=None)
        self.append(queued, session_id=session_id, run=number)
        return number

    def change_way(self, session_id: SessionId, number: int, changed: e.WayChanged, carrying: Carrying) -> None:
        """A run goes another way than the one it was queued for, before anything was asked of its agent."""
        self._run(session_id, number, way=changed.after)
        self.will_carry(session_id, carrying)
        self.append(changed, session_id=session_id, run=number)

    def repurpose(self, session_id: SessionId, number: int, purpose: Purpose) -> None:
        """A run that was there to talk goes on with the plan, or is about to leave."""
        self._run(session_id, number, purpose=purpose)

    def claim_run(self, session_id: SessionId, number: int, attempt: AttemptId, boot: BootId) -> bool:
        """Take a queued run; false when it was settled meanwhile, or when another boot queued it: nobody asked this
        one to start an agent."""
        run = rows.run_by_id(self.connection, session_id, number)
        if run.status is not RunStatus.QUEUED or run.boot != boot:
            return False
        self._run(session_id, number, status=RunStatus.ACTIVE, attempt=attempt, started_at=self.now)
        self.append(e.RunStarted(attempt=attempt, boot=boot), session_id=session_id, run=number)
        return True

    def held_run(self, session_id: SessionId, number: int, attempt: AttemptId) -> rows.RunRow | None:
        """The fence: the run, if this physical try still owns it."""
        run = rows.run_by_id(self.connection, session_id, number)
        return run if run.status is RunStatus.ACTIVE and run.attempt == attempt else None

    def end_run(self, session_id: SessionId, number: int, ended: e.RunEnded) -> None:
        self._run(session_id, number, status=RunStatus.ENDED, ended_at=self.now, outcome=ended.outcome)
        self._runtime(session_id, t.runtimes.c.status == RuntimeStatus.LIVE, status=RuntimeStatus.ENDED)
        self.append(ended, session_id=session_id, run=number)

    def _run(self, session_id: SessionId, number: int, **values: Any) -> None:
        query = update(t.runs).where(t.runs.c.session_id == session_id, t.runs.c.number == number)
        self.connection.execute(query.values(**values))

    # ── tasks ───────────────────────────────────────────────────────────────────────────────────────

    def start_task(self, task_id: TaskId, attempt: AttemptId, session_id: SessionId, run: int) -> None:
        self._task(task_id, {TaskStatus.PENDING, TaskStatus.FAILED}, TaskStatus.IN_PROGRESS, attempt)
        self.append(e.TaskStarted(task_id=task_id, attempt=attempt), session_id=session_id, run=run)

    def complete_task(self, task_id: TaskId, attempt: AttemptId, session_id: SessionId, run: int) -> None:
        self._end_task(task_id, TaskStatus.COMPLETED, attempt)
        self.append(e.TaskCompleted(task_id=task_id, attempt=attempt), session_id=session_id, run=run)

    def accept_task(self, task_id: TaskId, attempt: AttemptId, session_id: SessionId) -> None:
        """Somebody takes it as done, though nobody works on it now."""
        self._task(task_id, {TaskStatus.PENDING, TaskStatus.FAILED}, TaskStatus.COMPLETED, None)
        self.append(e.TaskCompleted(task_id=task_id, attempt=attempt), session_id=session_id)

    def fail_task(self, task_id: TaskId, attempt: AttemptId, session_id: SessionId, run: int, reason: str) -> None:
        self._end_task(task_id, TaskStatus.FAILED, attempt)
        self.append(e.TaskFailed(task_id=task_id, attempt=attempt, reason=reason), session_id=session_id, run=run)

    def interrupt_task(self, task_id: TaskId, session_id: SessionId, run: int | None, reason: str) -> None:
        """Whoever had the task has it no more; it is pending again."""
        attempt = next(task.attempt for task in self.tasks if task.id == task_id)
        if attempt is None:
            raise WrongState(f"Task {task_id!r} is not being worked on.")
        self._end_task(task_id, TaskStatus.PENDING, attempt)
        self.append(e.TaskInterrupted(task_id=task_id, attempt=attempt, reason=reason), session_id=session_id, run=run)

    def _end_task(self, task_id: TaskId, after: TaskStatus, attempt: AttemptId) -> None:
        query = select(t.tasks.c.attempt).where(t.tasks.c.workflow_id == self.workflow_id, t.tasks.c.id == task_id)
        if self.connection.execute(query).scalar_one() != attempt:
            raise WrongState(f"Task {task_id!r} belongs to another attempt.")
        self._task(task_id, {TaskStatus.IN_PROGRESS}, after, None)

    def _task(
        self, task_id: TaskId, before: Collection[TaskStatus], after: TaskStatus, attempt: AttemptId | None
    ) -> None:
        query = (
            update(t.tasks)
            .where(t.tasks.c.workflow_id == self.workflow_id, t.tasks.c.id == task_id, t.tasks.c.status.in_(before))
            .values(status=after, attempt=attempt)
        )
        if self.connection.execute(query).rowcount != 1:
            raise WrongState(f"Task {task_id!r} cannot become {after} now.")

    # ── prompts and questions ───────────────────────────────────────────────────────────────────────

    def queue_prompt(
        self, prompt: e.PromptQueued, session_id: SessionId, run: int | None, shown: Sequence[Shown] = ()
    ) -> None:
        """Without a run it waits for the next one that can take it. What was shown before need not be given again."""
        for picture, each in zip(prompt.pictures, shown, strict=False):
            self._keep(picture.sha256, each.data)
        row = {
            "id": prompt.prompt_id,
            "workflow_id": self.workflow_id,
            "session_id": session_id,
            "run": run,
            "task_id": prompt.task_id,
            "status": PromptStatus.QUEUED,
            "seq": self.append(prompt, session_id=session_id, run=run),
            "carries": False,
        }
        self.connection.execute(insert(t.prompts), row)

    def _keep(self, sha256: str, data: bytes) -> None:
        row = {"workflow_id": self.workflow_id, "sha256": sha256}
        if self.connection.execute(select(t.pictures.c.sha256).filter_by(**row)).first() is None:
            self.connection.execute(insert(t.pictures), {**row, "data": data})

    def take_message(self, message: rows.PromptRow, session_id: SessionId, run: int) -> e.PromptQueued:
        """What somebody said becomes this run's next prompt."""
        self._prompt(message.id, session_id=session_id, run=run)
        return queued_prompt(self.connection, message.id)

    def return_message(self, message: rows.PromptRow) -> None:
        """It never left, so it waits again."""
        self._prompt(message.id, run=None, carries=False)

    def carry(self, carried: e.ContextCarried, session_id: SessionId, run: int) -> None:
        """The prompt takes along what was said before the session; the session knows it when the prompt arrived."""
        self._prompt(carried.prompt_id, carries=True)
        self.append(carried, session_id=session_id, run=run)

    def move_prompt(
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
        """`understood`: what the prompt carries has reached the conversation, and not only the program.

        `reason`: why it is not sent at all. `part_of`: the prompt that it is sent with.
        """
        before, event = _PROMPT_MOVES[after]
        if not self._prompt(prompt_id, t.prompts.c.status == before, status=after):
            raise WrongState(f"Prompt {prompt_id} cannot become {after} now.")
        told = e.PromptNotSent(prompt_id=prompt_id, reason=reason) if reason else event(prompt_id=prompt_id)
        if part_of is not None:
            told = e.PromptSent(prompt_id=prompt_id, part_of=part_of)
        self.append(told, session_id=session_id, run=run)
        if after is PromptStatus.ACKNOWLEDGED and understood and rows.prompt_by_id(self.connection, prompt_id).carries:
            self.carried(session_id)

    def _prompt(self, prompt_id: PromptId, *conditions: ColumnElement[bool], **values: Any) -> bool:
        query = update(t.prompts).where(t.prompts.c.id == prompt_id, *conditions).values(**values)
        return self.connection.execute(query).rowcount == 1

    def ask(self, question: e.PermissionRequested, session_id: SessionId, run: int | None, deadline: datetime) -> None:
        seq = self.append(question, session_id=session_id, run=run)
        row = {
            "id": question.request_id,
            "workflow_id": self.workflow_id,
            "session_id": session_id,
            "seq": seq,
            "title": redact_text(question.title),
            "deadline": deadline,
        }
        self.connection.execute(insert(t.questions), row)

    def answer(self, answer: e.PermissionAnswered, session_id: SessionId, run: int | None) -> bool:
        """The first answer wins; false when there was one already."""
        query = (
            update(t.questions)
            .where(t.questions.c.id == answer.request_id, t.questions.c.outcome.is_(None))
            .values(outcome=answer.outcome)
        )
        if self.connection.execute(query).rowcount != 1:
            return False
        self.append(answer, session_id=session_id, run=run)
        return True

    # ── checkpoints ─────────────────────────────────────────────────────────────────────────────────

    def next_checkpoint_id(self, kind: CheckpointType | None = None) -> CheckpointId:
        return checkpoint_id(self.now, self._next_number(kind))

    def _next_number(self, kind: CheckpointType | None) -> int:
        """The start is no step on the way, and is counted as none."""
        return 0 if kind is CheckpointType.START else self.workflow.checkpoint_count + 1

    def save_checkpoint(self, checkpoint: Checkpoint, run: int | None) -> None:
        number = self._next_number(checkpoint.type)
        document = redact(encode_checkpoint(checkpoint))
        self._workflow(checkpoint_count=number)
        row = {
            "workflow_id": self.workflow_id,
            "id": checkpoint.id,
            "number": number,
            "session_id": checkpoint.session_id,
            "type": checkpoint.type,
            "trigger": checkpoint.trigger,
            "snapshot": checkpoint.snapshot,
            "created_at": checkpoint.created_at,
            "document": document.decode(),
            "hash": hashlib.sha256(document).hexdigest(),
        }
        self.connection.execute(insert(t.checkpoints), row)
        created = e.CheckpointCreated(
            checkpoint_id=checkpoint.id,
            type=checkpoint.type,
            snapshot=checkpoint.snapshot,
            clean_boundary=checkpoint.clean_boundary,
            commit=checkpoint.commit,
            after=checkpoint.after,
        )
        self.append(created, session_id=checkpoint.session_id, run=run)

    def study(self, findings: Findings, session_id: SessionId) -> None:
        """What a second look at a snapshot found; a later look replaces an earlier one."""
        document = redact(encode_findings(findings)).decode()
        mine = (t.checkpoints.c.workflow_id == self.workflow_id, t.checkpoints.c.id == findings.checkpoint_id)
        self.connection.execute(update(t.checkpoints).where(*mine).values(findings=document))
        self.append(e.SnapshotStudied(findings=findings), session_id=session_id)

    def imported(self, imported: e.SessionImported, session_id: SessionId, token: str | None) -> None:
        """Written once for each content: the second transaction that tries fails as a whole."""
        row = {
            "sha256": imported.sha256,
            "workflow_id": self.workflow_id,
            "conversation": imported.conversation,
            "file": imported.file,
            "imported_at": self.now,
        }
        self.connection.execute(insert(t.imports), row)
        self.append(imported, session_id=session_id)
        if token is not None:
            self._runtime(session_id, token=token)
            self.append(e.TokenCaptured(token=token), session_id=session_id)


_PROMPT_MOVES: dict[PromptStatus, tuple[PromptStatus, type[e.PromptSent | e.PromptAcknowledged | e.PromptNotSent]]] = {
    PromptStatus.SENT: (PromptStatus.QUEUED, e.PromptSent),
    PromptStatus.ACKNOWLEDGED: (PromptStatus.SENT, e.PromptAcknowledged),
    PromptStatus.NOT_SENT: (PromptStatus.QUEUED, e.PromptNotSent),
}


def _task_rows(new: NewWorkflowRow) -> list[dict[str, Any]]:
    stood = new.forked_from.tasks if new.forked_from else {}
    return [
        {
            "workflow_id": new.id,
            "id": task.id,
            "position": position,
            "status": stood.get(task.id, TaskStatus.PENDING),
        }
        for position, task in enumerate(new.plan.tasks if new.plan else ())
    ]


def _collision(error: IntegrityError, new: NewWorkflowRow) -> SegueError:
    if "worktree" in str(error.orig):
        return WorktreeInUse(
            f"Another workflow is at work in {new.worktree}.",
            hint="Finish or cancel it (`segue status`), or run without --here to get a worktree of its own.",
        )
    return WrongState("Two workflows were given the same name at the same moment.", hint="Try again.")
