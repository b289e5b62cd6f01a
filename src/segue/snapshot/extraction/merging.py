"""From an answer to findings: what was really said gets in, and joins what the rules had found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain

from segue.model.findings import Decision, ErrorRecord, Extractor, Findings
from segue.model.ids import Seq
from segue.snapshot.extraction.answer import ExtractedDecision, ExtractedError, ExtractionResult
from segue.snapshot.extraction.messages import Spoken
from segue.snapshot.facts.decisions import MOST_DECISIONS
from segue.snapshot.facts.text import flattened

SHORTEST_QUOTE = 8
"""Fewer characters are found by chance."""
LONGEST_TEXT = 600
MOST_ALTERNATIVES = 6
MOST_ERRORS = 40
# Characters that are often not copied as they were. One for one, so that places stay the same.
_ALIKE = str.maketrans("‘’“”‹–—`", "''\"\"<--'")
_AROUND = " .…\"'"


def enriched(rules: Findings, answer: ExtractionResult, messages: Sequence[Spoken], by: Extractor) -> Findings:
    """Return the findings by rule with the answer's additions; entries with invented quotes are left out and
    counted."""
    said = _Said(messages)
    decisions = [_decision(each, said) for each in answer.decisions]
    errors = [_error(each, said) for each in answer.errors]
    left_out = decisions.count(None) + errors.count(None)
    return replace(
        rules,
        by=by,
        decisions=_with_decisions(rules.decisions, [each for each in decisions if each]),
        errors=_with_errors(rules.errors, [each for each in errors if each]),
        problem=" ".join(filter(None, [rules.problem, _told(left_out, len(decisions) + len(errors))])),
    )


def _told(left_out: int, all_of_them: int) -> str:
    """Return how many entries of the answer were left out; an empty text for none."""
    if not left_out:
        return ""
    return f"{left_out} of {all_of_them} entries of the answer were left out: nobody said the words that they quote."


# ── what was really said ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Place:
    """Words as they were said, and where."""

    message: Spoken
    words: str


class _Said:
    """Looks quotes up. Space, and the shape of quotation marks, do not matter; all else does."""

    def __init__(self, messages: Sequence[Spoken]) -> None:
        """Prepare the messages for the search."""
        texts = [(message, flattened(message.text)) for message in messages]
        self._texts = [(message, text, _alike(text)) for message, text in texts]

    def find(self, quote: str, event: int | None = None, after: Seq | None = None) -> _Place | None:
        """Return the place of a quote in the named event, else in the first message that has it; None if nowhere or too
        short."""
        wanted = _alike(quote)
        return self._search(wanted, event, after) or self._search(wanted.strip(_AROUND), event, after)

    def _search(self, wanted: str, event: int | None, after: Seq | None) -> _Place | None:
        """Return the first place of a text, in the named event first and after event `after`; None if there is none."""
        if len(wanted) < SHORTEST_QUOTE:
            return None
        named = (each for each in self._texts if each[0].seq == event)
        for message, text, alike in chain(named, self._texts):
            place = alike.find(wanted)
            if place >= 0 and (after is None or message.seq > after):
                return _Place(message, text[place : place + len(wanted)])
        return None


def _alike(text: str) -> str:
    """Return text with collapsed space and uniform quotation marks, for comparison."""
    return flattened(text).translate(_ALIKE)


def _decision(told: ExtractedDecision, said: _Said) -> Decision | None:
    """Return a decision of the answer, with its source; None if no message has its quote."""
    place = said.find(told.quote, told.event)
    if place is None:
        return None
    message = place.message
    taken_back = said.find(told.taken_back, after=message.seq)
    return Decision(
        id=f"decision-{message.seq}-{_mark(place.words)}",
        timestamp=message.at,
        task_id=message.task_id,
        decision_type=told.decision_type,
        description=_bounded(told.description) or place.words,
        rationale=_bounded(told.rationale),
        alternatives_considered=tuple(map(_bounded, told.alternatives_considered[:MOST_ALTERNATIVES])),
        quote=place.words,
        by="user" if message.role == "user" else "agent",
        seq=message.seq,
        superseded_by=taken_back.message.seq if taken_back else None,
    )


def _error(told: ExtractedError, said: _Said) -> ErrorRecord | None:
    """Return an error of the answer, with its source; None if no message has its words."""
    place = said.find(told.error_message, told.event)
    if place is None:
        return None
    return ErrorRecord(
        id=f"error-{place.message.seq}-{_mark(place.words)}",
        timestamp=place.message.at,
        task_id=place.message.task_id,
        error_type=_bounded(told.error_type),
        error_message=place.words,
        context=_bounded(told.context),
        resolution=told.resolution,
        resolution_notes=_bounded(told.resolution_notes),
        seq=place.message.seq,
    )


def _mark(words: str) -> str:
    """Return a short hash of a text, for ids."""
    return sha256(words.encode()).hexdigest()[:6]


def _bounded(text: str) -> str:
    """Return text on one line, cut at the limit."""
    text = flattened(text)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


# ── joining ─────────────────────────────────────────────────────────────────────────────────────────


def _with_decisions(base: Sequence[Decision], told: Sequence[Decision]) -> tuple[Decision, ...]:
    """Return the decisions with those of the answer, merged where they quote the same, by event; only the latest."""
    merged = list(base)
    for each in told:
        known = next((i for i, other in enumerate(merged) if _same(other.quote, each.quote)), None)
        if known is None:
            merged.append(each)
        else:
            merged[known] = _explained(merged[known], each)
    merged.sort(key=lambda each: each.seq or 0)
    return tuple(merged[-MOST_DECISIONS:])


def _explained(known: Decision, told: Decision) -> Decision:
    """Return the known decision with the answer's description; its quote and source stay."""
    return replace(
        known,
        decision_type=told.decision_type,
        description=told.description,
        rationale=told.rationale or known.rationale,
        alternatives_considered=told.alternatives_considered or known.alternatives_considered,
        superseded_by=known.superseded_by or told.superseded_by,
    )


def _with_errors(base: Sequence[ErrorRecord], told: Sequence[ErrorRecord]) -> tuple[ErrorRecord, ...]:
    """Return the errors with those of the answer, merged where the messages are the same, by event; only the latest."""
    merged = list(base)
    for each in told:
        known = next((i for i, other in enumerate(merged) if _same(other.error_message, each.error_message)), None)
        if known is None:
            merged.append(each)
        else:
            merged[known] = _noted(merged[known], each)
    merged.sort(key=lambda each: each.seq or 0)
    return tuple(merged[-MOST_ERRORS:])


def _noted(known: ErrorRecord, told: ErrorRecord) -> ErrorRecord:
    """Return the known error with the answer's context and notes; an answer may defer it or call it worked around, not
    fixed."""
    # Whether an error is gone was seen, or not seen, when its command ran again: an answer's word does not change that.
    went_round = known.resolution == "unresolved" and told.resolution in ("workaround", "deferred")
    return replace(
        known,
        context=known.context or told.context,
        resolution=told.resolution if went_round else known.resolution,
        resolution_notes=known.resolution_notes or told.resolution_notes,
    )


def _same(one: str, other: str) -> bool:
    """Return True if one of two texts contains the other; False if one is empty."""
    one, other = _alike(one), _alike(other)
    return bool(one and other) and (one in other or other in one)
