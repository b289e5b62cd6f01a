"""Detection of silent agents. A stall is only reported; a watchdog with a longer time ends the run."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from segue.protocol.durations import duration

NOTICE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Prompt whose agent is watched. While a question to the user is open, nothing is reported."""

    sent_at: datetime
    last_sign_at: datetime | None = None
    """Time of the agent's last event."""
    reported: bool = False

    @property
    def since(self) -> datetime:
        """Return the start of the current silence."""
        return self.last_sign_at or self.sent_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """Notice that the agent has reacted to the prompt and is silent now."""

    since: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReaction:
    """Notice that the prompt brought no event at all: the launch failed (`Failure.NEVER_ANSWERED`)."""

    since: datetime
    reason: str


def observe(watch: Watch, at: datetime) -> Watch:
    """Return the watch after a sign of the agent at this time."""
    return replace(watch, last_sign_at=at)


def check(
    watch: Watch, now: datetime, notice_after: timedelta = NOTICE_AFTER
) -> tuple[Watch, Stalled | NoReaction | None]:
    """Return the watch and a notice if the agent is silent for too long, else None; at most one notice for each
    prompt."""
    if watch.reported or now - watch.since < notice_after:
        return watch, None
    silence, since = duration(now - watch.since), watch.since
    if watch.last_sign_at is None:
        notice = NoReaction(since=since, reason=f"The agent has not reacted to its prompt for {silence}.")
    else:
        notice = Stalled(since=since, reason=f"The agent has been silent for {silence}.")
    return replace(watch, reported=True), notice
