"""Meter of an agent's context while it works, and the rungs that are due at the next boundary."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from segue.model.agents import AgentConfiguration, Choices
from segue.model.codec import decode
from segue.model.events import AgentEvent, CapacityReached, TurnEnded, UsageReported
from segue.orchestrator.run.lease import Lease
from segue.protocol import estimates, windows
from segue.protocol.capacity import Gauge, Ladder, Notice, Reached, Rung, climb, ladder_for
from segue.protocol.estimates import Estimate

log = logging.getLogger("segue")

LEFT_TO_COMPACTION = ("fork", "pause", "force")
"""Rungs that an agent which compacts by itself has only if they are set for it."""
WINDOW = ("known_window",)
NO_VALUES: Mapping[str, float] = {}
REPORTED_ONCE = frozenset({Rung.SNAPSHOT_BEFORE_COMPACTION, Rung.WARN})
"""Rungs that have no effect at a boundary, so that a run that goes on need not report them again."""


class Capacity:
    """Climbs the ladder with each report of usage, and remembers what is due at the next boundary."""

    def __init__(
        self, lease: Lease, agent: AgentConfiguration, *, joined: bool, before: Sequence[UsageReported] = ()
    ) -> None:
        """Prepare the ladder of a conversation and climb it with the earlier usage reports `before`, oldest first.
        `joined`: an unknown window was reported already."""
        self._general = lease.services.rules.capacity
        self._agent = agent
        self._chosen = decode(Choices, lease.workflow.choices).model
        self._reported: str | None = None
        self._ladder = ladder_of(self._general, agent, self._chosen)
        # An unknown window was reported when the conversation began.
        self._gauge = Gauge(unknown_reported=True) if joined else Gauge(highest=0)
        self._estimate = Estimate()
        self.hand_over: Reached | None = None
        """The soft cap: at the next boundary a new session goes on."""
        for report in before:
            self._estimate = estimates.add_report(self._estimate, report)
            self._climb(report)
        self._gauge = replace(self._gauge, reached=self._gauge.reached & REPORTED_ONCE)

    def prompted(self, text: str) -> None:
        """Add the text of a prompt to the estimate of the context's size."""
        self._estimate = estimates.add_prompt(self._estimate, text)

    def estimate(self, event: AgentEvent) -> UsageReported | None:
        """Add an event to the estimate; return the estimated usage at the end of a turn if a report is due, else
        None."""
        self._estimate = estimates.add_event(self._estimate, event)
        return estimates.due_report(self._estimate) if isinstance(event, TurnEnded) else None

    def measure(self, report: UsageReported) -> tuple[Notice, ...]:
        """Apply a usage report to the ladder and return the notices that follow, the highest rung last; set or clear
        `hand_over`."""
        notices = self._climb(report)
        for each in notices:
            if isinstance(each, Reached) and each.rung is Rung.FORK:
                self.hand_over = each
                log.info("[segue] Context budget reached")
        if self.hand_over is not None and Rung.FORK not in self._gauge.reached:
            # The agent has made room by itself.
            self.hand_over = None
        return notices

    def _climb(self, report: UsageReported) -> tuple[Notice, ...]:
        """Apply a report to the ladder, which is rebuilt first if the agent reports another model; return the
        notices."""
        # A report without the context's size may be about another model that the agent uses beside its own.
        if report.context_tokens is not None and report.model not in (None, self._reported):
            self._reported = report.model
            self._ladder = ladder_of(self._general, self._agent, self._chosen, self._reported)
        self._gauge, notices = climb(self._ladder, self._gauge, report)
        return notices


def event_of(reached: Reached) -> CapacityReached:
    """Build the event that a rung of the capacity ladder was reached."""
    tokens, window = reached.context_tokens, reached.window
    return CapacityReached(rung=reached.rung, context_tokens=tokens, window=window, estimated=reached.estimated)


def ladder_of(
    general: Mapping[str, float], agent: AgentConfiguration, chosen: str | None, reported: str | None = None
) -> Ladder:
    """Return the ladder of an agent's model: values for the model take precedence over values for the agent, and those
    over the general ones.

    The model is the chosen one, under that name or under the name that the agent reports.
    """
    names = [name for name in (chosen, reported) if name is not None]
    ladder = ladder_for(agent, next((name for name in names if windows.window(name)), None))
    model = next((values for name in names if (values := agent.model_capacity.get(name)) is not None), NO_VALUES)
    better_known = (*(LEFT_TO_COMPACTION if agent.compacts else ()), *(WINDOW if ladder.known_window else ()))
    ours = {name: number for name, number in general.items() if name not in better_known}
    values = {**ours, **agent.capacity, **model}
    return replace(ladder, **{name: number or None for name, number in values.items()})
