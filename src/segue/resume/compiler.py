"""The compiler: from facts to what the successor reads, within a budget of tokens. Pure: same facts, same bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from segue.model.facts import SessionFacts
from segue.model.naming import names_in
from segue.resume import handover as h
from segue.resume.budget import Choice, Piece, choose
from segue.resume.sections import NEXT, PROPOSED, REQUEST, SAID, SUMMARY, TITLES, pieces
from segue.resume.tokens import MARGIN, tokens, weigh

DEFAULT_BUDGET = 4000
NAMES_WORTH = 0.8
"""What all the names together are worth, in the unit in which sections are."""
FLOWING = frozenset({REQUEST, SAID, PROPOSED, SUMMARY, NEXT})
"""Sections that are told as running text."""
HEAD = "## Session Resume Context"
GUIDE = "`…` marks a cut, `#n` a transcript line."
OPENING = 4.0
"""Tokens around a title: the empty line before it, and the mark of what was left out after its section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeContext:
    """What the successor reads, and what it takes."""

    text: str
    tokens: int
    budget: int
    left_out: int
    """Pieces that did not fit."""


def compile_context(
    facts: SessionFacts,
    budget: int = DEFAULT_BUDGET,
    handover: h.Handover | None = None,
    extra: Mapping[str, float] | None = None,
) -> ResumeContext:
    """The best context within the budget; `extra` is what some pieces, by their text, are worth besides."""
    candidates = _candidates(facts, handover, extra or {})
    head = _heading(facts, handover)
    choice = Choice(
        weights=name_weights(facts),
        overhead={section: weigh(title) + OPENING for section, title in TITLES.items()},
        budget=budget / MARGIN - weigh(head) - 2,
    )
    kept = choose(candidates, choice).chosen
    available = _available(candidates)
    text = _rendered(head, kept, available)
    while kept and tokens(text) > budget:
        # The last ones taken brought least for their tokens.
        kept.pop()
        text = _rendered(head, kept, available)
    left_out = sum(available.values()) - len(kept)
    return ResumeContext(text=text, tokens=tokens(text), budget=budget, left_out=left_out)


def name_weights(facts: SessionFacts) -> dict[str, float]:
    whole = sum(name.weight for name in facts.names) or 1.0
    return {key: NAMES_WORTH * name.weight / whole for name in facts.names for (key, _, _), _ in names_in(name.name)}


def _candidates(facts: SessionFacts, handover: h.Handover | None, extra: Mapping[str, float]) -> list[Piece]:
    found = pieces(facts)
    if handover is not None:
        # The issue is the request, in the words in which it was filed.
        found = [piece for piece in found if piece.section != REQUEST]
        found = [*h.pieces(handover), *found]
    if not extra:
        return found
    return [replace(piece, value=piece.value + extra.get(piece.text, 0.0)) for piece in found]


def _heading(facts: SessionFacts, handover: h.Handover | None) -> str:
    if handover is not None:
        return f"{HEAD}\n\n{handover.heading} {GUIDE}"
    where = f" in {facts.directory}" if facts.directory else ""
    return f"{HEAD}\n\nYou take over work{where}. {GUIDE}"


def _available(candidates: Iterable[Piece]) -> dict[str, int]:
    """How many things each section could tell."""
    slots: dict[str, set[str]] = {}
    for index, piece in enumerate(candidates):
        slots.setdefault(piece.section, set()).add(piece.slot or f"#{index}")
    return {section: len(found) for section, found in slots.items()}


def _rendered(head: str, chosen: Sequence[Piece], available: Mapping[str, int]) -> str:
    told: dict[str, list[Piece]] = {}
    for piece in chosen:
        told.setdefault(piece.section, []).append(piece)
    parts, before = [head], ""
    for section, title in TITLES.items():
        if section not in told:
            continue
        if title != before:
            parts.append(f"\n{title}")
        before = title
        members = sorted(told[section], key=lambda piece: piece.order)
        parts += _flowing(members) if section in FLOWING else _listed(members)
        if missing := available[section] - len(members):
            parts.append(f"… {missing} more")
    return "\n".join(parts) + "\n"


def _listed(told: Sequence[Piece]) -> Iterator[str]:
    """One line for each piece; those of a group stand under its name, where its last one would stand."""
    groups: dict[str, list[Piece]] = {}
    for index, piece in enumerate(told):
        groups.setdefault(piece.group or f"#{index}", []).append(piece)
    for members in sorted(groups.values(), key=lambda members: members[-1].order):
        if members[0].group:
            yield f"{members[0].group}:"
        yield from (piece.text for piece in members)


def _flowing(told: Sequence[Piece]) -> list[str]:
    """Running text, one paragraph for each message, with a mark where something was left out."""
    lines: list[str] = []
    for before, piece in zip([None, *told], told, strict=False):
        *message, index = piece.order
        if before is not None and list(before.order[:-1]) == message:
            gap = " " if index == before.order[-1] + 1 else " … "
            lines[-1] += gap + piece.text
        else:
            lines.append(f"- {piece.text}" if message else piece.text)
    return lines
