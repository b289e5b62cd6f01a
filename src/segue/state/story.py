"""What belongs to a workflow's story: its journal without what was undone."""

from collections.abc import Sequence
from dataclasses import dataclass

from segue.model.events import Stretch
from segue.model.ids import NOTHING_SEEN, Seq


@dataclass(frozen=True, slots=True)
class Rewind:
    """At event `at`, the work was taken back to where it stood after event `after`."""

    at: Seq
    after: Seq


def story(rewinds: Sequence[Rewind], until: Seq) -> tuple[Stretch, ...]:
    """What was known when event `until` was written, oldest first.

    Whoever goes back knows again what was known at the point gone back to, and what has happened since going back. So
    the last going back before `until` decides, then the last one before the point that it went back to, and so on:
    going back to a point that was undone brings back what was known there, and nothing else.
    """
    found: list[Stretch] = []
    while rewinds := [rewind for rewind in rewinds if rewind.at <= until]:
        last = rewinds[-1]
        found.append(Stretch(Seq(last.at - 1), until))
        # Only an earlier point can be gone back to; a journal that says otherwise must not be read for ever.
        until = min(last.after, Seq(last.at - 1))
    return (Stretch(NOTHING_SEEN, until), *reversed(found))
