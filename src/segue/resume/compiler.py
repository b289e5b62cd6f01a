"""The compiler: from facts to the text that the successor reads, within a budget of tokens.

Pure: the same facts give the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from segue.model.contexts import ContextLine, ContextSection
from segue.model.facts import SessionFacts
from segue.resume import handover as h
from segue.resume.budget import UNKNOWN_WINDOW, Choice, Item, choose
from segue.resume.sections import CAPS, NONE, REQUEST, RULES, SAID, STORY, TITLES, items
from segue.resume.tokens import MARGIN, tokens, weigh
from segue.resume.worth import subjects, words

DEFAULT_BUDGET = UNKNOWN_WINDOW
HEAD = "## Session Resume Context"
USERS = frozenset({REQUEST, RULES, SAID})
OPENING = 5.0
"""Tokens around a title: the empty line before it, and the mark of what was left out after its section."""
FILLING_ROUNDS, TRIMMING_ROUNDS = 3, 12
LEAST_LEFT = 25
WANTED = 0.6
"""Added value of an item that answers a question which the context failed."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Findings of an examiner about a context."""

    missing: Sequence[str] = ()
    """Texts that it should hold."""
    wrong: Sequence[str] = ()
    """Lines that the record contradicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeContext:
    """The text that the successor reads, and what it takes."""

    text: str
    tokens: int
    budget: int
    sections: tuple[ContextSection, ...] = ()

    @property
    def left_out(self) -> int:
        return sum(section.left_out for section in self.sections)


def compile_context(
    facts: SessionFacts,
    budget: int = DEFAULT_BUDGET,
    handover: h.Handover | None = None,
    repair: Repair | None = None,
) -> ResumeContext:
    """Return the best context within the budget; `handover` adds a workflow's knowledge, `repair` what an exam
    found."""
    offered = _offered(facts, budget, handover, repair or Repair())
    titles = TITLES if handover is None else {**h.TITLES, **TITLES}
    titles = {name: titles[name] for name in (h.ORDER if handover else TITLES)}
    needed = sum(item.cost for item in offered if item.must) * MARGIN
    heading = _heading(facts, handover, budget, needed > budget)
    room = budget / MARGIN - weigh(heading) - 2 - _none(offered)
    overhead = {name: weigh(title) + OPENING for name, title in titles.items()}
    caps = {name: share * budget for name, share in CAPS.items()}
    about = subjects(facts)
    text, sections, used = "", (), 0
    for attempt in range(FILLING_ROUNDS + TRIMMING_ROUNDS):
        choice = Choice(room=room, caps=caps, overhead=overhead, subjects=about)
        choose(offered, choice)
        sections = tuple(_sections(offered, choice.chosen, titles))
        text = _rendered(heading, sections)
        used = tokens(text)
        spare = budget - used
        if spare < 0 and needed <= budget:
            room += spare / MARGIN - 2 * (attempt + 1)
        elif attempt < FILLING_ROUNDS and spare > LEAST_LEFT and len(choice.chosen) < len(offered):
            room += spare / MARGIN - 3
        else:
            break
    return ResumeContext(text=text, tokens=used, budget=budget, sections=sections)


def document(context: ResumeContext) -> Mapping[str, object]:
    """Return a context as JSON fields: its sections with the sources of each line."""
    return {
        "context": context.text,
        "tokens": context.tokens,
        "budget": context.budget,
        "sections": [
            {
                "name": section.name,
                "title": section.title,
                "lines": [{"text": line.text, "sources": list(line.sources)} for line in section.lines],
                "left_out": section.left_out,
            }
            for section in context.sections
        ],
    }


def _offered(facts: SessionFacts, budget: int, handover: h.Handover | None, repair: Repair) -> list[Item]:
    """Return the items to choose from, with the handover's, without those found wrong, and missing ones raised in
    value."""
    found = items(facts, budget)
    if handover is not None:
        found = [*h.items(handover, budget), *(item for item in found if not h.known_better(item, handover))]
    if repair.wrong:
        # The words of the user stay, whatever an examiner finds.
        found = [each for each in found if each.section in USERS or not any(each.text in line for line in repair.wrong)]
    if repair.missing:
        asked = [words(each) for each in repair.missing]
        found = [replace(item, value=item.value + WANTED) if _answers(item, asked) else item for item in found]
    return found


def _answers(item: Item, asked: Sequence[frozenset[str]]) -> bool:
    """Return True if an item has most of the words of one missing answer."""
    return bool(item.words) and any(each and len(each & item.words) >= 0.6 * len(each) for each in asked)


def _none(offered: Sequence[Item]) -> float:
    """Return the tokens of the lines that stand for sections without any item."""
    present = {item.section for item in offered}
    return sum(weigh(text) + OPENING for name, text in NONE.items() if name not in present)


def _heading(facts: SessionFacts, handover: h.Handover | None, budget: int, over: bool) -> str:
    """Return the context's first lines, with a warning if what must stand needs more than the budget."""
    where = f" in {facts.directory}" if facts.directory else ""
    begins = handover.heading if handover else f"You take over work{where} that another session began."
    source = "an event of its journal" if handover else "a line of the session's file"
    warning = (
        f"The user's rules and the request alone need more than the {budget} tokens asked for; all of them stand "
        f"here.\n"
        if over
        else ""
    )
    command = "" if handover else ", `segue context FILE --expand n` prints it in full"
    return f"{warning}{HEAD}\n{begins} `#n` is {source}{command}; `…` marks a cut."


def _sections(offered: Sequence[Item], chosen: Sequence[Item], titles: Mapping[str, str]) -> Iterator[ContextSection]:
    """Yield the sections with the chosen items in order, and the count and tokens of what was left out."""
    told: dict[str, list[Item]] = {}
    for item in chosen:
        told.setdefault(item.section, []).append(item)
    whole: dict[str, list[Item]] = {}
    for item in offered:
        whole.setdefault(item.section, []).append(item)
    for name, title in titles.items():
        members = sorted(told.get(name, ()), key=lambda item: item.order)
        offers = whole.get(name, ())
        if not offers:
            if name in NONE:
                yield ContextSection(name=name, title=title, lines=(ContextLine(text=NONE[name]),))
            continue
        missing = len(offers) - len(members)
        cut = sum(item.cost for item in offers) - sum(item.cost for item in members) if missing else 0
        lines = (
            _flowing(members)
            if name == STORY
            else (ContextLine(text=item.text, sources=item.sources) for item in members)
        )
        yield ContextSection(name=name, title=title, lines=tuple(lines), left_out=missing, left_out_tokens=int(cut))


def _flowing(members: Sequence[Item]) -> Iterator[ContextLine]:
    """Yield one line for each message, with a mark where sentences of it were left out."""
    text, before = "", None
    for item in members:
        if before is not None and item.order[0] == before.order[0]:
            ended = text.endswith((".", "!", "?", ":", ";", "。"))
            gap = (" " if ended else "; ") if item.order[1] == before.order[1] + 1 else " … "
            text += gap + item.text
        else:
            if before is not None:
                yield ContextLine(text=text, sources=before.sources)
            text = item.text
        before = item
    if before is not None:
        yield ContextLine(text=text, sources=before.sources)


def _rendered(heading: str, sections: Sequence[ContextSection]) -> str:
    """Return the context as text."""
    parts = [heading]
    for section in sections:
        source = (
            f" (#{section.lines[0].sources[0]})"
            if section.name == REQUEST and section.lines and section.lines[0].sources
            else ""
        )
        parts.append(f"\n### {section.title}{source}")
        parts += [_line(section, line) for line in section.lines]
        if section.left_out:
            parts.append(f"… and {section.left_out} more (about {section.left_out_tokens} tokens)")
    return "\n".join(parts) + "\n"


def _line(section: ContextSection, line: ContextLine) -> str:
    """Return a line with the number of its source, unless it has none or the section's title has it."""
    if not line.sources or section.name == REQUEST:
        return line.text
    if section.name == STORY:
        return f"#{line.sources[0]} {line.text}"
    return f"{line.text} (#{line.sources[0]})"
