"""Opening and closing the orchestrator."""

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio

from segue.journal import open_journal
from segue.model.agents import AgentConfiguration
from segue.model.clock import NEVER_AWAY, Absences, Clock
from segue.model.ids import SessionId, new_boot_id
from segue.model.status import Trigger
from segue.orchestrator.requests.answers import announce
from segue.orchestrator.requests.resumption import Resuming
from segue.orchestrator.requests.retry_dispatch import dispatch_forever
from segue.orchestrator.requests.service import Orchestrator
from segue.orchestrator.run.lifecycle import run_session
from segue.orchestrator.runtime.concurrency import alongside
from segue.orchestrator.runtime.facts_cache import FactsCache
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.runtime.run_queue import open_queue
from segue.orchestrator.runtime.services import Rules, RuntimeServices
from segue.orchestrator.runtime.slots import Slots
from segue.orchestrator.runtime.snapshot_studies import study_forever
from segue.orchestrator.settling.sweep import settle_left_runs, sweep_forever

STOP_WITHIN = 5.0

STOPPED = Stop(trigger=Trigger.CRASH, reason="the server was stopped in the middle of the work")

WORTH_A_NOTE = timedelta(seconds=60)
"""A clock that is put right by less was not away."""


class SystemClock:
    """Clock that separates suspended time from silence, by comparison with a clock that stands still during suspend."""

    def __init__(self, awake: Callable[[], float] = time.monotonic) -> None:
        """Begin to compare the time of day with `awake`, a clock that stands still during suspend."""
        self._awake = awake
        self._ahead = self._lead()
        self._absences: Absences = NEVER_AWAY

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def away_since(self, moment: datetime) -> timedelta:
        """Return the time that the machine was suspended since the moment, as far as it was noticed."""
        lead = self._lead()
        if lead - self._ahead > WORTH_A_NOTE:
            self._absences = self._absences.noticed(self.now(), lead - self._ahead)
            self._ahead = lead
        return self._absences.since(moment)

    def _lead(self) -> timedelta:
        """Return the lead of the time of day over the clock that stands still during suspend."""
        return timedelta(seconds=time.time() - self._awake())


@asynccontextmanager
async def open_orchestrator(
    *,
    database_url: str,
    home: Path,
    agents: Mapping[str, AgentConfiguration],
    rules: Rules,
    environment: Mapping[str, str] | None = None,
    chance: Callable[[], float] = random.random,
    clock: Clock | None = None,
) -> AsyncGenerator[Orchestrator]:
    """Open journal and queue, settle interrupted work, and yield the orchestrator with its jobs running; on the way
    out, stop live runs."""
    clock = clock or SystemClock()
    async with open_journal(database_url, clock) as journal:
        services = RuntimeServices(
            journal=journal,
            clock=clock,
            boot=new_boot_id(),
            home=home,
            agents=agents,
            rules=rules,
            slots=Slots(rules.agents_at_once),
            facts=FactsCache(journal),
            environment=os.environ if environment is None else environment,
            chance=chance,
        )

        async def body(session_id: SessionId, number: int) -> None:
            await run_session(services, session_id, number)

        async with open_queue(journal, services.boot, body) as queue:
            services.queue = queue
            left = await settle_left_runs(services)
            await announce(services)
            resuming = Resuming(services)
            if rules.reattach_at_start:
                await resuming.rejoin([run.workflow_id for run in left])
            jobs = (
                lambda: sweep_forever(services),
                lambda: study_forever(services),
                lambda: dispatch_forever(resuming),
            )
            try:
                async with alongside(*jobs):
                    yield Orchestrator(services, resuming)
            finally:
                await _bring_to_rest(services)


async def _bring_to_rest(services: RuntimeServices) -> None:
    """Stop the live runs and wait for them within a bound; a run that takes longer is settled at the next start."""
    services.slots.close()
    with anyio.move_on_after(STOP_WITHIN, shield=True):
        lives = list(services.live.values())
        for live in lives:
            live.tear_away(STOPPED)
        for live in lives:
            await live.done.wait()
