"""The limits of a workflow, kept while an agent is at work on it."""

from datetime import datetime, timedelta

from segue.model.agents import Choices, Limits
from segue.model.codec import decode
from segue.model.status import Trigger
from segue.orchestrator.tenure import Tenure
from segue.protocol.budgets import Budget, Spent, Stopping, exceeded
from segue.state.fold import WorkflowState


class Allowance:
    """What one run may use. At a boundary it says whether to stop; the time runs out in the middle of a task too."""

    def __init__(self, tenure: Tenure) -> None:
        self._tenure = tenure
        self._house = tenure.house
        self._limits = decode(Choices, tenure.workflow.choices).limits
        self._tasks = 0

    def task_done(self) -> None:
        self._tasks += 1

    def used_up(self, state: WorkflowState) -> Stopping | None:
        now = self._house.clock.now()
        return exceeded(budget_of(self._limits), spent_of(state, now, self._tasks), now)

    async def time_out(self) -> None:
        """When the time is over, the work is paused like by a person: at the boundary, and by force after a while."""
        if self._limits.seconds is None:
            return
        state = await self._house.journal.state(self._tenure.workflow_id)
        now = self._house.clock.now()
        over = (state.working_since or now) + timedelta(seconds=self._limits.seconds)
        await self._house.clock.sleep(max(0.0, (over - now).total_seconds()))
        stopping = self.used_up(await self._house.journal.state(self._tenure.workflow_id))
        reason = stopping.reason if stopping else "the time is over"
        force_at = self._house.clock.now() + timedelta(seconds=self._house.rules.pause_force_after)
        await self._tenure.request_pause(Trigger.TIMEOUT, reason, force_at)


def budget_of(limits: Limits) -> Budget:
    timeout = timedelta(seconds=limits.seconds) if limits.seconds is not None else None
    return Budget(tokens=limits.tokens, usd=limits.usd, timeout=timeout, tasks=limits.tasks)


def spent_of(state: WorkflowState, now: datetime, tasks: int = 0) -> Spent:
    usage = state.usage
    return Spent(
        since=state.working_since or now,
        tokens=usage.input_tokens + usage.output_tokens or None,
        usd=usage.cost_usd,
        tasks=tasks,
    )
