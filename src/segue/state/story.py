"""Valid history of a workflow: its journal without the events that rewinds undid."""

from collections.abc import Sequence
from dataclasses import dataclass

from segue.model.events import Stretch
from segue.model.ids import NOTHING_SEEN, Seq


@dataclass(frozen=True, slots=True)
class Rewind:
    """Rewind at event `at` to the state after event `after`."""

    at: Seq
    after: Seq


def story(rewinds: Sequence[Rewind], until: Seq) -> tuple[Stretch, ...]:
    """Return the ranges of events that were valid when event `until` was written, oldest first.

    A rewind restores the history that was valid at its target. So the last rewind before `until` decides, then the last
    one before its target, and so on: a rewind to an undone point restores the history of that point, and nothing else.
    """
    found: list[Stretch] = []
    while rewinds := [rewind for rewind in rewinds if rewind.at <= until]:
        last = rewinds[-1]
        found.append(Stretch(Seq(last.at - 1), until))
        # Only an earlier point can be gone back to; a journal that says otherwise must not be read for ever.
        until = min(last.after, Seq(last.at - 1))
    return (Stretch(NOTHING_SEEN, until), *reversed(found))
