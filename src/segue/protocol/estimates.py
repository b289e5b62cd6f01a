"""Estimate of the context's size for an agent that does not report it, from its prompts, messages and tool calls.

The vendor's own instructions are not counted, nor does the estimate know what the agent dropped or summarised.
"""

import json
from dataclasses import dataclass, replace

from segue.model.events import AgentEvent, TextDelta, ToolCalled, ToolFinished, UsageReported

CHARACTERS_PER_TOKEN = 4
LONGEST_OUTPUT = 30_000
"""Maximum characters of a tool's output that count: agents cut longer ones before their model reads them."""
REPORT_AFTER = 2_000
"""Growth in tokens after which a new estimate is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimated size of one conversation."""

    characters: int = 0
    reported: int = 0
    """Tokens of the last reported estimate."""
    measured: bool = False
    """True if the agent reports the size itself, so that no estimate is needed."""
    model: str | None = None
    """Model with the most input in the turn, as far as the agent reported it."""
    model_tokens: int = 0
    """Input tokens of this model."""

    @property
    def tokens(self) -> int:
        """Return the estimated tokens, from the number of characters."""
        return self.characters // CHARACTERS_PER_TOKEN


def add_prompt(estimate: Estimate, text: str) -> Estimate:
    """Return the estimate with the characters of a prompt, with which a turn begins and the turn's model is unknown
    again."""
    return replace(_more(estimate, len(text)), model=None, model_tokens=0)


def add_event(estimate: Estimate, event: AgentEvent) -> Estimate:
    """Return the estimate after an event: text, tool calls and results add characters, a usage report corrects it,
    others change nothing."""
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
    """Return the estimate after a usage report, new or from the journal: an estimated one sets it, a measured one
    ends estimating."""
    if report.estimated:
        tokens = report.context_tokens or 0
        return replace(estimate, characters=tokens * CHARACTERS_PER_TOKEN, reported=tokens)
    if report.context_tokens:
        return replace(estimate, measured=True)
    if report.model is not None and (tokens := report.input_tokens or 0) >= estimate.model_tokens:
        return replace(estimate, model=report.model, model_tokens=tokens)
    return estimate


def due_report(estimate: Estimate) -> UsageReported | None:
    """Return the estimated report that is due at the end of a turn; None if the agent measures, or too little was
    added."""
    if estimate.measured or estimate.tokens < estimate.reported + REPORT_AFTER:
        return None
    return UsageReported(context_tokens=estimate.tokens, estimated=True, model=estimate.model)


def _more(estimate: Estimate, characters: int) -> Estimate:
    """Return the estimate with this many characters more."""
    return replace(estimate, characters=estimate.characters + characters)
