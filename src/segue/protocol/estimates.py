"""How full the window of an agent is that says nothing of it: counted from what it was told, said and did.

It is an estimate. What the agent is told by its own maker is not in it, nor what it left out or summed up unseen.
"""

import json
from dataclasses import dataclass, replace

from segue.model.events import AgentEvent, TextDelta, ToolCalled, ToolFinished, UsageReported

CHARACTERS_PER_TOKEN = 4
LONGEST_OUTPUT = 30_000
"""Characters of a tool's output that count: agents cut what is longer before their model sees it."""
REPORT_AFTER = 2_000
"""Tokens more than the last time, from which on an estimate is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one conversation is reckoned to hold."""

    characters: int = 0
    reported: int = 0
    """Tokens that were given as the last estimate."""
    measured: bool = False
    """The agent tells by itself, so nobody has to reckon."""
    model: str | None = None
    """Who was asked the most in the turn, as far as the agent told."""
    model_tokens: int = 0
    """Tokens that this model was asked."""

    @property
    def tokens(self) -> int:
        return self.characters // CHARACTERS_PER_TOKEN


def add_prompt(estimate: Estimate, text: str) -> Estimate:
    """The agent got a prompt, and a turn begins."""
    return replace(_more(estimate, len(text)), model=None, model_tokens=0)


def add_event(estimate: Estimate, event: AgentEvent) -> Estimate:
    """The agent said or did something."""
    match event:
        case TextDelta(text=text):
            return _more(estimate, len(text))
        case ToolCalled():
            return _more(estimate, len(event.title) + len(json.dumps(event.input, ensure_ascii=False)))
        case ToolFinished(output=output):
            return _more(estimate, min(len(output), LONGEST_OUTPUT))
        case UsageReported():
            return add_report(estimate, event)
        case _:
            return estimate


def add_report(estimate: Estimate, report: UsageReported) -> Estimate:
    """A report came, or is found in the journal where the conversation goes on."""
    if report.estimated:
        tokens = report.context_tokens or 0
        return replace(estimate, characters=tokens * CHARACTERS_PER_TOKEN, reported=tokens)
    if report.context_tokens:
        return replace(estimate, measured=True)
    if report.model is not None and (tokens := report.input_tokens or 0) >= estimate.model_tokens:
        return replace(estimate, model=report.model, model_tokens=tokens)
    return estimate


def due_report(estimate: Estimate) -> UsageReported | None:
    """What is to be said at the end of a turn, if anything."""
    if estimate.measured or estimate.tokens < estimate.reported + REPORT_AFTER:
        return None
    return UsageReported(context_tokens=estimate.tokens, estimated=True, model=estimate.model)


def _more(estimate: Estimate, characters: int) -> Estimate:
    return replace(estimate, characters=estimate.characters + characters)
