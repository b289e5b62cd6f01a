"""Sentences, and what they are: a constraint, a decision, or something taken back."""

import re
from collections.abc import Iterator

from segue.model.facts import DecisionType

_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+")
_SPACE = re.compile(r"\s+")
_CONSTRAINT = re.compile(
    r"\b(?:don'?t|do not|never|always|must|should(?:n'?t| not)?|instead|only|avoid|rather|make sure|ensure|no need"
    r"|without|prefer|actually|wrong|not what|keep|stop|revert|undo|leave|remember|no longer|forbidden)\b",
    re.IGNORECASE,
)
SHORTEST = 15
LONGEST = 400

# The first rule that fits names the type. The words are those with which people mark a choice, in any project.
_DECISIONS: tuple[tuple[DecisionType, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("workaround", r"\b(?:work(?:ing)? ?around|for now,? |temporar(?:y|ily)|fall(?:ing)? back to|as a stopgap)\b"),
        ("skip", r"\b(?:(?:I(?:'ll| will)|let's|we(?:'ll| will)?) (?:skip|leave|not)|out of scope|not needed|no need to"
                 r"|leav(?:e|ing) (?:it|this|that|them) (?:as|alone|out)|defer(?:red|ring)?)\b"),
        ("library", r"\b(?:us(?:e|ing)|switch(?:ed|ing)? to|depend(?:s|ing)? on|add(?:ed|ing)?) .{2,60}"
                    r"\b(?:library|package|module|crate|framework|dependency)\b"),
        ("architecture", r"\b(?:split(?:ting)?|extract(?:ed|ing)?|mov(?:e|ed|ing)|separate|refactor(?:ed|ing)?)\b.{2,90}"
                         r"\b(?:into|out of|package|module|layer|interface|helper)\b"),
        ("approach", r"\b(?:decid(?:e|ed|ing)|chose|choos(?:e|ing)|going with|go with|opt(?:ed|ing)? (?:for|to)"
                     r"|instead of|rather than|the (?:right|best|better|cleanest|simplest|safest) (?:fix|approach|way)"
                     r"|root cause|the (?:fix|plan|approach) is|better to|makes? (?:more )?sense to|prefer)\b"),
    )
)  # fmt: skip
_TAKEN_BACK = re.compile(
    r"\b(?:revert(?:ed|ing)?|undo(?:ing)?|undid|roll(?:ed|ing)? back|scrap that|on second thought|changed my mind"
    r"|no longer|not .{0,30} after all|instead of .{0,40}(?:I|we) (?:had|decided))\b",
    re.IGNORECASE,
)


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
    if not 25 <= len(sentence) < LONGEST:
        return None
    return next((kind for kind, pattern in _DECISIONS if pattern.search(sentence)), None)


def takes_back(sentence: str) -> bool:
    return _TAKEN_BACK.search(sentence) is not None
