"""The compiler: from facts to what the successor reads, within a budget of tokens. Pure: same facts, same bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from segue.model.facts import SessionFacts
from segue.model.naming import names_in
from segue.resume import handover as h
from segue.resume.budget import Candidate, Choice, Piece, candidates, choose
from segue.resume.sections import BRANCH, NEXT, PROPOSED, REQUEST, SAID, SUMMARY, TITLES, pieces
from segue.resume.tokens import MARGIN, tokens, weigh

DEFAULT_BUDGET = 4000
NAMES_WORTH = 0.8
"""What all the names together are worth, in the unit in which sections are."""
FLOWING = frozenset({REQUEST, SAID, PROPOSED, SUMMARY, NEXT})
"""Sections that are told as running text."""
HEAD = "## Session Resume Context"
CUTS = "`…` marks a cut"
GUIDE = f"{CUTS}, `#n` a transcript line."
TOP_UPS = 2
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Everything that could be told, before it is known how much room there is."""

    head: str
    offered: Sequence[Piece]
    candidates: Sequence[Candidate]
    weights: Mapping[str, float]
    available: Mapping[str, int]
    """How many things each section could tell."""


def compile_context(
    facts: SessionFacts,
    budget: int = DEFAULT_BUDGET,
    handover: h.Handover | None = None,
    extra: Mapping[str, float] | None = None,
) -> ResumeContext:
    """The best context within the budget; `extra` is what some pieces, by their text, are worth besides."""
    return compile_draft(draft(facts, handover), budget, extra or {})


def draft(facts: SessionFacts, handover: h.Handover | None = None) -> Draft:
    offered, weights = _offered(facts, handover), name_weights(facts)
    return Draft(
        head=_heading(facts, handover),
        offered=offered,
        candidates=candidates(offered, weights),
        weights=weights,
        available=_available(offered),
    )


def compile_draft(draft: Draft, budget: int, extra: Mapping[str, float]) -> ResumeContext:
    choice = Choice(
        weights=draft.weights,
        overhead={section: weigh(title) + OPENING for section, title in TITLES.items()},
        budget=budget / MARGIN - weigh(draft.head) - 2,
        waiting=list(draft.candidates),
        extra=extra,
    )
    choose(choice)
    text = _rendered(draft, choice.chosen)
    for _ in range(TOP_UPS):
        # What a section costs besides its pieces is known only now.
        choice.budget = choice.used + budget / MARGIN - weigh(text) - 1
        choose(choice)
        text = _rendered(draft, choice.chosen)
    while choice.chosen and tokens(text) > budget:
        # The last ones taken brought least for their tokens.
        choice.chosen.pop()
        text = _rendered(draft, choice.chosen)
    left_out = sum(draft.available.values()) - len(choice.chosen)
    return ResumeContext(text=text, tokens=tokens(text), budget=budget, left_out=left_out)


def name_weights(facts: SessionFacts) -> dict[str, float]:
    whole = sum(name.weight for name in facts.names) or 1.0
    return {key: NAMES_WORTH * name.weight / whole for name in facts.names for (key, _, _), _ in names_in(name.name)}


def _offered(facts: SessionFacts, handover: h.Handover | None) -> list[Piece]:
    found = pieces(facts)
    if handover is None:
        return found
    return [*h.pieces(handover), *(piece for piece in found if not _known_better(piece, handover))]


def _known_better(piece: Piece, handover: h.Handover) -> bool:
    """The issue is the request in the words in which it was filed; the branch is read anew."""
    return piece.section == REQUEST or (handover.git is not None and piece.text.startswith(BRANCH))


def _heading(facts: SessionFacts, handover: h.Handover | None) -> str:
    if handover is not None:
        return f"{HEAD}\n\n{handover.heading} {CUTS}, `#n` an event of its journal."
    where = f" in {facts.directory}" if facts.directory else ""
    return f"{HEAD}\n\nYou take over work{where}. {GUIDE}"


def _available(offered: Iterable[Piece]) -> dict[str, int]:
    slots: dict[str, set[str]] = {}
    for index, piece in enumerate(offered):
        slots.setdefault(piece.section, set()).add(piece.slot or f"#{index}")
    return {section: len(found) for section, found in slots.items()}


def _rendered(draft: Draft, chosen: Sequence[Piece]) -> str:
    told: dict[str, list[Piece]] = {}
    for piece in chosen:
        told.setdefault(piece.section, []).append(piece)
    parts, before = [draft.head], ""
    for section, title in TITLES.items():
        if section not in told:
            continue
        if title != before:
            parts.append(f"\n{title}")
        before = title
        members = sorted(told[section], key=lambda piece: piece.order)
        parts += _flowing(members) if section in FLOWING else _listed(members)
        if missing := draft.available[section] - len(members):
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
            yield from (f" {piece.text}" for piece in members)
        else:
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
