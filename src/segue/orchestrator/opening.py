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
from segue.orchestrator.requests.answering import announce
from segue.orchestrator.requests.dispatching import dispatch_forever
from segue.orchestrator.requests.resuming import Resuming
from segue.orchestrator.requests.service import Orchestrator
from segue.orchestrator.run.runner import run_session
from segue.orchestrator.runtime.alongside import alongside
from segue.orchestrator.runtime.clock import SystemClock
from segue.orchestrator.runtime.handle import Stop
from segue.orchestrator.runtime.hearing import Hearings
from segue.orchestrator.runtime.house import House, Rules
from segue.orchestrator.runtime.places import Places
from segue.orchestrator.runtime.runqueue import open_queue
from segue.orchestrator.runtime.studies import study_forever
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
    """Interrupted work is settled before the context is entered; on the way out, live runs are brought to rest."""
    clock = clock or SystemClock()
    async with open_journal(database_url, clock) as journal:
        house = House(
            journal=journal,
            clock=clock,
            boot=new_boot_id(),
            home=home,
            agents=agents,
            rules=rules,
            places=Places(rules.agents_at_once),
            hearings=Hearings(journal),
            environment=os.environ if environment is None else environment,
            chance=chance,
        )

        async def body(session_id: SessionId, number: int) -> None:
            await run_session(house, session_id, number)

        async with open_queue(journal, house.boot, body) as queue:
            house.furnish(queue)
            left = await settle_left_runs(house)
            await announce(house)
            resuming = Resuming(house)
            if rules.reattach_at_start:
                await resuming.rejoin([run.workflow_id for run in left])
            jobs = (lambda: sweep_forever(house), lambda: study_forever(house), lambda: dispatch_forever(resuming))
            try:
                async with alongside(*jobs):
                    yield Orchestrator(house, resuming)
            finally:
                await _bring_to_rest(house)


async def _bring_to_rest(house: House) -> None:
    """Within a bound: what does not settle in time is settled at the next start."""
    house.places.close()
    with anyio.move_on_after(STOP_WITHIN, shield=True):
        lives = list(house.live.values())
        for live in lives:
            live.tear_away(STOPPED)
        for live in lives:
            await live.done.wait()
