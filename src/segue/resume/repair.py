"""Compile, examine, repair: falsehoods go first, then what is missing comes in where there is room.

The examiner is passed in: it is made from the raw record, by code that this package does not know.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from segue.model.facts import SessionFacts
from segue.resume.compiler import Repair, ResumeContext, compile_context
from segue.resume.handover import Handover

ROUNDS = 2


class Examination(Protocol):
    """Result of an examination of a text."""

    @property
    def score(self) -> float: ...
    @property
    def wanted(self) -> Sequence[str]: ...
    @property
    def wrong(self) -> Sequence[str]: ...


V = TypeVar("V", bound=Examination)


def compile_repaired(
    facts: SessionFacts, budget: int, examine: Callable[[str], V], handover: Handover | None = None
) -> tuple[ResumeContext, V]:
    """Return the best context found and its exam: it is compiled again with the exam's findings while that helps."""
    context = compile_context(facts, budget, handover)
    verdict = examine(context.text)
    wrong: tuple[str, ...] = ()
    for _ in range(ROUNDS):
        if not verdict.wrong and (not verdict.wanted or not context.left_out):
            break
        wrong = (*wrong, *verdict.wrong)
        other = compile_context(facts, budget, handover, Repair(missing=verdict.wanted, wrong=wrong))
        again = examine(other.text)
        if (len(again.wrong), -again.score) >= (len(verdict.wrong), -verdict.score):
            break
        context, verdict = other, again
    return context, verdict
