"""Retry schedule: what follows a failed step, journalled with the end of its run."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from segue.journal import Transaction
from segue.journal.rows import RunRow, WorkflowRow
from segue.model.agents import Choices
from segue.model.codec import decode
from segue.model.events import FixerAdvised, RetryScheduled, StepFailed
from segue.model.ids import SessionId
from segue.model.plan import PLANNING
from segue.model.status import Failure, Trigger, WorkflowStatus
from segue.orchestrator.runtime.agents import fixer_of
from segue.orchestrator.runtime.services import RuntimeServices
from segue.orchestrator.settling.run_ends import End
from segue.protocol.retries import AskPerson, Fixer, Retry, RetryPolicy, Undo, Wait, WorkFailure, next_step
from segue.state.fold import FailedAttempt, WorkflowState

START = "start"
"""Step of an agent that failed while it only answered a message."""
RESTART = "restart"
"""The step that fails when the server dies under the work."""
TALK = "talk"
"""Step of an agent that failed while it only answered a message."""


BY_SETTING = "the server was started anew, and the setting `recovery` says that the work goes on"
TOO_OFTEN = "the server was stopped in the middle of the work again and again, so a person has to look"


def step_of(state: WorkflowState, *, reached: bool) -> str:
    """Return the step that was being tried: the start if the agent was not reached, else the current task, the
    planning or a chat."""
    if not reached:
        return START
    return state.current_task or (PLANNING if state.planning is not None else TALK)


def policy_for(services: RuntimeServices, row: WorkflowRow) -> RetryPolicy:
    """Return the retry policy of the settings, with the workflow's choice about waiting for a quota."""
    return replace(services.rules.retries, wait_for_quota=decode(Choices, row.choices).wait_for_quota)


def what_follows(
    services: RuntimeServices, row: WorkflowRow, state: WorkflowState, failed: FailedAttempt
) -> RetryScheduled | None:
    """Return the retry that follows the failure by itself; None if a pause was requested or a person has to decide.
    Nothing is written."""
    if row.pause_trigger is not None:
        return None
    failures = (*state.failures, failed)
    policy = policy_for(services, row)
    attempt = 1 + sum(each.step == failed.step for each in failures)
    following = next_step(policy, failures, failed.at, services.chance())
    retry = RetryScheduled(step=failed.step, attempt=attempt, of=policy.attempts, at=failed.at, reason=failed.reason)
    match following:
        case Retry(at=at, attempt=attempt, of=of, undo=undo):
            reason = BY_SETTING if failed.step == RESTART else failed.reason
            return replace(retry, at=at, attempt=attempt, of=of, reason=reason, rewind=undo is Undo.REWIND)
        case Wait(until=until, reason=reason):
            return replace(retry, of=max(attempt, policy.attempts), at=until, reason=reason)
        case Fixer() if _may_be_helped(services, row, failed.step):
            return replace(retry, of=max(attempt, policy.attempts), fixer=True)
        case Fixer() | AskPerson():
            return None


def cut_short(services: RuntimeServices, row: WorkflowRow, run: RunRow, now: datetime) -> FailedAttempt | None:
    """Return a failed step for work that a dead server left, if recovery is "continue"; None otherwise."""
    wanted = services.rules.recovery == "continue" and row.pause_trigger is None
    if not wanted or run.boot == services.boot or row.status is not WorkflowStatus.IN_PROGRESS:
        return None
    return FailedAttempt(step=RESTART, what=WorkFailure.SERVER_DIED, reason="the server died", at=now)


def to_be_advised_on(services: RuntimeServices, row: WorkflowRow, state: WorkflowState) -> Sequence[FailedAttempt]:
    """Return the failures that a second agent is asked about before the next try; empty if none is asked or it has
    advised already."""
    failures = list(state.failures)
    while failures and failures[-1].what in (Failure.QUOTA, WorkFailure.SERVER_DIED):
        # The quota is over, and perhaps it stopped the fixer; the failures before it still count.
        failures.pop()
    if not failures or (state.advice is not None and state.advice.step == failures[-1].step):
        return ()
    last = failures[-1]
    following = next_step(policy_for(services, row), failures, last.at, chance=0)
    return failures if isinstance(following, Fixer) and _may_be_helped(services, row, last.step) else ()


def until_full(services: RuntimeServices, row: WorkflowRow, state: WorkflowState) -> RetryScheduled | None:
    """Return the retry at the reset of a used-up quota; None if the last failure was another, or the time is unknown
    or over."""
    if state.failures:
        policy = replace(policy_for(services, row), wait_for_quota=True, attempts=2)
        match next_step(policy, state.failures[-1:], (now := services.clock.now()), chance=0):
            case Wait(until=until, reason=reason) if until > now:
                step = state.failures[-1].step
                attempt = 1 + sum(each.step == step for each in state.failures)
                of = max(attempt, services.rules.retries.attempts)
                return RetryScheduled(step=step, attempt=attempt, of=of, at=until, reason=reason)
            case _:
                pass
    return None


def start_over(step: str, reason: str, now: datetime) -> End:
    """Build the end of a run that pauses and at once undoes the step and plans the rest again."""
    retry = RetryScheduled(step=step, attempt=1, of=1, at=now, reason=reason, rewind=True)
    return End(WorkflowStatus.PAUSED, reason, Trigger.CRASH, retry=retry)


def start_over_as_advised(advice: FixerAdvised, now: datetime) -> End:
    """Build the end of a run that starts the advised step over, for the fixer's reason."""
    # Its words stand in places where everything else is a reason of Segue's own.
    reason = f"the fixer advises: {advice.advice}" if advice.advice else "the fixer advises it"
    return start_over(advice.step, reason, now)


def _may_be_helped(services: RuntimeServices, row: WorkflowRow, step: str) -> bool:
    """Return True if a fixer is available and the step is not the start of the agent."""
    return step != START and fixer_of(services, row) is not None


def append_failure(
    t: Transaction, session_id: SessionId, run: int, failed: FailedAttempt, retry: RetryScheduled | None
) -> None:
    """Write the failed step, and the retry if there is one."""
    event = StepFailed(step=failed.step, what=failed.what, reason=failed.reason, reset_at=failed.reset_at)
    t.append(event, session_id=session_id, run=run)
    if retry is not None:
        t.schedule_retry(retry, session_id, run)
