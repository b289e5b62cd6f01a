"""The capacity ladder: how full the current context may become, and what happens on each rung.

Three counts are kept apart. The tokens in the context now decide how full it is. The tokens that are new since the last
refresh decide when the next one comes. What was used in all is for the accounts, and never looked at here.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from segue.model.agents import AgentConfiguration
from segue.model.errors import BadSettings
from segue.model.events import UsageReported
from segue.protocol import windows
from segue.state.growth import Growth, grown

BEFORE_COMPACTION = 0.70
"""Where the snapshot is taken for an agent that compacts by itself. OpenCode was seen to do so at 0.82 of its window,
the others later; and a long turn may fill a tenth of a window between two reports."""


class Rung(StrEnum):
    """The rungs that are marks on the window, from the lowest to the highest."""

    SNAPSHOT_BEFORE_COMPACTION = "snapshot_before_compaction"
    """Take a snapshot: soon the agent will replace its conversation by a summary."""
    WARN = "warn"
    """Say how full it is."""
    FORK = "fork"
    """At the next boundary a child session goes on with a compiled context."""
    PAUSE = "pause"
    """Pause at the next boundary."""
    FORCE = "force"
    """Pause now, in the middle of the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Where each rung is, as a share of the window; None switches a rung off."""

    snapshot_before_compaction: float | None = None
    warn: float | None = 0.75
    fork: float | None = 0.80
    pause: float | None = 0.85
    force: float | None = 0.95
    refresh_every: int | None = 50_000
    """New tokens after which a checkpoint and a memory entry are made."""
    stable_window: int | None = None
    """As much of the window as the user wants to use; None is all of it."""
    known_window: int | None = None
    """The window to reckon with as long as the agent reports none."""

    def __post_init__(self) -> None:
        for rung, mark in self.marks:
            if not 0 < mark <= 1:
                raise BadSettings(f"The rung {rung} must be a share of the window, above 0 and up to 1, not {mark!r}.")
        for name in ("refresh_every", "stable_window", "known_window"):
            tokens = getattr(self, name)
            if tokens is not None and tokens <= 0:
                raise BadSettings(f"{name} must be more than 0 tokens, not {tokens!r}.")

    @property
    def marks(self) -> tuple[tuple[Rung, float], ...]:
        """The rungs that are switched on, the lowest first."""
        marks = [(rung, getattr(self, rung)) for rung in Rung]
        return tuple(sorted(((rung, mark) for rung, mark in marks if mark is not None), key=lambda each: each[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """What was heard and said so far in one conversation. It begins anew with every session."""

    highest: int | None = None
    """The most tokens the context held since it was last compacted; 0 for a new conversation, None for one that was
    joined in the middle, whose first report says nothing of what is new."""
    new_tokens: int = 0
    """Tokens that came into the context since the last refresh. What is read from a cache was there before."""
    window: int | None = None
    """The window as the agent reported it."""
    reached: frozenset[Rung] = frozenset()
    """The rungs below the context as it is now; they were said."""
    unknown_reported: bool = False
    estimated: bool = False
    """The last that was heard was reckoned, and not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The context has come up to a rung."""

    rung: Rung
    context_tokens: int
    window: int
    estimated: bool = False
    """The tokens were reckoned, and not measured."""

    @property
    def sentence(self) -> str:
        share, about = f"{self.context_tokens / self.window:.0%}", "about " if self.estimated else ""
        return f"The context holds {about}{self.context_tokens:,} of {self.window:,} tokens ({share})."


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """So many new tokens came since the last refresh that a checkpoint and a memory entry are due."""

    new_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The agent was seen to have replaced its conversation by a summary."""

    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowUnknown:
    """Nobody knows how large the window is, so no rung can be reached. Said once."""

    context_tokens: int


Notice = Compaction | Refresh | WindowUnknown | Reached


def ladder_for(agent: AgentConfiguration, model: str | None = None) -> Ladder:
    """The ladder before the user's own values, which are put over it with `dataclasses.replace`.

    An agent that compacts by itself is left to it: it is neither forked nor paused, nor forced, which is how a pause
    ends that was not obeyed.
    """
    known = windows.window(model)
    if not agent.compacts:
        return Ladder(known_window=known)
    return Ladder(snapshot_before_compaction=BEFORE_COMPACTION, fork=None, pause=None, force=None, known_window=known)


def climb(ladder: Ladder, gauge: Gauge, report: UsageReported) -> tuple[Gauge, tuple[Notice, ...]]:
    """What a report of usage leads to: each rung once when the context comes up to it, the highest last.

    A rung that the context falls below is said again the next time. A report without the tokens of the context (or with
    0, which is what agents say that do not know) changes nothing but the window.
    """
    gauge = replace(gauge, window=report.window or gauge.window)
    tokens = report.context_tokens
    if tokens is None or tokens <= 0:
        return gauge, ()
    notices: list[Notice] = []
    gauge = _measure(_comparable(gauge, report), tokens, notices)
    gauge = _refresh(ladder, gauge, notices)
    gauge = _reach(ladder, gauge, tokens, notices)
    return gauge, tuple(notices)


def _comparable(gauge: Gauge, report: UsageReported) -> Gauge:
    """What is measured says nothing of what is new, or was summed up, since something was reckoned."""
    highest = None if gauge.estimated and not report.estimated else gauge.highest
    return replace(gauge, highest=highest, estimated=report.estimated)


def _measure(gauge: Gauge, tokens: int, notices: list[Notice]) -> Gauge:
    before = gauge.highest
    growth = grown(Growth(highest=before, new=gauge.new_tokens), tokens)
    if before is not None and growth.highest is not None and growth.highest < before:
        notices.append(Compaction(tokens_before=before, tokens_after=tokens))
    return replace(gauge, highest=growth.highest, new_tokens=growth.new)


def _refresh(ladder: Ladder, gauge: Gauge, notices: list[Notice]) -> Gauge:
    if ladder.refresh_every is None or gauge.new_tokens < ladder.refresh_every:
        return gauge
    notices.append(Refresh(new_tokens=gauge.new_tokens))
    return replace(gauge, new_tokens=0)


def _reach(ladder: Ladder, gauge: Gauge, tokens: int, notices: list[Notice]) -> Gauge:
    window = usable_window(ladder, gauge.window)
    if window is None:
        if not gauge.unknown_reported:
            notices.append(WindowUnknown(context_tokens=tokens))
        return replace(gauge, unknown_reported=True)
    below = [rung for rung, mark in ladder.marks if tokens >= mark * window]
    notices.extend(
        Reached(rung=rung, context_tokens=tokens, window=window, estimated=gauge.estimated)
        for rung in below
        if rung not in gauge.reached
    )
    return replace(gauge, reached=frozenset(below))


def usable_window(ladder: Ladder, reported: int | None) -> int | None:
    """The agent's own word, else what is known of the model; of that no more than the user wants to use."""
    whole = reported or ladder.known_window
    if whole is None or ladder.stable_window is None:
        return whole or ladder.stable_window
    return min(whole, ladder.stable_window)
