"""Sentences, and what they are: a constraint, a decision, or something taken back."""

import re
from collections.abc import Iterator

from segue.model.findings import DecisionType

_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")
_SPACE = re.compile(r"\s+")
_CONSTRAINT = re.compile(
    r"\b(?:don'?t|do not|never|always|must|should(?:n'?t| not)?|instead|only|avoid|rather|make sure|ensure|no need"
    r"|without|prefer|actually|wrong|not what|keep|stop|revert|undo|leave|remember|no longer|forbidden)\b",
    re.IGNORECASE,
)
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,200})\]\(([^()\s]{1,400})\)")
_LINE = re.compile(r"#L(\d+)(?:-L?\d+)?$")
SHORTEST = 15
LONGEST = 400

_WE = r"\b(?:I|we|let's)(?:'ll|'m|'ve|’ll|’m|’ve| will| am| are| have| would)?\b.{0,60}?"
# The first rule that fits names the type. The words are those with which people mark a choice, in any project.
_RULES: tuple[tuple[DecisionType, str], ...] = (
    ("workaround", r"\b(?:work(?:ing|s)? ?around|temporary (?:fix|hack|solution)|as a stopgap)\b"),
    ("workaround", r"\bfall(?:s|ing)? back (?:to|on)\b"),
    ("skip", r"\b(?:I|we)(?:'ll|’ll| will) (?:skip|leave|not\b)|\b(?:out of scope|deferred|no longer needed|won't)\b"),
    ("skip", r"\bleav(?:e|ing) (?:it|this|that|them) (?:as|alone|out)\b"),
    (
        "library",
        r"\b(?:us(?:e|ing)|switch(?:ed|ing)? to|depend(?:s|ing)? on|add(?:ed|ing)?) .{2,60}"
        r"\b(?:library|package|crate|framework|dependency)\b",
    ),
    (
        "architecture",
        r"\b(?:split(?:ting)?|extract(?:ed|ing)?|mov(?:e|ed|ing)|separate|refactor(?:ed|ing)?)\b.{2,90}"
        r"\b(?:into|out of|under|layer|interface|shared helper)\b",
    ),
    ("approach", _WE + r"\b(?:decided|chose|choosing|going with|go with|opt(?:ed|ing)? (?:for|to)|prefer)\b"),
    ("approach", _WE + r"\b(?:instead of|rather than)\b"),
    ("approach", r"\b(?:instead of|rather than)\b.*\b(?:because|since|so)\b"),
    ("approach", r"\bthe (?:\w+,? ?(?:\w+-\w+ )?){0,2}(?:fix|approach|solution|design) (?:is|that|was|:)"),
    ("clarification", r"\b(?:root cause|the (?:real |actual )?(?:bug|cause|culprit) (?:is|was)|turns out)\b"),
)
_DECISIONS: tuple[tuple[DecisionType, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _RULES
)
_NO_DECISION = re.compile(r"^(?:if|let me|should|would|do you|can|could|want|before|whether)\b|\?$", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"\b(?:revert(?:ed|ing)?|undo(?:ing)?|undid|roll(?:ed|ing)? back|scrap that|on second thought|changed my mind"
    r"|no longer|not .{0,30} after all|instead of .{0,40}(?:I|we) (?:had|decided))\b",
    re.IGNORECASE,
)


def unlinked(text: str) -> str:
    """The text with each link to a file told as the path alone, and each link elsewhere as its words."""
    return _LINK.sub(_target, text)


def _target(link: re.Match[str]) -> str:
    words, target = link[1], link[2].strip("<>[]")
    if "://" in target or "/" not in target:
        return words
    return _LINE.sub(r":\1", target)


def flattened(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE.split(text):
        sentence = flattened(part).strip(" -*•")
        if len(sentence) >= SHORTEST:
            yield sentence


def constraints(text: str) -> tuple[str, ...]:
    return tuple(each for each in sentences(text) if len(each) < LONGEST and _CONSTRAINT.search(each))


def decision_type(sentence: str) -> DecisionType | None:
    if not 40 <= len(sentence) < LONGEST or _NO_DECISION.search(sentence):
        return None
    for kind, pattern in _DECISIONS:
        if pattern.search(sentence):
            return kind
    return None


def takes_back(sentence: str) -> bool:
    return _TAKEN_BACK.search(sentence) is not None
