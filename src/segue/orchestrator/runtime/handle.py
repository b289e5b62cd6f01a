"""The handle of a run that is alive in this process."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import anyio

from segue.model.ids import PromptId, RequestId
from segue.model.status import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a run is torn away before its boundary."""

    trigger: Trigger
    reason: str


@dataclass(slots=True, eq=False)
class UrgentMessage:
    """What somebody said, and wants heard before the turn under way is over."""

    prompt_id: PromptId
    decided: anyio.Event = field(default_factory=anyio.Event)
    interrupts: bool = False
    """Whether a turn was broken off for it; true or not when it is decided."""
    reason: str = ""
    """When it is heard instead, where that is known."""

    def decide(self, interrupts: bool, reason: str = "") -> None:
        self.interrupts, self.reason = interrupts, reason
        self.decided.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionReply:
    """A person's word on a question, or that of the sweep; it is written down already."""

    request_id: RequestId
    title: str
    allow: bool
    words: str = ""
    """What was said, if the question was answered in words."""


@dataclass(slots=True)
class RunHandle:
    """How the doors reach a run that is alive in this process."""

    pause: anyio.Event = field(default_factory=anyio.Event)
    """A pause was asked for; look at the workflow for when to force it."""
    stopping: anyio.Event = field(default_factory=anyio.Event)
    stop: Stop | None = None
    verdicts: asyncio.Queue[PermissionReply] = field(default_factory=asyncio.Queue[PermissionReply])
    """What the agent is to be told of its questions."""
    spoken: anyio.Event = field(default_factory=anyio.Event)
    """Somebody said something, or the plan is to be worked on; look at the workflow for what."""
    terms: anyio.Event = field(default_factory=anyio.Event)
    """The limits were changed, or what the run is for; look again at how long it may go on."""
    urgent: asyncio.Queue[UrgentMessage] = field(default_factory=asyncio.Queue[UrgentMessage])
    done: anyio.Event = field(default_factory=anyio.Event)
    patience: datetime | None = None
    """Until then nothing need be heard: the user's own tests run, and have a time of their own."""

    @contextmanager
    def patient(self, now: datetime, seconds: float) -> Generator[None]:
        self.patience = now + timedelta(seconds=seconds)
        try:
            yield
        finally:
            self.patience = None

    def tear_away(self, stop: Stop) -> None:
        if self.stop is None:
            self.stop = stop
            self.stopping.set()
