"""The limits of a workflow, kept while an agent is at work on it."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Never

import anyio

from segue.model.accounts import Account
from segue.model.agents import Limits
from segue.model.bounds import LONGEST, MOST
from segue.model.errors import BadInput, WrongState
from segue.model.status import Purpose, Trigger
from segue.orchestrator.run.lease import Lease
from segue.orchestrator.run.spending import budget_of, limits_of, spent, spent_of
from segue.orchestrator.runtime.concurrency import cancelled_by
from segue.orchestrator.runtime.services import sleep_until
from segue.orchestrator.settling.run_ends import End
from segue.protocol.budgets import LimitReached, exceeded, unmeasured
from segue.state.fold import WorkflowState


class Allowance:
    """Limits of one run, checked at each boundary; the time limit also interrupts a task."""

    def __init__(self, lease: Lease) -> None:
        """Begin with the limits that the claimed workflow has; no warning was given yet."""
        self._lease = lease
        self._services = lease.services
        self._limits = limits_of(lease.workflow)
        self._warned = False
        self.has_worked = False
        """The agent has finished a task in this run."""

    def cannot_be_kept(self, state: WorkflowState) -> str | None:
        """Return a warning if a limit cannot be measured by the usage that agents report; None if all can be, before
        the first finished task of the run, and after the first check since."""
        if self._warned or not self.has_worked:
            return None
        self._warned = True
        return unmeasured(budget_of(self._limits), spent_of(state, self._services.clock.now()))

    def allow(self, limits: Limits) -> None:
        """Use these limits from now on, in the spending meter too; nothing is written."""
        self._limits = limits
        self._lease.meter.allow(limits)

    def used_up(self, state: WorkflowState) -> LimitReached | None:
        """Return the limit that the work has used up by now, of tokens, money, time or tasks, else None."""
        now = self._services.clock.now()
        used = spent(self._lease.meter.used, state.working_since or now, state.done_since)
        return exceeded(budget_of(self._limits), used, now)

    def passed_over(self, end: End) -> str | None:
        """Return a warning if the tokens or money are used up but the run ends for another reason; None otherwise,
        and after a chat."""
        stopping = self._lease.meter.empty(self._services.clock.now())
        return stopping.reason if stopping and stopping.trigger is not end.trigger and not end.talked else None

    async def time_out(self) -> None:
        """Pause the work when its time is over, as on a person's request: at the boundary, and by force after a while.

        The time is computed again whenever the limits or the purpose of the run change.
        """
        while True:
            # Before they are read: what changes after that is not overlooked.
            self._lease.live.terms = changed = anyio.Event()
            if (over := await self._over_at()) is not None:
                async with cancelled_by(changed):
                    await sleep_until(self._services.clock, over)
                if not changed.is_set():
                    await self._pause()
            await changed.wait()

    async def _over_at(self) -> datetime | None:
        """Read the limits again and return when the time is over; None without a time limit or while the run is only
        a chat."""
        journal = self._services.journal
        self.allow(limits_of(await journal.workflows.get(self._lease.workflow_id)))
        if not self._limits.seconds:
            return None
        run = await journal.runs.get(self._lease.session_id, self._lease.number)
        if run.purpose is not Purpose.WORK:
            return None
        state = await journal.state(self._lease.workflow_id)
        return (state.working_since or self._services.clock.now()) + timedelta(seconds=self._limits.seconds)

    async def _pause(self) -> None:
        """Request a pause of the run, forced later, if the time limit is really over; else do nothing."""
        state, now = await self._services.journal.state(self._lease.workflow_id), self._services.clock.now()
        if (stopping := time_over(self._limits, state, now)) is not None:
            force_at = now + timedelta(seconds=self._services.rules.pause_force_after)
            await self._lease.request_pause(stopping.trigger, stopping.reason, force_at)


MOSTS: Mapping[str, float] = {"tasks": MOST, "seconds": LONGEST, "tokens": MOST, "usd": MOST}


def refuse_unlimited(limits: Limits) -> None:
    """Raise BadInput for the first given limit that is not a number from 0 to its maximum; None counts as not given."""
    for name, value in asdict(limits).items():
        if value is not None and not 0 <= value <= MOSTS[name]:
            hint = f"Give a number from 0, which is no limit, to {MOSTS[name]:.13g}."
            raise BadInput(f"{value} is no limit of {name}.", hint=hint)


def changed(before: Limits, given: Limits) -> Limits:
    """Return the limits with the given ones in their place; None leaves one as it is, 0 lifts it."""
    news = {name: value for name, value in asdict(given).items() if value is not None}
    return replace(before, **news)


def used_up(limits: Limits, state: WorkflowState, now: datetime) -> LimitReached | None:
    """Return the limit of tokens or money that is still used up, so that resumed work would stop at once, else None."""
    lasting = budget_of(replace(limits, tasks=None, seconds=None))
    return exceeded(lasting, spent_of(state, now), now)


def time_over(limits: Limits, state: WorkflowState, now: datetime) -> LimitReached | None:
    """Return the time limit if it is over, whatever else is used up; None if it is not, or there is none."""
    return exceeded(budget_of(Limits(seconds=limits.seconds)), spent(Account(), state.working_since or now), now)


def may_go_on(pause: Trigger | None, limits: Limits, state: WorkflowState, now: datetime, *, room: bool) -> bool:
    """Return True if a pause for time or context has lost its reason: room in the context, and no time, tokens or
    money used up. False for every other pause."""
    if pause not in (Trigger.TIMEOUT, Trigger.EXHAUSTION) or not room:
        return False
    return time_over(limits, state, now) is None and used_up(limits, state, now) is None


def refuse_used_up(stopping: LimitReached) -> Never:
    """Raise WrongState with the limit's reason and the options that raise it."""
    raise WrongState(stopping.reason, hint="Let it use more: segue resume --max-tokens N, or --max-cost N.")
