"""The limits of a workflow, kept while an agent is at work on it."""

from dataclasses import asdict, replace
from datetime import datetime, timedelta
from math import inf
from typing import Never

from segue.journal.rows import WorkflowRow
from segue.model.agents import Choices, Limits
from segue.model.codec import decode
from segue.model.errors import BadInput, WrongState
from segue.model.status import Trigger
from segue.orchestrator.house import sleep_until
from segue.orchestrator.tenure import Tenure
from segue.protocol.accounts import sessions_of, total
from segue.protocol.budgets import Budget, Spent, Stopping, exceeded, unmeasured
from segue.state.fold import WorkflowState


class Allowance:
    """What one run may use. At a boundary it says whether to stop; the time runs out in the middle of a task too."""

    def __init__(self, tenure: Tenure) -> None:
        self._tenure = tenure
        self._house = tenure.house
        self._limits = limits_of(tenure.workflow)
        self._worked = False
        self._said = False

    def task_done(self) -> None:
        self._worked = True

    def cannot_be_kept(self, state: WorkflowState) -> str | None:
        """A sentence, once, when the agent has worked and nobody reported what a limit is about."""
        if self._said or not self._worked:
            return None
        self._said = True
        return unmeasured(budget_of(self._limits), spent_of(state, self._house.clock.now()))

    def used_up(self, state: WorkflowState) -> Stopping | None:
        now = self._house.clock.now()
        return exceeded(budget_of(self._limits), spent_of(state, now), now)

    async def time_out(self) -> None:
        """When the time is over, the work is paused like by a person: at the boundary, and by force after a while."""
        if not self._limits.seconds:
            return
        state = await self._house.journal.state(self._tenure.workflow_id)
        now = self._house.clock.now()
        over = (state.working_since or now) + timedelta(seconds=self._limits.seconds)
        await sleep_until(self._house.clock, over)
        stopping = self.used_up(await self._house.journal.state(self._tenure.workflow_id))
        reason = stopping.reason if stopping else "the time is over"
        force_at = self._house.clock.now() + timedelta(seconds=self._house.rules.pause_force_after)
        await self._tenure.request_pause(Trigger.TIMEOUT, reason, force_at)


def limits_of(row: WorkflowRow) -> Limits:
    return decode(Choices, row.choices).limits


def refuse_unlimited(limits: Limits) -> None:
    for name, value in asdict(limits).items():
        if value is not None and not 0 <= value < inf:
            raise BadInput(f"{value} is no limit of {name}.", hint="Give a number above 0, or 0 for no limit.")


def changed(before: Limits, given: Limits) -> Limits:
    """The limits with those that were given in their place; 0 lifts one."""
    news = {name: value for name, value in asdict(given).items() if value is not None}
    return replace(before, **news)


def used_up(limits: Limits, state: WorkflowState, now: datetime) -> Stopping | None:
    """What is used up stays used up, and the work would stop again at once."""
    lasting = budget_of(replace(limits, tasks=None, seconds=None))
    return exceeded(lasting, spent_of(state, now), now)


def refuse_used_up(stopping: Stopping) -> Never:
    raise WrongState(stopping.reason, hint="Let it use more: segue resume --max-tokens N, or --max-cost N.")


def budget_of(limits: Limits) -> Budget:
    timeout = timedelta(seconds=limits.seconds) if limits.seconds else None
    return Budget(tokens=limits.tokens or None, usd=limits.usd or None, timeout=timeout, tasks=limits.tasks or None)


def spent_of(state: WorkflowState, now: datetime) -> Spent:
    used = total(session.account for session in sessions_of(state))
    return Spent(
        since=state.working_since or now,
        tokens=(used.input_tokens or 0) + (used.output_tokens or 0) or None,
        usd=used.cost_usd,
        estimated=used.cost_source == "estimated",
        complete=used.complete,
        tasks=state.done_since,
    )
