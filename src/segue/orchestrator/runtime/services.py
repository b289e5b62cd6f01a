"""Services that all parts of the orchestrator share: journal, run queue, settings, and the handles of live runs."""

import asyncio
import random
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import anyio

from segue.journal import Journal
from segue.model.agents import AgentConfiguration, Choices
from segue.model.clock import Clock
from segue.model.ids import BootId, WorkflowId
from segue.model.status import Recovery
from segue.orchestrator.runtime.extraction import Extraction
from segue.orchestrator.runtime.facts_cache import FactsCache
from segue.orchestrator.runtime.run_handle import RunHandle
from segue.orchestrator.runtime.run_queue import RunId, RunQueue
from segue.orchestrator.runtime.slots import Slots
from segue.protocol.retries import RetryPolicy
from segue.resume.handover import Lengths
from segue.resume.history import Cuts

DIVERGED = "worktree_diverged"
"""The code of the warning that the worktree changed while the work stood still."""


LONGEST_NAP = 60.0
"""Seconds between two looks at the time of day: what a machine spends suspended counts in no sleep."""


async def sleep_until(clock: Clock, moment: datetime) -> None:
    """Sleep until the clock has reached the moment, in naps, since the clock may jump; return at once if it has."""
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
    retries: RetryPolicy
    review_time: float
    stall_notice: float
    stall_look: float
    container_engine: str
    """Address of the container engine's socket; empty for the usual ones."""
    reattach_at_start: bool
    recovery: Recovery

    def setup_for(self, choices: Choices) -> str | None:
        """Return the command that prepares a new worktree: the workflow's own or the general one; None if there is
        none."""
        return self.setup if choices.setup is None else choices.setup or None


@dataclass(slots=True, kw_only=True)
class RuntimeServices:
    """Services and shared state of one server process."""

    journal: Journal
    clock: Clock
    boot: BootId
    home: Path
    agents: Mapping[str, AgentConfiguration]
    rules: Rules
    slots: Slots
    live: dict[WorkflowId, RunHandle] = field(default_factory=dict[WorkflowId, RunHandle])
    environments: dict[RunId, Mapping[str, str]] = field(default_factory=dict[RunId, Mapping[str, str]])
    """The callers' variables for each run that is queued or alive, in memory only."""
    kept_environments: dict[WorkflowId, Mapping[str, str]] = field(default_factory=dict[WorkflowId, Mapping[str, str]])
    """Variables of runs that failed and are retried."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """The server's own variables, for a retry whose caller's are gone."""
    retry_scheduled: anyio.Event = field(default_factory=anyio.Event)
    """A retry was scheduled; the workflows have which, and when."""
    chance: Callable[[], float] = random.random
    """Numbers from 0 up to 1, which keep retries apart."""
    facts: FactsCache
    unstudied: asyncio.Queue[WorkflowId] = field(default_factory=asyncio.Queue[WorkflowId])
    """Workflows with a snapshot that wants a second look."""
    studying: anyio.Lock = field(default_factory=anyio.Lock)
    _queue: RunQueue | None = None

    @property
    def queue(self) -> RunQueue:
        assert self._queue is not None, "the queue is not open"
        return self._queue

    @queue.setter
    def queue(self, queue: RunQueue) -> None:
        self._queue = queue

    @contextmanager
    def alive(self, workflow_id: WorkflowId) -> Generator[RunHandle]:
        """Yield a new handle of the workflow's run, under which it is found in `live` while the body lasts; then set
        its `done`."""
        live = self.live[workflow_id] = RunHandle()
        try:
            yield live
        finally:
            if self.live.get(workflow_id) is live:
                del self.live[workflow_id]
            live.done.set()
