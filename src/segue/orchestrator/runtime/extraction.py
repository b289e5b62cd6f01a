"""Extraction of decisions and errors by a model or by the agent, where the user switched it on."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import anyio.to_thread

from segue.model.events import Record
from segue.model.findings import Extractor, Findings, Spending
from segue.snapshot.extraction import (
    MOST_MESSAGES,
    ExtractionResult,
    Spoken,
    Unreadable,
    conversation,
    enriched,
    read_answer,
    recent,
    reports_in,
    spoken_in,
)

log = logging.getLogger("segue")

NOT_INSTALLED = "The model was not asked: what it takes is not installed. Install it with: pip install 'segue[models]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Settings of the extraction of decisions and errors."""

    by: Extractor = "rules"
    model: str = ""
    """`provider:name`"""
    timeout: float = 60.0
    """Seconds that a model or the agent has to answer."""
    base_url: str | None = None
    messages: int = MOST_MESSAGES
    """How many of the latest messages they read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Result of a model's extraction; without one, the problem has the reason."""

    result: ExtractionResult | None = None
    problem: str = ""
    spending: Spending = field(default_factory=Spending)


async def extract(rules: Findings, records: Sequence[Record], settings: Extraction) -> Findings:
    """Add a model's or the agent's findings to those by rule, as the settings choose; records come oldest first.
    `rules` alone adds nothing."""
    match settings.by:
        case "rules":
            return rules
        case "model":
            return await extract_by_model(rules, spoken_in(records), settings)
        case "agent":
            return extract_from_reports(rules, recent(spoken_in(records), settings.messages), reports_in(records))


def extract_from_reports(rules: Findings, shown: Sequence[Spoken], reports: Sequence[str]) -> Findings:
    """Add the agent's last report to the findings by rule; an unreadable one adds a problem, none leaves them
    unchanged."""
    if not reports:
        return rules
    # The tokens of these turns are counted where all turns of the agent are.
    spending = Spending(calls=len(reports))
    answer = read_answer(reports[-1])
    if isinstance(answer, Unreadable):
        problem = f"The agent's report could not be used: {answer.reason}"
        return replace(rules, problem=" ".join(filter(None, [rules.problem, problem])), spending=spending)
    return replace(enriched(rules, answer, shown, "agent"), spending=spending)


async def extract_by_model(rules: Findings, messages: Sequence[Spoken], settings: Extraction) -> Findings:
    """Ask a model about the latest messages and add its findings to those by rule; a failure adds a problem, no
    messages change nothing."""
    shown = recent(messages, settings.messages)
    if not shown:
        return rules
    asked = await _asked(conversation(shown), settings)
    if asked.result is None:
        problem = " ".join(filter(None, [rules.problem, asked.problem]))
        return replace(rules, problem=problem, spending=asked.spending)
    return replace(enriched(rules, asked.result, shown, "model"), spending=asked.spending)


async def _asked(text: str, settings: Extraction) -> Asked:
    """Ask the model about the text; the result is a problem if the library is not installed."""
    try:
        # Loading the library takes seconds, in which the server has other things to do.
        ask = await anyio.to_thread.run_sync(_load)
    except ImportError as error:
        log.warning("the model that reads along cannot be asked: %s", error)
        return Asked(problem=NOT_INSTALLED)
    return await ask(text, settings)


def _load() -> Callable[[str, Extraction], Awaitable[Asked]]:
    """Import the module that asks models, and return its function."""
    from segue.orchestrator.runtime.model_extraction import ask

    return ask
