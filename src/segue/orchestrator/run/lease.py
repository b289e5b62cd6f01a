"""One physical try at a run, and the fence that everything it writes has to pass."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import anyio

from segue.journal import Transaction
from segue.journal.rows import RunRow, SessionRow, WorkflowRow
from segue.model.crash import crash_point
from segue.model.errors import WrongState
from segue.model.events import UsageReported
from segue.model.ids import AttemptId, SessionId, new_attempt_id
from segue.model.status import Purpose, SessionStatus, Trigger, WaitingFor, WorkflowStatus
from segue.orchestrator.run.spending import SpendingMeter
from segue.orchestrator.runtime.run_handle import RunHandle
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling.recovery import checkpoint_ref
from segue.snapshot.gather import Workspace, gather
from segue.state.fold import WorkflowState
from segue.state.moves import WORKFLOW_ENDED
from segue.state.pauses import RequestedPause
from segue.workspace.worktrees import stands

T = TypeVar("T")


class Superseded(WrongState):
    """The run was ended elsewhere: by a cancel, by the sweep, or by another process."""


class Lease:
    """Ownership of a run by one attempt, from its claim to its end."""

    def __init__(
        self,
        services: RuntimeServices,
        live: RunHandle,
        workflow: WorkflowRow,
        session: SessionRow,
        number: int,
        token: str | None,
    ) -> None:
        """Prepare one attempt at a run; fail if the session's agent is not configured any more. `token` is the
        agent's own id of the conversation."""
        self.services = services
        self.live = live
        self.workflow = workflow
        """The workflow as it was when the run was claimed."""
        self.workflow_id = workflow.id
        self.session_id = session.id
        self.number = number
        self.agent = session.agent
        # An agent that is not configured any more is noticed here, before the run is claimed.
        self.configuration = services.agents[session.agent]
        self.attempt: AttemptId = new_attempt_id()
        self.has_worktree = workflow.base is not None and stands(Path(workflow.worktree))
        self.token = token
        """The agent's own id of the conversation, as far as it is known."""
        self.meter = SpendingMeter(session.id)

    async def write(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Commit a transaction while this attempt owns the run, shielded from cancellation, between the crash points
        NAME.before and NAME.after; return its result."""
        crash_point(f"{name}.before")
        with anyio.CancelScope(shield=True):
            result = await self.transact(work)
            crash_point(f"{name}.after")
            return result
        raise AssertionError("a shielded scope swallows nothing")

    async def transact(self, work: Callable[[Transaction], T]) -> T:
        """Commit a transaction and return its result; raise Superseded, with nothing written, if this attempt does
        not own the run any more or its workflow was stopped."""

        def fenced(t: Transaction) -> T:
            run = t.runs.held(self.session_id, self.number, self.attempt)
            # Work needs a workflow in progress, a chat one that is not over.
            status = t.workflow.status
            work_stopped = status is not WorkflowStatus.IN_PROGRESS
            if run is None or (work_stopped if run.purpose is Purpose.WORK else status in WORKFLOW_ENDED):
                raise Superseded
            return work(t)

        return await self.services.journal.transact(self.workflow_id, fenced)

    def purpose(self, t: Transaction) -> Purpose:
        """Return the present purpose of the run, inside a transaction of this lease."""
        return t.runs.get(self.session_id, self.number).purpose

    def move(
        self, t: Transaction, after: SessionStatus, *, reason: str = "", waiting_for: WaitingFor | None = None
    ) -> None:
        """Move the lease's session to another status, inside a transaction."""
        t.sessions.move(self.session_id, after, run=self.number, reason=reason, waiting_for=waiting_for)

    async def request_pause(self, trigger: Trigger, reason: str, force_at: datetime) -> None:
        """Write a request to pause this run at its next boundary, by force at `force_at`, and signal it; a run that
        is only a chat gets no request."""

        def request(t: Transaction) -> None:
            if self.purpose(t) is Purpose.WORK:
                t.request_pause(RequestedPause(trigger=trigger, reason=reason, force_at=force_at))

        await self.transact(request)
        self.live.pause.set()

    async def spend(self, session_id: SessionId, report: UsageReported) -> None:
        """Count a usage report of the writer or a helper; request a pause if a budget is used up by it."""
        now = self.services.clock.now()
        empty_before = self.meter.empty(now)
        self.meter.add(session_id, report, now)
        if empty_before is None and (stopping := self.meter.empty(now)) is not None:
            force_at = now + timedelta(seconds=self.services.rules.pause_force_after)
            await self.request_pause(stopping.trigger, stopping.reason, force_at)

    def pay_for_a_turn(self) -> None:
        """Raise RunStopped if the budget leaves nothing for a turn that only Segue asks for."""
        self.meter.pay_for_a_turn(self.services.clock.now())

    async def gather(self) -> tuple[WorkflowState, Workspace]:
        """Return the journal's state and the worktree's state, with the files saved under the workflow's hidden ref."""
        state = await self.services.journal.state(self.workflow_id)
        workspace = await gather(state.worktree, checkpoint_ref(self.workflow_id, state), state.base)
        crash_point("checkpoint.saved")
        return state, workspace


async def claim(services: RuntimeServices, live: RunHandle, run: RunRow) -> Lease | None:
    """Claim a queued run for a new attempt and move its pending workflow on; return its lease, or None if it was
    settled meanwhile."""

    def take(t: Transaction) -> Lease | None:
        workflow, session = t.workflow, t.sessions.get(run.session_id)
        lease = Lease(services, live, workflow, session, run.number, t.runtimes.get(session.id).token)
        if not t.runs.claim(session.id, run.number, lease.attempt, services.boot):
            return None
        if workflow.status is WorkflowStatus.PENDING:
            t.move_workflow(WorkflowStatus.IN_PROGRESS)
        if lease.has_worktree:
            # Nothing but the agent has to be waited for.
            lease.move(t, SessionStatus.STARTING)
        return lease

    return await services.journal.transact(run.workflow_id, take)
