"""The next step of a run between two turns, as a pure function."""

from dataclasses import dataclass

from segue.model.plan import Plan, Planning, Task
from segue.model.status import Purpose, Trigger
from segue.protocol.budgets import LimitReached


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that the next step of a run depends on."""

    purpose: Purpose
    message_waits: bool = False
    """A person's message waits that the agent can take."""
    pause: LimitReached | None = None
    """The pause that was requested."""
    task: Task | None = None
    """The next task that is ready."""
    planning: Planning | None = None
    """Set while a plan is to be made or approved."""
    agent_plans: bool = True
    """The agent can be asked for a plan."""
    used_up: LimitReached | None = None
    """The limit that the work has reached."""
    full: str | None = None
    """Why the next session has to take over: the context has reached its soft cap."""


@dataclass(frozen=True, slots=True)
class TakeMessage:
    """Send the messages that wait."""


@dataclass(frozen=True, slots=True)
class Complete:
    """End the run: everything is done."""


@dataclass(frozen=True, slots=True)
class Pause:
    """End the run, to be resumed later."""

    why: LimitReached


@dataclass(frozen=True, slots=True)
class AwaitMessage:
    """Keep the agent ready for a person's next message."""


@dataclass(frozen=True, slots=True)
class AwaitApproval:
    """End the run until a person approves the plan."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class HandOver:
    """End the run; a new session goes on."""

    reason: str


@dataclass(frozen=True, slots=True)
class AskForPlan:
    """Ask the agent for a plan."""


@dataclass(frozen=True, slots=True)
class AdoptPlan:
    """Go on without asking for a plan, since the agent makes none."""


@dataclass(frozen=True, slots=True)
class Work:
    """Send the next task."""

    task: Task


Step = TakeMessage | Complete | Pause | AwaitMessage | AwaitApproval | HandOver | AskForPlan | AdoptPlan | Work


def next_step(now: Situation) -> Step:
    """Choose what a run does next between two turns: people first, then pauses and limits, then the plan."""
    nothing_left = now.task is None and now.planning is None
    proposed = now.planning.proposed if now.planning else None
    if now.message_waits and now.pause is None:
        return TakeMessage()
    if nothing_left and not now.message_waits and now.purpose is Purpose.WORK:
        return Complete()
    # A plan that waits for approval costs nothing, so a full context is no reason to pause it.
    if now.pause is not None and not (proposed and now.pause.trigger is Trigger.EXHAUSTION):
        return Pause(now.pause)
    if nothing_left or now.purpose is Purpose.TALK:
        return AwaitMessage()
    if proposed is not None:
        return AwaitApproval(proposed)
    if now.used_up is not None:
        return Pause(now.used_up)
    if now.full is not None:
        return HandOver(now.full)
    if now.planning is not None:
        return AskForPlan() if now.agent_plans else AdoptPlan()
    assert now.task is not None, "nothing else is left to do"
    return Work(now.task)
