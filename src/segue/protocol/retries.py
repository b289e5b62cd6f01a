"""Decision about what follows a failure: one rule for each class of failures, as a table.

A step is anything that is attempted as a whole: a task, the plan, a start. Its failures count until it succeeds. The
caller journals each retry, so that it can be shown, cancelled, and found again after a restart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile

from segue.model.status import Failure
from segue.protocol.durations import duration
from segue.state.fold import FailedAttempt


class FailureClass(StrEnum):
    """Class of failures; `MEANINGS` describes each in a sentence."""

    TRANSIENT = "transient"
    TEST_FAILURE = "test_failure"
    RESOURCE = "resource"
    LOGIC_ERROR = "logic_error"
    PERSISTENT = "persistent"


class WorkFailure(StrEnum):
    """Failure of a step although the agent itself worked."""

    TESTS_FAILED = "tests_failed"
    WRONG_APPROACH = "wrong_approach"
    """A reviewer, the fixer or a person rejects the approach."""
    REVIEW_NOT_PASSED = "review_not_passed"
    """The last permitted review found problems."""
    SERVER_DIED = "server_died"
    """The server was killed during the step."""


class Undo(StrEnum):
    """Part of the work that is undone before the next attempt."""

    NOTHING = "nothing"
    REWIND = "rewind"
    """The worktree returns to the last checkpoint, and the remaining tasks are planned again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRule:
    """Rule for one class of failures."""

    retried: bool = True
    undo: Undo = Undo.NOTHING
    fixer: bool = True
    """True if the fixer is asked before a person is, when all attempts have failed."""


RULES: Mapping[FailureClass, RetryRule] = {
    FailureClass.TRANSIENT: RetryRule(),
    FailureClass.TEST_FAILURE: RetryRule(),
    # Immediate retries would make it worse: see `_after_quota`.
    FailureClass.RESOURCE: RetryRule(retried=False, fixer=False),
    FailureClass.LOGIC_ERROR: RetryRule(undo=Undo.REWIND),
    FailureClass.PERSISTENT: RetryRule(retried=False, fixer=False),
}

CLASSES: Mapping[str, FailureClass] = {
    Failure.TOKEN_REJECTED: FailureClass.PERSISTENT,
    Failure.OTHER_CONVERSATION: FailureClass.PERSISTENT,
    Failure.TRANSCRIPT_CORRUPT: FailureClass.PERSISTENT,
    Failure.TRANSPORT_LOST: FailureClass.TRANSIENT,
    Failure.PROCESS_EXITED: FailureClass.TRANSIENT,
    Failure.HANDSHAKE_TIMEOUT: FailureClass.TRANSIENT,
    Failure.HANDSHAKE_FAILED: FailureClass.PERSISTENT,
    Failure.QUOTA: FailureClass.RESOURCE,
    Failure.LOGIN_REQUIRED: FailureClass.PERSISTENT,
    Failure.NOT_RESTORED: FailureClass.PERSISTENT,
    Failure.WORKTREE_MISSING: FailureClass.PERSISTENT,
    Failure.PROGRAM_MISSING: FailureClass.PERSISTENT,
    Failure.NEVER_ANSWERED: FailureClass.TRANSIENT,
    Failure.OTHER: FailureClass.TRANSIENT,
    WorkFailure.TESTS_FAILED: FailureClass.TEST_FAILURE,
    WorkFailure.WRONG_APPROACH: FailureClass.LOGIC_ERROR,
    WorkFailure.REVIEW_NOT_PASSED: FailureClass.PERSISTENT,
    WorkFailure.SERVER_DIED: FailureClass.TRANSIENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Numbers and choices of the user."""

    attempts: int = 3
    """Attempts at a step before the fixer, or a person, is asked; with one, a person is asked at once."""
    first: timedelta = timedelta(seconds=1)
    """Wait before the first retry."""
    longest: timedelta = timedelta(seconds=60)
    """Maximum wait before a retry."""
    quick_failures: int = 3
    quick_within: timedelta = timedelta(seconds=60)
    """Time in which this number of consecutive failures of the agent, at any steps, leads to a person instead of the
    fixer."""
    deaths: int = 3
    """Number of deaths of the server, with no progress in between, after which a person is asked: the work may be what
    kills it."""
    fixer_time: timedelta = timedelta(minutes=10)
    wait_for_quota: bool = False
    """True if the work resumes by itself once an exhausted quota is full again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Decision to attempt the step again."""

    at: datetime
    attempt: int
    of: int
    undo: Undo = Undo.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixer:
    """Decision to ask a second agent, which proposes a fix or gives up."""

    reason: str
    beside: str = ""
    """Addition to the description of the failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPerson:
    """Decision to stop and ask a person."""

    reason: str
    beside: str = ""
    """Addition to the description of the failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Decision to suspend the session until a time, as the user chose, and to attempt the step again then."""

    until: datetime
    reason: str


NextStep = Retry | Fixer | AskPerson | Wait


def describe() -> str:
    """Build the second table in `docs/reference/failures.md`, a row for each class of failures."""
    head = "| class | what it means | tried again | undone before | failures of the agent |\n|---|---|---|---|---|"
    return "\n".join([head, *(_row(kind) for kind in FailureClass)])


def _row(kind: FailureClass) -> str:
    """Build the table's row of one class of failures."""
    rule = RULES[kind]
    undone = "the work since the last clean checkpoint" if rule.undo is Undo.REWIND else "nothing"
    members = ", ".join(f"`{what}`" for what, each in CLASSES.items() if each is kind and isinstance(what, Failure))
    return f"| `{kind}` | {MEANINGS[kind]} | {WAITS[kind]} | {undone} | {members or 'none'} |"


WAITS: Mapping[FailureClass, str] = {
    FailureClass.TRANSIENT: (
        f"after {duration(RetryPolicy().first)}, doubled each time, plus a random part of up to a half"
    ),
    # A running agent gets the next prompt in the same run.
    FailureClass.TEST_FAILURE: "at once",
    FailureClass.RESOURCE: "when the quota is full again, where `wait_for_quota` was chosen",
    FailureClass.LOGIC_ERROR: "at once",
    FailureClass.PERSISTENT: "no",
}

MEANINGS: Mapping[FailureClass, str] = {
    FailureClass.TRANSIENT: "It may work the next time.",
    FailureClass.TEST_FAILURE: "The work is finished and its tests fail: the agent gets the failing tests.",
    FailureClass.RESOURCE: "A quota is exhausted until it is renewed.",
    FailureClass.LOGIC_ERROR: "The approach was wrong; the remaining tasks are planned again.",
    FailureClass.PERSISTENT: "It would fail again: a person is asked.",
}


def next_step(
    policy: RetryPolicy, failures: Sequence[FailedAttempt], now: datetime, chance: float, *, replans: int = 0
) -> NextStep:
    """Choose what follows the last of these failures.

    `failures` are the consecutive ones since the last success, the oldest first and at least one. `chance` is a random
    number from 0 up to 1, which spreads the retries of steps that failed together. `replans` counts how often the
    remaining tasks were planned again since the last request of a person.
    """
    last = failures[-1]
    tries = _in_a_row(failures)
    rule = RULES[CLASSES[last.what]]
    if last.what == Failure.QUOTA:
        return _after_quota(policy, tries, now)
    if last.what == WorkFailure.SERVER_DIED:
        return _after_a_death(policy, failures, now)
    if not rule.retried:
        return AskPerson(reason=f"{_said(last)}, and would again.")
    if any(failed.after_fixer for failed in tries):
        return AskPerson(reason=f"{_said(last)}, with the fixer's advice too.", beside="with the fixer's advice too")
    if _too_quick(policy, failures):
        quick = f"{policy.quick_failures} failures in a row within {duration(policy.quick_within)}"
        return AskPerson(reason=f"{_said(last)}: {quick}.", beside=quick)
    if len(tries) >= policy.attempts:
        return _after_all_attempts(policy, rule, last, len(tries))
    if rule.undo is Undo.REWIND and not may_start_over(policy, replans):
        again = f"the work was planned again {replans} time{'' if replans == 1 else 's'} already"
        return AskPerson(reason=f"{_said(last)}, and {again}.", beside=again)
    at = last.at + backoff(policy.first, policy.longest, len(tries), chance)
    return Retry(at=max(at, now), attempt=len(tries) + 1, of=policy.attempts, undo=rule.undo)


def may_start_over(policy: RetryPolicy, replans: int) -> bool:
    """Return True if the work may be planned again without asking a person, after this many times; each plan counts
    as an attempt."""
    return replans + 1 < policy.attempts


def backoff(first: timedelta, longest: timedelta, failures: int, chance: float) -> timedelta:
    """Return the wait after this number of failures: it doubles each time, plus a random part of up to a half."""
    # In seconds, since a timedelta has a maximum; 64 doublings exceed any wait.
    doubled = first.total_seconds() * 2 ** min(failures - 1, 64)
    least = timedelta(seconds=min(doubled, longest.total_seconds() / 1.5))
    return max(least * (1 + chance / 2), min(first, longest))


def _in_a_row(failures: Sequence[FailedAttempt]) -> list[FailedAttempt]:
    """Return the failures of the last step, back to where another step failed, the latest first."""
    tries: list[FailedAttempt] = []
    for failed in reversed(failures):
        if failed.step != failures[-1].step:
            break
        tries.append(failed)
    return tries


def _after_quota(policy: RetryPolicy, tries: Sequence[FailedAttempt], now: datetime) -> NextStep:
    """Wait for the quota's reset if the policy allows it and the time is known, else ask a person; `tries` come
    latest first."""
    last, found = tries[0], len(list(takewhile(lambda each: each.what == Failure.QUOTA, tries)))
    if not policy.wait_for_quota or last.reset_at is None:
        known = f"; it is full again at {last.reset_at:%Y-%m-%d %H:%M %Z}" if last.reset_at else ""
        return AskPerson(reason=f"The agent's quota is used up{known}.")
    if found >= policy.attempts:
        return AskPerson(reason=f"The agent's quota was found used up {found} times in a row.")
    until = max(last.reset_at, now)
    return Wait(until=until, reason=f"The agent's quota is used up until {until:%Y-%m-%d %H:%M %Z}.")


def _after_a_death(policy: RetryPolicy, failures: Sequence[FailedAttempt], now: datetime) -> NextStep:
    """Retry at once after the death of the server, or ask a person after too many; deaths count whatever else failed
    in between."""
    died = sum(each.what == WorkFailure.SERVER_DIED for each in failures)
    if died >= policy.deaths:
        return AskPerson(reason=f"The server died under the work {died} times.")
    return Retry(at=now, attempt=died + 1, of=policy.deaths)


def _after_all_attempts(policy: RetryPolicy, rule: RetryRule, last: FailedAttempt, tries: int) -> Fixer | AskPerson:
    """Choose the fixer after the last attempt, or a person where the rule has no fixer or the policy only one
    attempt."""
    beside = "" if tries == 1 else f"{tries} times in a row"
    reason = f"{', '.join(filter(None, (_said(last), beside)))}."
    if not rule.fixer or policy.attempts == 1:
        return AskPerson(reason=reason, beside=beside)
    return Fixer(reason=reason, beside=beside)


def _too_quick(policy: RetryPolicy, failures: Sequence[FailedAttempt]) -> bool:
    """Return True if the agent itself fails so quickly that advice does not help; failures of the work do not count."""
    if failures[-1].what in set(WorkFailure):
        return False
    quick = [each for each in failures if each.what not in set(WorkFailure)][-policy.quick_failures :]
    return len(quick) == policy.quick_failures and quick[-1].at - quick[0].at <= policy.quick_within


def _said(failed: FailedAttempt) -> str:
    """Return a clause about the step that failed and its kind of failure."""
    return f"{failed.step} failed ({failed.what.replace('_', ' ')})"
