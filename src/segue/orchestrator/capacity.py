"""How full an agent's context is while it works, and what follows from that."""

import logging
from dataclasses import replace

from segue.model.agents import AgentConfiguration, Choices
from segue.model.codec import decode
from segue.model.events import CapacityReached, UsageReported
from segue.orchestrator.tenure import Tenure
from segue.protocol.capacity import Gauge, Ladder, Notice, Reached, Rung, climb, ladder_for

log = logging.getLogger("segue")


class Capacity:
    """Climbs the ladder with each report of usage, and remembers what is due at the next boundary."""

    def __init__(self, tenure: Tenure, agent: AgentConfiguration, *, joined: bool) -> None:
        self._ladder = _ladder(agent, decode(Choices, tenure.workflow.choices).model)
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


def _ladder(agent: AgentConfiguration, model: str | None) -> Ladder:
    ladder = ladder_for(agent, model)
    chosen = {name: share or None for name, share in agent.capacity.items()}
    return replace(ladder, **chosen)
