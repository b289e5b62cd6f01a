"""Errors and complaints of agents, and their meaning.

Agents pass on their vendors' messages, so one table serves all of them. It classifies errors in place of answers,
which are certain, and messages, which are certain only if they consist of nothing but a complaint.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from segue.model.status import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """Failure of an agent, with the time of its end if the agent names it."""

    failure: Failure
    reset_at: datetime | None = None
    full: bool = False
    """The conversation does not fit into the window any more."""


def understood(sentence: str, now: datetime) -> Complaint:
    """Classify an error; `now`, with its zone, is the moment from which its times are counted."""
    if _FULL.search(sentence):
        return Complaint(failure=Failure.OTHER, full=True)
    failure = next((failure for pattern, failure in _MEANINGS if pattern.search(sentence)), Failure.OTHER)
    return Complaint(failure=failure, reset_at=reset_at(sentence, now) if failure is Failure.QUOTA else None)


def overheard(message: str, now: datetime) -> Complaint | None:
    """Classify a message that is a complaint as a whole; return None for all others."""
    said = message.strip()
    if len(said) > _LONGEST or "\n\n" in said or not any(shape.fullmatch(said) for shape in _SHAPES):
        return None
    return understood(said, now)


_LONGEST = 600


def _any(*patterns: str) -> re.Pattern[str]:
    """Compile a pattern that matches any of these, in any case of letters."""
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


_FULL = _any(
    r"prompt is too long",
    r"context_length_exceeded",
    r"maximum context length",
    r"exceeds? (the|your|its) (model'?s )?context (window|length|limit)",
)

# The first row that fits is the meaning: vendors wrap what is wrong with a transcript into a plain "invalid request".
_MEANINGS: tuple[tuple[re.Pattern[str], Failure], ...] = (
    (_any(r"\banswered for (conversation|thread) \S+, not \S+"), Failure.OTHER_CONVERSATION),
    (
        _any(
            r"thinking.{0,80}blocks?\b.{0,120}cannot be modified",
            r"tool_use.{0,3} ids? were found without .{0,3}tool_result",
            r"unexpected .{0,3}tool_use_id",
            r"tool_result.{0,3} blocks? must have a corresponding",
            r"no tool (output|call) found for",
            r"tool_call_ids? did not have response messages",
            r"function response parts? .{0,40}equal to the number of function call parts?",
            r"(transcript|conversation|session|rollout|history)( file)?\b.{0,60}\b(corrupt|damaged|malformed)",
            r"\b(corrupt|damaged|malformed)(ed)? (transcript|conversation|session|rollout|history)",
        ),
        Failure.TRANSCRIPT_CORRUPT,
    ),
    (
        _any(
            r"\b(error|status|code|http)\W{0,3}(code )?\W{0,3}401\b",
            r"\b401 unauthorized",
            r"(invalid|incorrect) (x-)?api[- _]?key",
            r"api key (is )?(not valid|invalid|expired|missing)",
            r"authentication(_error| required| failed)|failed to authenticate|unauthenticated|authRequired",
            r"please run /login|please (log|sign) ?in|not logged in|login required",
            r"(token|credentials?|login) (has |have )?expired",
        ),
        Failure.LOGIN_REQUIRED,
    ),
    (
        _any(
            r"\b429\b|too many requests|rate[ _-]?limit",
            r"(usage|session|weekly|daily|hourly|monthly|message|request|spending)[ _-]?limit",
            r"(hit|reached|exceeded) (your|the) .{0,40}limit|limit reached",
            r"quota|resource_?exhausted",
            r"credit balance is too low|out of (extra )?(usage|credits)",
        ),
        Failure.QUOTA,
    ),
)

# Messages that say this and nothing else. They are anchored at both ends and short: an agent may talk about limits.
_SHAPES: tuple[re.Pattern[str], ...] = tuple(
    re.compile(shape, re.IGNORECASE | re.DOTALL)
    for shape in (
        r"(Failed to authenticate\. )?API Error: (Request rejected )?\(?\d{3}\b.*",
        r"You(['’]ve| have) (hit|reached) your [\w -]{0,40}limit[.!]?"
        r"( ?[·∙•|] ?resets [\w:, ]{1,30}(\([\w/+-]+\))?| (Try again|Upgrade|Visit|Please|To get) .{0,250})?",
        r"([\w-]+ ){0,4}limit reached( ?[|·∙•].{0,120}|\.?)",
        r"exceeded retry limit, last status: \d{3}\b.{0,100}",
        r"Error: Failed to get response from the AI model; .*",
        r"(Info: [^\n]{0,120}?Retrying\.\.\.\s*)*Error: (\d{3} .*|[^\n]*\(HTTP \d{3}\).*)",
        r"unexpected status \d{3}\b.*",
        r"\{\"(error|type)\": ?(\{|\"error\").*\}",
        r"Invalid API key\b.{0,60}|Not logged in\b.{0,60}|(.{0,40}· )?Please run /login\b.{0,40}",
        r"Credit balance is too low\b.{0,60}",
        r"Selected model is at capacity\. Please try a different model\.",
        r"Prompt is too long\b.*",
    )
)


# ── when it is over ─────────────────────────────────────────────────────────────────────────────────


def reset_at(sentence: str, now: datetime) -> datetime | None:
    """Return the moment that a sentence names, in UTC; None if it names none that can be parsed."""
    for pattern, moment in _MOMENTS:
        if found := pattern.search(sentence):
            try:
                return moment(found, now).astimezone(UTC)
            except (ValueError, KeyError, OverflowError):
                # An impossible date or an unknown time zone: the time stays unknown.
                continue
    return None


_UNITS = {"ms": 0.001, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_AMOUNT = r"\d+(?:\.\d+)?\s*(?:milliseconds?|ms|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _after(found: re.Match[str], now: datetime) -> datetime:
    """Return the moment after a duration such as `2h 5m`."""
    amounts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+)", found[1], re.IGNORECASE)
    seconds = sum(float(amount) * _UNITS[_unit(unit.lower())] for amount, unit in amounts)
    return now + timedelta(seconds=seconds)


def _unit(word: str) -> str:
    """Return the short name of a unit of time."""
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _seconds_after(found: re.Match[str], now: datetime) -> datetime:
    """Return the moment after so many seconds."""
    return now + timedelta(seconds=float(found[1]))


def _written_out(found: re.Match[str], now: datetime) -> datetime:
    """Return an ISO moment; without a zone it is in that of `now`."""
    moment = datetime.fromisoformat(found[0].replace(" ", "T").replace("Z", "+00:00").replace("z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


def _counted(found: re.Match[str], now: datetime) -> datetime:
    """Return the moment of a Unix time."""
    return datetime.fromtimestamp(int(found[1][:10]), UTC)


def _on_the_clock(found: re.Match[str], now: datetime) -> datetime:
    """Return the next moment with this time of day, or that on the named date."""
    here = now.astimezone(_zone(found["zone"], now))
    moment = here.replace(hour=_hour(found), minute=int(found["minute"] or 0), second=0, microsecond=0)
    if found["month"]:
        return _dated(found, moment, now)
    return moment if moment > now else moment + timedelta(days=1)


def _dated(found: re.Match[str], moment: datetime, now: datetime) -> datetime:
    """Return a time on the named date; without a year a past date is one of the next year."""
    year = int(found["year"] or moment.year)
    dated = moment.replace(year=year, month=_MONTHS.index(found["month"][:3].lower()) + 1, day=int(found["day"]))
    # Without a year, a day that is long past is one of the next year.
    past = not found["year"] and dated < now - timedelta(days=1)
    return dated.replace(year=year + 1) if past else dated


def _hour(found: re.Match[str]) -> int:
    """Return the hour from 0 to 23."""
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    return hour % 12 + (12 if half == "pm" else 0) if half else hour


def _zone(name: str | None, now: datetime) -> tzinfo | None:
    """Return the named time zone, or that of `now` for None."""
    if name is None:
        return now.tzinfo
    return UTC if name.upper() in ("UTC", "GMT", "Z") else ZoneInfo(name)


_MOMENTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], datetime]], ...] = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?", re.IGNORECASE), _written_out),
    (re.compile(r"(?:reset\w*|reached|retry)\W{0,12}(?:at|on|in)?\W{0,4}\b(\d{10}|\d{13})\b", re.IGNORECASE), _counted),
    (
        re.compile(
            rf"(?:again|retry\w*|resets?|available|wait)\W{{1,4}}(?:(?:in|after|for)\W{{1,3}})?((?:{_AMOUNT}[\s,]*(?:and\s+)?)+)",
            re.IGNORECASE,
        ),
        _after,
    ),
    (re.compile(r"retry[-_ ]?after(?:[-_ ]seconds)?\W{1,5}(\d+(?:\.\d+)?)", re.IGNORECASE), _seconds_after),
    (
        re.compile(
            r"(?:resets?|again|available)\W{1,3}(?:(?:at|on)\s+)?"
            r"(?:(?P<month>[A-Z][a-z]{2,8})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
            r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})|(?=\s*[ap]m))(?:\s*(?P<half>[ap]m))?\b"
            r"(?:\s*\((?P<zone>[A-Za-z_/+-]+)\))?",
            re.IGNORECASE,
        ),
        _on_the_clock,
    ),
)
