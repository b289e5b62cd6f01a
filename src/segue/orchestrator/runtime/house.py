"""What everybody in the orchestrator shares: the journal, the engine, the rules and the runs that are alive."""

import asyncio
import random
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import anyio

from segue.journal import Journal
from segue.model.agents import AgentConfiguration, Choices
from segue.model.clock import Clock
from segue.model.ids import BootId, PromptId, RequestId, SessionId, WorkflowId
from segue.model.status import Recovery, Trigger
from segue.orchestrator.runtime.engine import Engine
from segue.orchestrator.runtime.extracting import Extraction
from segue.orchestrator.runtime.hearing import Hearings
from segue.orchestrator.runtime.places import Places
from segue.protocol.retries import Policy
from segue.resume.handover import Lengths
from segue.resume.history import Cuts

RunId = tuple[SessionId, int]
DIVERGED = "worktree_diverged"
"""The code of the warning that the worktree changed while the work stood still."""


LONGEST_NAP = 60.0
"""Seconds between two looks at the time of day: what a machine spends suspended counts in no sleep."""


async def sleep_until(clock: Clock, moment: datetime) -> None:
    while (left := (moment - clock.now()).total_seconds()) > 0:
        await clock.sleep(min(left, LONGEST_NAP))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The numbers that the orchestrator goes by; times are in seconds."""

    setup: str | None
    setup_watchdog: float
    start_watchdog: float
    silence_watchdog: float
    handshake_timeout: float
    permission_timeout: float
    pause_force_after: float
    sweep_interval: float
    talk_linger: float
    agents_at_once: int
    session_idle: float
    session_ttl: float
    delivery_wait: float
    messages_waiting: int
    merge_messages: bool
    capacity: Mapping[str, float]
    context_budget: int
    """Tokens that a compiled resume context may take."""
    lengths: Lengths
    history: Cuts
    extraction: Extraction
    plan_tasks: int
    """Tasks that a plan may have which an agent proposes."""
    retries: Policy
    review_time: float
    stall_notice: float
    stall_look: float
    container_engine: str
    """Where the engine's socket is; empty for the usual places."""
    reattach_at_start: bool
    recovery: Recovery

    def setup_for(self, choices: Choices) -> str | None:
        """The command that makes the worktree of such a workflow ready."""
        return self.setup if choices.setup is None else choices.setup or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a run is torn away before its boundary."""

    trigger: Trigger
    reason: str


@dataclass(slots=True, eq=False)
class Urgent:
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
class Verdict:
    """A person's word on a question, or that of the sweep; it is written down already."""

    request_id: RequestId
    title: str
    allow: bool
    words: str = ""
    """What was said, if the question was answered in words."""


@dataclass(slots=True)
class Live:
    """How the doors reach a run that is alive in this process."""

    pause: anyio.Event = field(default_factory=anyio.Event)
    """A pause was asked for; look at the workflow for when to force it."""
    stopping: anyio.Event = field(default_factory=anyio.Event)
    stop: Stop | None = None
    verdicts: asyncio.Queue[Verdict] = field(default_factory=asyncio.Queue[Verdict])
    """What the agent is to be told of its questions."""
    spoken: anyio.Event = field(default_factory=anyio.Event)
    """Somebody said something, or the plan is to be worked on; look at the workflow for what."""
    terms: anyio.Event = field(default_factory=anyio.Event)
    """The limits were changed, or what the run is for; look again at how long it may go on."""
    urgent: asyncio.Queue[Urgent] = field(default_factory=asyncio.Queue[Urgent])
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


@dataclass(slots=True, kw_only=True)
class House:
    journal: Journal
    clock: Clock
    boot: BootId
    home: Path
    agents: Mapping[str, AgentConfiguration]
    rules: Rules
    places: Places
    live: dict[WorkflowId, Live] = field(default_factory=dict[WorkflowId, Live])
    environments: dict[RunId, Mapping[str, str]] = field(default_factory=dict[RunId, Mapping[str, str]])
    """The callers' variables for each run that is queued or alive, in memory only."""
    kept_environments: dict[WorkflowId, Mapping[str, str]] = field(default_factory=dict[WorkflowId, Mapping[str, str]])
    """Those of runs that failed and are tried again."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """The server's own variables, for a retry whose caller's are gone."""
    retry_scheduled: anyio.Event = field(default_factory=anyio.Event)
    """Something is to be tried again; look at the workflows for what, and when."""
    chance: Callable[[], float] = random.random
    """Numbers from 0 up to 1, which keep retries apart."""
    hearings: Hearings
    unstudied: asyncio.Queue[WorkflowId] = field(default_factory=asyncio.Queue[WorkflowId])
    """Workflows with a snapshot that wants a second look."""
    studying: anyio.Lock = field(default_factory=anyio.Lock)
    _engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        assert self._engine is not None, "the engine is not open"
        return self._engine

    def furnish(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def alive(self, workflow_id: WorkflowId) -> Generator[Live]:
        """Make a run reachable while it lasts."""
        live = self.live[workflow_id] = Live()
        try:
            yield live
        finally:
            if self.live.get(workflow_id) is live:
                del self.live[workflow_id]
            live.done.set()
