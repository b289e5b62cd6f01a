"""Spending of a workflow, and its budget."""

from dataclasses import replace
from datetime import datetime, timedelta

from segue.journal.rows import WorkflowRow
from segue.model.accounts import Account
from segue.model.agents import Choices, Limits
from segue.model.codec import decode
from segue.model.events import UsageReported
from segue.model.ids import SessionId
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.settling.run_ends import RunStopped
from segue.protocol.accounts import session_account, sessions_of, total
from segue.protocol.budgets import Budget, LimitReached, Spent, exceeded
from segue.state.fold import SessionState, WorkflowState
from segue.state.session import reported


class SpendingMeter:
    """Meter of the tokens and the money of all sessions of a workflow, from their usage reports."""

    def __init__(self, writer: SessionId) -> None:
        """Begin without a budget and with nothing used."""
        self._writer = writer
        self._budget = Budget()
        self._others = Account()
        """Usage of the sessions that report nothing more."""
        self._reported: dict[SessionId, SessionState] = {}
        """The writer, and the last helper."""
        self.used = Account()

    def fill(self, limits: Limits, state: WorkflowState) -> None:
        """Set the limits, and start from the usage of all sessions in the state."""
        self.allow(limits)
        self._reported = {self._writer: state.sessions[self._writer]}
        self._others = total(each.account for each in sessions_of(state) if each.session_id != self._writer)
        self._sum_up()

    def allow(self, limits: Limits) -> None:
        """Set the budget of tokens and money; limits of tasks and time are not measured here."""
        self._budget = replace(budget_of(limits), tasks=None, timeout=None)

    def add(self, session_id: SessionId, report: UsageReported, now: datetime) -> None:
        """Count the usage report of the writer or a helper in `used`."""
        if session_id not in self._reported:
            # Helpers work one after the other, so this one's predecessor reports nothing more.
            for helper in set(self._reported) - {self._writer}:
                ended = session_account(helper, self._reported.pop(helper))
                self._others = total((self._others, ended.account))
        before = self._reported.get(session_id) or SessionState(number=0, agent="", parent=self._writer)
        self._reported[session_id] = reported(before, report, now.date())
        self._sum_up()

    def empty(self, now: datetime) -> LimitReached | None:
        """Return the budget of tokens or money that is used up, else None."""
        return exceeded(self._budget, spent(self.used, now), now)

    def pay_for_a_turn(self, now: datetime) -> None:
        """Raise RunStopped if the budget is used up, before a turn that only Segue asks for; else do nothing."""
        if (stopping := self.empty(now)) is not None:
            raise RunStopped(Stop(trigger=stopping.trigger, reason=stopping.reason))

    def _sum_up(self) -> None:
        """Compute `used` again from the writer, the last helper and the sessions that ended."""
        accounts = [session_account(session_id, session).account for session_id, session in self._reported.items()]
        self.used = total((self._others, *accounts))


def limits_of(row: WorkflowRow) -> Limits:
    """Return the limits among the workflow's stored choices."""
    return decode(Choices, row.choices).limits


def budget_of(limits: Limits) -> Budget:
    """Convert limits to a budget; 0 becomes None, no limit."""
    timeout = timedelta(seconds=limits.seconds) if limits.seconds else None
    return Budget(tokens=limits.tokens or None, usd=limits.usd or None, timeout=timeout, tasks=limits.tasks or None)


def spent_of(state: WorkflowState, now: datetime) -> Spent:
    """Return the spending of all sessions of the state, since its work began or from now."""
    return spent(total(each.account for each in sessions_of(state)), state.working_since or now, state.done_since)


def spent(used: Account, since: datetime, tasks: int = 0) -> Spent:
    """Build the spending from an account; tokens are input and output together, None if there are none."""
    return Spent(
        since=since,
        tokens=(used.input_tokens or 0) + (used.output_tokens or 0) or None,
        usd=used.cost_usd,
        estimated=used.cost_source == "estimated",
        complete=used.complete,
        tasks=tasks,
    )
