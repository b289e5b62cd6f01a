"""Opening and closing the orchestrator."""

import os
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from segue.journal import open_journal
from segue.model.agents import AgentConfiguration
from segue.model.clock import Clock
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
from segue.orchestrator.runtime.system_clock import SystemClock
from segue.orchestrator.settling.sweep import settle_left_runs, sweep_forever

STOP_WITHIN = 5.0

STOPPED = Stop(trigger=Trigger.CRASH, reason="the server was stopped in the middle of the work")


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
    """Open the orchestrator. Interrupted work is settled before the context is entered; on the way out, live runs are
    stopped."""
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
            services.furnish(queue)
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
    """Stop the live runs within a bound; a run that takes longer is settled at the next start."""
    services.slots.close()
    with anyio.move_on_after(STOP_WITHIN, shield=True):
        lives = list(services.live.values())
        for live in lives:
            live.tear_away(STOPPED)
        for live in lives:
            await live.done.wait()
