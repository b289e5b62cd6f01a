"""The handle of a run that is alive in this process."""

import asyncio
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import anyio

from segue.model.ids import PromptId, RequestId
from segue.model.status import Phase, Trigger
from segue.state.moves import AT_WORK, check_phase_move


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a run is torn away before its boundary."""

    trigger: Trigger
    reason: str


@dataclass(slots=True, eq=False)
class UrgentMessage:
    """A message that a person wants delivered before the turn under way is over."""

    prompt_id: PromptId
    decided: anyio.Event = field(default_factory=anyio.Event)
    interrupts: bool = False
    """A turn is interrupted for it; valid when it is decided."""
    reason: str = ""
    """When it is delivered instead, where that is known."""

    def decide(self, interrupts: bool, reason: str = "") -> None:
        """Set whether the turn is interrupted for the message, and why not, and wake the request that waits."""
        self.interrupts, self.reason = interrupts, reason
        self.decided.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionReply:
    """Answer to a permission request by a person or the sweep; it is journalled already."""

    request_id: RequestId
    title: str
    allow: bool
    words: str = ""
    """Text of the answer, if it was given in words."""


@dataclass(slots=True)
class RunPhase:
    """Phase of a run, which only legal moves change."""

    now: Phase = Phase.OPENING

    def move(self, after: Phase) -> None:
        """Move to this phase; raise IllegalMove if the table does not allow it."""
        check_phase_move(self.now, after)
        self.now = after

    def move_from(self, before: Collection[Phase], after: Phase) -> bool:
        """Move and return True if the run is in one of these phases; else return False and change nothing."""
        if self.now not in before:
            return False
        self.move(after)
        return True


@dataclass(slots=True)
class RunHandle:
    """Handle of a run that is alive in this process: requests leave signals here, and the run acts on them."""

    phase: RunPhase = field(default_factory=RunPhase)
    pause: anyio.Event = field(default_factory=anyio.Event)
    """A pause was requested; the workflow has the time at which it is forced."""
    forced: Stop | None = None
    """The pause that is being forced, in the phase `pausing`."""
    stopping: anyio.Event = field(default_factory=anyio.Event)
    stop: Stop | None = None
    replies: asyncio.Queue[PermissionReply] = field(default_factory=asyncio.Queue[PermissionReply])
    """Answers to the agent's permission requests."""
    spoken: anyio.Event = field(default_factory=anyio.Event)
    """A message was queued, or the plan is to be worked on; the workflow has which."""
    terms: anyio.Event = field(default_factory=anyio.Event)
    """The limits or the purpose of the run have changed."""
    urgent: asyncio.Queue[UrgentMessage] = field(default_factory=asyncio.Queue[UrgentMessage])
    done: anyio.Event = field(default_factory=anyio.Event)
    patience: datetime | None = None
    """Silence is no stall until then: tests or helpers run, and have a time limit of their own."""

    @contextmanager
    def patient(self, now: datetime, seconds: float) -> Generator[None]:
        """Keep the sweep from ending the run as silent for this many seconds, while the body lasts."""
        self.patience = now + timedelta(seconds=seconds)
        try:
            yield
        finally:
            self.patience = None

    def force_pause(self, stop: Stop) -> bool:
        """Begin to force a pause; return False, with nothing changed, where no work would be interrupted any more."""
        if not self.phase.move_from(AT_WORK, Phase.PAUSING):
            return False
        self.forced = stop
        return True

    def tear_away(self, stop: Stop) -> None:
        """Stop the run for this reason at once; do nothing if it is being stopped already."""
        if self.stop is None:
            self.stop = stop
            self.stopping.set()
