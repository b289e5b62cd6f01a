"""The compiler: from facts to what the successor reads, within a budget of tokens. Pure: same facts, same bytes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from segue.model.facts import SessionFacts
from segue.model.naming import names_in
from segue.resume.budget import Choice, Piece, choose
from segue.resume.sections import NEXT, REQUEST, SAID, SUMMARY, TITLES, pieces
from segue.resume.tokens import tokens, weigh

DEFAULT_BUDGET = 4000
NAMES_WORTH = 0.55
"""What all the names together are worth, measured in the same unit as the sections."""
FLOWING = frozenset({REQUEST, SAID, SUMMARY, NEXT})
"""Sections that are told as running text."""
HEAD = "## Session Resume Context"
GUIDE = "`…` marks a cut, `#n` a line of the transcript."


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeContext:
    """What the successor reads, and what it takes."""

    text: str
    tokens: int
    budget: int
    left_out: int
    """Pieces that did not fit."""


def compile_context(facts: SessionFacts, budget: int = DEFAULT_BUDGET) -> ResumeContext:
    candidates = pieces(facts)
    weights = name_weights(facts)
    overhead = {section: weigh(title) + 4 for section, title in TITLES.items()}
    head = heading(facts)
    room = budget - weigh(head) - 4
    choice = choose(candidates, Choice(weights=weights, overhead=overhead, budget=room))
    kept = list(choice.chosen)
    text = render(head, kept, candidates)
    while kept and tokens(text) > budget:
        kept.pop()
        text = render(head, kept, candidates)
    return ResumeContext(text=text, tokens=tokens(text), budget=budget, left_out=len(candidates) - len(kept))


def name_weights(facts: SessionFacts) -> dict[str, float]:
    whole = sum(name.weight for name in facts.names) or 1.0
    return {key: NAMES_WORTH * name.weight / whole for name in facts.names for (key, _, _), _ in names_in(name.name)}


def heading(facts: SessionFacts) -> str:
    where = f" in {facts.directory}" if facts.directory else ""
    return f"{HEAD}\n\nYou continue the work of an earlier session{where}. {GUIDE}"


def render(head: str, chosen: Sequence[Piece], candidates: Iterable[Piece]) -> str:
    available: dict[str, set[str]] = {}
    for index, piece in enumerate(candidates):
        available.setdefault(piece.section, set()).add(piece.slot or f"#{index}")
    parts = [head]
    for section, title in TITLES.items():
        told = sorted((piece for piece in chosen if piece.section == section), key=lambda piece: piece.order)
        if not told:
            continue
        missing = len(available[section]) - len(told)
        parts.append(f"\n{title}")
        parts.append(_flowing(told) if section in FLOWING else "\n".join(_listed(told)))
        if missing:
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


def _flowing(told: Sequence[Piece]) -> str:
    """Running text, one paragraph for each message, with a mark where something was left out."""
    lines: list[str] = []
    for before, piece in zip([None, *told], told, strict=False):
        *message, index = piece.order
        if before is not None and list(before.order[:-1]) == message:
            gap = " " if index == before.order[-1] + 1 else " … "
            lines[-1] += gap + piece.text
        else:
            lines.append(f"- {piece.text}" if message else piece.text)
    return "\n".join(lines)
