"""From a transcript to what is known of it: one pass, no model, no I/O.

`facts_of(lines)` hears every line once and in order; what it keeps is bounded, and its cost grows with the length of
the transcript and not faster.
"""

from collections.abc import Iterable

from segue.model.facts import SessionFacts
from segue.model.transcript import Line
from segue.snapshot.facts.collector import Collector

__all__ = ["Collector", "facts_of"]


def facts_of(lines: Iterable[Line]) -> SessionFacts:
    collector = Collector()
    for line in lines:
        collector.hear(line)
    return collector.facts()
