"""How full an agent's context is while it works, and what follows from that."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from segue.model.agents import AgentConfiguration, Choices
from segue.model.codec import decode
from segue.model.events import CapacityReached, UsageReported
from segue.orchestrator.tenure import Tenure
from segue.protocol.capacity import Gauge, Ladder, Notice, Reached, Rung, climb, ladder_for

log = logging.getLogger("segue")

LEFT_TO_COMPACTION = ("fork", "pause", "force")
"""Rungs that an agent which compacts by itself has only if they are set for it."""
WINDOW = ("known_window",)


class Capacity:
    """Climbs the ladder with each report of usage, and remembers what is due at the next boundary."""

    def __init__(self, tenure: Tenure, agent: AgentConfiguration, *, joined: bool) -> None:
        model = decode(Choices, tenure.workflow.choices).model
        self._ladder = ladder_of(tenure.house.rules.capacity, agent, model)
        # What nobody knows was said when the conversation began.
        self._gauge = Gauge(said_unknown=True) if joined else Gauge(highest=0)
        self.hand_over: Reached | None = None
        """The soft cap: at the next boundary a new session goes on."""

    def hear(self, report: UsageReported) -> tuple[Notice, ...]:
        """What follows from the report, the highest rung last."""
        self._gauge, notices = climb(self._ladder, self._gauge, report)
        for each in notices:
            if isinstance(each, Reached) and each.rung is Rung.FORK:
                self.hand_over = each
                log.info("[segue] Context budget reached")
        if self.hand_over is not None and Rung.FORK not in self._gauge.reached:
            # The agent has made room by itself.
            self.hand_over = None
        return notices


def event_of(reached: Reached) -> CapacityReached:
    return CapacityReached(rung=reached.rung, context_tokens=reached.context_tokens, window=reached.window)


def ladder_of(everybody: Mapping[str, float], agent: AgentConfiguration, model: str | None) -> Ladder:
    """What is said of the model goes before what is said of the agent, and that before what is said of everybody."""
    ladder = ladder_for(agent, model)
    better_known = (*(LEFT_TO_COMPACTION if agent.compacts else ()), *(WINDOW if ladder.known_window else ()))
    ours = {name: number for name, number in everybody.items() if name not in better_known}
    chosen = {**ours, **agent.capacity, **agent.model_capacity.get(model or "", {})}
    return replace(ladder, **{name: number or None for name, number in chosen.items()})
