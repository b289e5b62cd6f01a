"""Facts of a session, read from its transcript: one pass, no model, no I/O.

`facts_of(lines)` takes up every line once and in order; its cost grows with the length of the transcript, not faster.
"""

from collections.abc import Iterable

from segue.model.facts import SessionFacts
from segue.model.transcript import Line
from segue.snapshot.facts.collector import Collector

__all__ = ["Collector", "facts_of"]


def facts_of(lines: Iterable[Line]) -> SessionFacts:
    """Return the facts of a session from its lines."""
    collector = Collector()
    for line in lines:
        collector.hear(line)
    return collector.facts()
