"""Silence: when it is worth a word. It ends nobody yet; a watchdog with a longer time does."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from segue.protocol.durations import duration

NOTICE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One prompt, and what was heard since. While a question to the user is open, nobody is looked at."""

    sent_at: datetime
    heard_at: datetime | None = None
    """When the agent last gave a sign of life."""
    said: bool = False

    @property
    def since(self) -> datetime:
        """Since when nothing was heard."""
        return self.heard_at or self.sent_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """The agent has begun with the prompt, and is silent."""

    since: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReaction:
    """The prompt brought no event at all: the launch failed (`Failure.NEVER_ANSWERED`)."""

    since: datetime
    reason: str


def hear(watch: Watch, at: datetime) -> Watch:
    """An event came."""
    return replace(watch, heard_at=at)


def look(
    watch: Watch, now: datetime, notice_after: timedelta = NOTICE_AFTER
) -> tuple[Watch, Stalled | NoReaction | None]:
    """Whether the silence is to be said now: once for each prompt, however often the agent falls silent."""
    if watch.said or now - watch.since < notice_after:
        return watch, None
    silence, since = duration(now - watch.since), watch.since
    if watch.heard_at is None:
        notice = NoReaction(since=since, reason=f"The agent has not reacted to its prompt for {silence}.")
    else:
        notice = Stalled(since=since, reason=f"Nothing was heard of the agent for {silence}.")
    return replace(watch, said=True), notice
