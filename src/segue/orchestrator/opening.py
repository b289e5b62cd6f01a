"""Opening and closing the orchestrator."""

import os
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import anyio

from segue.journal import open_journal
from segue.model.agents import AgentConfiguration
from segue.model.clock import Clock
from segue.model.findings import Extractor
from segue.model.ids import SessionId, new_boot_id
from segue.model.status import Trigger
from segue.orchestrator.alongside import alongside
from segue.orchestrator.answering import announce
from segue.orchestrator.dispatching import dispatch_forever
from segue.orchestrator.engine import open_engine
from segue.orchestrator.extracting import Extraction
from segue.orchestrator.hearing import Hearings
from segue.orchestrator.house import House, Rules, Stop, SystemClock
from segue.orchestrator.resuming import Resuming
from segue.orchestrator.runner import run_session
from segue.orchestrator.service import Orchestrator
from segue.orchestrator.studies import study_forever
from segue.orchestrator.sweep import settle_left_runs, sweep_forever
from segue.protocol.retries import Policy

WORKERS = 64
"""Agents that may work at the same time, each in a workflow of its own."""
STOP_WITHIN = 5.0

STOPPED = Stop(trigger=Trigger.CRASH, reason="the server was stopped in the middle of the work")


@asynccontextmanager
async def open_orchestrator(
    *,
    database_url: str,
    home: Path,
    agents: Mapping[str, AgentConfiguration],
    setup: str | None,
    setup_watchdog: float,
    start_watchdog: float,
    handshake_timeout: float,
    permission_timeout: float,
    pause_force_after: float,
    sweep_interval: float,
    recovery: str,
    silence_watchdog: float = 3600.0,
    talk_linger: float = 60.0,
    context_budget: int = 4000,
    extraction: Extractor = "rules",
    extraction_model: str | None = None,
    extraction_timeout: float = 60.0,
    extraction_base_url: str | None = None,
    retry_attempts: int = 3,
    retry_first: float = 1.0,
    retry_longest: float = 60.0,
    quick_failures: int = 3,
    quick_within: float = 60.0,
    fixer_time: float = 600.0,
    stall_notice: float = 300.0,
    environment: Mapping[str, str] | None = None,
    chance: Callable[[], float] = random.random,
    plan_tasks: int = 30,
    clock: Clock | None = None,
) -> AsyncGenerator[Orchestrator]:
    """Interrupted work is settled before the context is entered; on the way out, live runs are brought to rest."""
    rules = Rules(
        setup=setup,
        setup_watchdog=setup_watchdog,
        start_watchdog=start_watchdog,
        silence_watchdog=silence_watchdog,
        handshake_timeout=handshake_timeout,
        permission_timeout=permission_timeout,
        pause_force_after=pause_force_after,
        sweep_interval=sweep_interval,
        talk_linger=talk_linger,
        context_budget=context_budget,
        extraction=Extraction(
            by=extraction, model=extraction_model or "", timeout=extraction_timeout, base_url=extraction_base_url
        ),
        retries=Policy(
            attempts=retry_attempts,
            first=timedelta(seconds=retry_first),
            longest=timedelta(seconds=retry_longest),
            quick_failures=quick_failures,
            quick_within=timedelta(seconds=quick_within),
            fixer_time=timedelta(seconds=fixer_time),
        ),
        stall_notice=stall_notice,
        plan_tasks=plan_tasks,
    )
    clock = clock or SystemClock()
    async with open_journal(database_url, clock) as journal:
        house = House(
            journal=journal,
            clock=clock,
            boot=new_boot_id(),
            home=home,
            agents=agents,
            rules=rules,
            hearings=Hearings(journal),
            environment=os.environ if environment is None else environment,
            chance=chance,
        )

        async def body(session_id: SessionId, number: int) -> None:
            await run_session(house, session_id, number)

        async with open_engine(journal, house.boot, body, WORKERS) as engine:
            house.furnish(engine)
            await settle_left_runs(house)
            await announce(house)
            resuming = Resuming(house)
            jobs = (lambda: sweep_forever(house), lambda: study_forever(house), lambda: dispatch_forever(resuming))
            try:
                async with alongside(*jobs):
                    yield Orchestrator(house, resuming)
            finally:
                await _bring_to_rest(house)


async def _bring_to_rest(house: House) -> None:
    """Within a bound: what does not settle in time is settled at the next start."""
    with anyio.move_on_after(STOP_WITHIN, shield=True):
        lives = list(house.live.values())
        for live in lives:
            live.tear_away(STOPPED)
        for live in lives:
            await live.done.wait()
