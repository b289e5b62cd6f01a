"""Rules of the orchestrator, plain values, made from the settings."""

from dataclasses import fields
from datetime import timedelta
from typing import Any

from segue.model.work_settings import NOTHING_SAID, WorkSettings
from segue.orchestrator.runtime.extraction import Extraction
from segue.orchestrator.runtime.services import Rules
from segue.protocol.retries import RetryPolicy
from segue.resume.handover import Lengths
from segue.resume.history import Cuts
from segue.settings import Settings


def rules_of(chosen: Settings, spoken: WorkSettings = NOTHING_SAID) -> Rules:
    """Build the rules: most are settings of the same name; `spoken` are settings from environment variables and come
    first."""
    composed: dict[str, Any] = {
        "setup": spoken.over(chosen).setup,
        "extraction": _extraction(chosen),
        "retries": _retries(chosen),
        "history": Cuts(message=chosen.history_message, result=chosen.history_result, whole=chosen.history_whole),
        "lengths": Lengths(issue=chosen.context_issue, comments=chosen.context_comments),
    }
    plain = {each.name: getattr(chosen, each.name) for each in fields(Rules) if each.name not in composed}
    return Rules(**plain, **composed)


def _extraction(chosen: Settings) -> Extraction:
    """Build the settings of the extraction of decisions and errors."""
    return Extraction(
        by=chosen.extraction,
        model=chosen.extraction_model or "",
        timeout=chosen.extraction_timeout,
        base_url=chosen.extraction_base_url,
        messages=chosen.extraction_messages,
    )


def _retries(chosen: Settings) -> RetryPolicy:
    """Build the retry policy."""
    return RetryPolicy(
        attempts=chosen.retry_attempts,
        first=timedelta(seconds=chosen.retry_first),
        longest=timedelta(seconds=chosen.retry_longest),
        quick_failures=chosen.quick_failures,
        quick_within=timedelta(seconds=chosen.quick_within),
        fixer_time=timedelta(seconds=chosen.fixer_time),
    )
