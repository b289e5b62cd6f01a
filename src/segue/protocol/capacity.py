"""Capacity ladder: limits of the current context, and the action at each.

Three counts are kept apart. The tokens in the context decide how full it is. The tokens that are new since the last
refresh decide when the next one is due. The total usage belongs to the accounts, and is not used here.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from segue.model.agents import AgentConfiguration
from segue.model.errors import BadSettings
from segue.model.events import UsageReported
from segue.protocol import windows
from segue.state.growth import Growth, grown

BEFORE_COMPACTION = 0.70
"""Share of the window at which a snapshot is taken for an agent that compacts by itself. OpenCode was seen to compact
at 0.82 of its window, the others later; and a long turn may fill a tenth of a window between two reports."""


class Rung(StrEnum):
    """Rung of the ladder: a share of the window. From the lowest to the highest."""

    SNAPSHOT_BEFORE_COMPACTION = "snapshot_before_compaction"
    """Take a snapshot: the agent is about to compact its conversation."""
    WARN = "warn"
    """Report the fill level."""
    FORK = "fork"
    """Hand over to a child session with a compiled context at the next boundary."""
    PAUSE = "pause"
    """Pause at the next boundary."""
    FORCE = "force"
    """Pause now, in the middle of the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Position of each rung, as a share of the window; None switches a rung off."""

    snapshot_before_compaction: float | None = None
    warn: float | None = 0.75
    fork: float | None = 0.80
    pause: float | None = 0.85
    force: float | None = 0.95
    refresh_every: int | None = 50_000
    """New tokens after which a periodic checkpoint and a memory entry are made."""
    stable_window: int | None = None
    """Part of the window that the user wants to use; None is all of it."""
    known_window: int | None = None
    """Window to assume while the agent reports none."""

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
        """Return the rungs that are switched on, the lowest first."""
        marks = [(rung, getattr(self, rung)) for rung in Rung]
        return tuple(sorted(((rung, mark) for rung, mark in marks if mark is not None), key=lambda each: each[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """Measurements and notices so far in one conversation; a new session starts with a new gauge."""

    highest: int | None = None
    """Maximum size of the context since its last compaction; 0 for a new conversation, None for one that was joined in
    the middle, whose first report does not show what is new."""
    new_tokens: int = 0
    """Tokens added to the context since the last refresh. Tokens read from a cache are not new."""
    window: int | None = None
    """Window that the agent reported."""
    reached: frozenset[Rung] = frozenset()
    """Rungs below the current size; their notices were given."""
    unknown_reported: bool = False
    estimated: bool = False
    """True if the last report was an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Notice that the context has reached a rung."""

    rung: Rung
    context_tokens: int
    window: int
    estimated: bool = False
    """True if the tokens are an estimate."""

    @property
    def sentence(self) -> str:
        """Describe how full the context is, for people."""
        share, about = f"{self.context_tokens / self.window:.0%}", "about " if self.estimated else ""
        return f"The context holds {about}{self.context_tokens:,} of {self.window:,} tokens ({share})."


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """Notice that a periodic checkpoint and a memory entry are due."""

    new_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Notice that the agent has compacted its conversation."""

    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowUnknown:
    """Notice that no rung can be reached because the window is unknown. Given once."""

    context_tokens: int


Notice = Compaction | Refresh | WindowUnknown | Reached


def ladder_for(agent: AgentConfiguration, model: str | None = None) -> Ladder:
    """Return the default ladder of an agent; the user's own values are applied with `dataclasses.replace`.

    An agent that compacts by itself is neither forked nor paused, nor forced, which is how a pause ends that was not
    obeyed.
    """
    known = windows.window(model)
    if not agent.compacts:
        return Ladder(known_window=known)
    return Ladder(snapshot_before_compaction=BEFORE_COMPACTION, fork=None, pause=None, force=None, known_window=known)


def climb(ladder: Ladder, gauge: Gauge, report: UsageReported) -> tuple[Gauge, tuple[Notice, ...]]:
    """Return the new gauge and the notices of a usage report: each rung once when it is reached, the highest last.

    A rung that the context falls below is reported again the next time. A report without the tokens of the context (or
    with 0, as agents report that do not know it) changes nothing but the window.
    """
    gauge = replace(gauge, window=report.window or gauge.window)
    tokens = report.context_tokens
    if tokens is None or tokens <= 0:
        return gauge, ()
    notices: list[Notice] = []
    # A measured size cannot be compared with an estimated one.
    highest = None if gauge.estimated and not report.estimated else gauge.highest
    growth = grown(Growth(highest=highest, new=gauge.new_tokens), tokens)
    if highest is not None and growth.highest is not None and growth.highest < highest:
        notices.append(Compaction(tokens_before=highest, tokens_after=tokens))
    gauge = replace(gauge, highest=growth.highest, new_tokens=growth.new, estimated=report.estimated)
    if ladder.refresh_every is not None and gauge.new_tokens >= ladder.refresh_every:
        notices.append(Refresh(new_tokens=gauge.new_tokens))
        gauge = replace(gauge, new_tokens=0)
    gauge = _reach(ladder, gauge, tokens, notices)
    return gauge, tuple(notices)


def _reach(ladder: Ladder, gauge: Gauge, tokens: int, notices: list[Notice]) -> Gauge:
    """Add a notice for each rung that is reached newly, or once that the window is unknown; return the gauge with
    the rungs below the tokens."""
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
    """Return the reported window, else the known one, limited to what the user wants to use; None if neither is
    known nor set."""
    whole = reported or ladder.known_window
    if whole is None or ladder.stable_window is None:
        return whole or ladder.stable_window
    return min(whole, ladder.stable_window)
