"""Decisions by rule: sentences in which somebody chose, kept as quotes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from segue.model.facts import DecisionFact
from segue.model.naming import words
from segue.snapshot.facts.words import decision_type, takes_back

MOST_DECISIONS = 40
_TELLING = re.compile(r"[A-Za-z_][\w./-]{4,}")
_COMMON = words(
    "about after again already because before being could every first found going instead later leave other "
    "rather revert reverted really right should since still their there these thing think those would which "
    "while where without change changes"
)


@dataclass(slots=True)
class Decisions:
    """The decisions of a session, as they are made and taken back."""

    found: list[DecisionFact] = field(default_factory=list[DecisionFact])

    def asked(self, number: int, rules: Sequence[str]) -> None:
        for rule in rules:
            self._take_back(number, rule)
            self._add(DecisionFact(number=number, type="clarification", quote=rule, by="user"))

    def spoke(self, number: int, told: Sequence[str]) -> None:
        for sentence in told:
            self._take_back(number, sentence)
            if kind := decision_type(sentence):
                self._add(DecisionFact(number=number, type=kind, quote=sentence, by="agent"))

    def facts(self) -> tuple[DecisionFact, ...]:
        return tuple(self.found)

    def _add(self, decision: DecisionFact) -> None:
        if any(each.quote == decision.quote for each in self.found[-10:]):
            return
        self.found.append(decision)
        if len(self.found) > MOST_DECISIONS:
            # What was taken back goes first, then what is oldest.
            oldest = next((i for i, each in enumerate(self.found) if each.superseded_by), 0)
            del self.found[oldest]

    def _take_back(self, number: int, sentence: str) -> None:
        """A sentence that takes something back means the latest decision that speaks of the same things."""
        if not takes_back(sentence):
            return
        meant = _subject(sentence)
        for index in range(len(self.found) - 1, -1, -1):
            each = self.found[index]
            if not each.superseded_by and each.number < number and len(meant & _subject(each.quote)) >= 2:
                self.found[index] = replace(each, superseded_by=number)
                return


def _subject(sentence: str) -> frozenset[str]:
    return frozenset(word.lower().rstrip(".") for word in _TELLING.findall(sentence)) - _COMMON
