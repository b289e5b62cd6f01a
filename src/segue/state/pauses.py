"""Requested pauses: which one holds when several are requested."""

from dataclasses import dataclass, replace
from datetime import datetime

from segue.model.status import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedPause:
    """Pause that a run makes at its next boundary."""

    trigger: Trigger
    reason: str
    force_at: datetime
    """Time after which the pause does not wait for the boundary."""


def combine_pauses(before: RequestedPause | None, asked: RequestedPause) -> RequestedPause:
    """Return the pause that holds from now on.

    A pause can only come sooner. The pause of a limit is withdrawn when the limit is raised, so the request of a person
    takes its place, and is not replaced by it.
    """
    if before is None:
        return asked
    sooner = asked.force_at < before.force_at
    of_a_person = before.trigger is Trigger.PAUSE
    kept = asked if not of_a_person and (sooner or asked.trigger is Trigger.PAUSE) else before
    return replace(kept, force_at=min(before.force_at, asked.force_at))
