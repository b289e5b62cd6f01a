"""Weights: how much a sentence is worth to a reader who knows nothing of the work. Set by hand, as data."""

import math
import re
from collections import Counter
from itertools import groupby

from segue.model.facts import Sentence, SessionFacts, Voice

WORD = re.compile(r"[^\W_]{3,}|\w+_\w+")
_CUE = re.compile(
    r"\b(?:because|since|so that|instead|rather than|root cause|turns? out|actually|fail(?:s|ed|ing|ure)?|fix(?:ed"
    r"|es)?|decid\w+|cho(?:se|ose)\w*|reject\w*|skip\w*|deliberate\w*"
    r"|only|must|cannot|can't|never|not|limit\w*|race|bugs?|wrong|broke\w*|breaks?|revert\w*|restor\w*|remain\w*"
    r"|still|open|pending|left|next|pushed|merged|committed|commit|branch"
    r"|verified|pass(?:es|ed)?|green|caused?|why|reason\w*|trade\w*|risk\w*|prefer\w*|agree\w*|kept|dropp\w+|remov\w+"
    r"|replac\w+|now)\b"
    r"|[—–]",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(
    r"`[^`]+`|\b[0-9a-f]{7,10}\b|#\d+|\b\d[\d,.]*%?|\b[a-z]+[A-Z]\w+|\b\w+_\w+|[\w./-]+\.(?:go|py|ts|md|json|sh|toml"
    r"|ya?ml|rs|js|tsx|java|rb|c|h|sql)\b"
)
_REASON = re.compile(
    r"\b(?:because|since|so that|otherwise|due to|root cause|which (?:means|would|breaks)|would (?:break|fail|leak"
    r"|mean|lose)|to avoid|the reason)\b|[—–]",
    re.IGNORECASE,
)
_VOICES: dict[Voice, float] = {
    "agent": 0.3, "written": 0.75, "helper": -0.05, "summary": 0.5, "result": -0.2, "pasted": 0.3, "plan": 0.1,
}  # fmt: skip
SPECIFIC, CUE, REASON, CLOSING, ANNOUNCING = 0.25, 0.35, 0.3, 0.9, -1.1
OF_THE_USER = 2
"""Messages of the agent that one of the user counts for."""
ONCE = 0.35
"""Weight of a word that stands in one message alone."""
NEWEST, LATE = 0.6, 0.2
FADING = 0.10
"""Share of the record over which the newest sentences lose their advantage."""


_COMMON = frozenset(
    [
        "the",
        "and",
        "for",
        "you",
        "are",
        "not",
        "but",
        "can",
        "will",
        "that",
        "this",
        "these",
        "those",
        "with",
        "from",
        "into",
        "has",
        "have",
        "had",
        "was",
        "were",
        "been",
        "does",
        "did",
        "its",
        "it's",
        "also",
        "just",
        "only",
        "then",
        "than",
        "them",
        "they",
        "there",
        "here",
        "where",
        "when",
        "what",
        "which",
        "who",
        "how",
        "why",
        "all",
        "any",
        "some",
        "more",
        "most",
        "other",
        "new",
        "now",
        "let",
        "use",
        "used",
        "using",
        "after",
        "before",
        "because",
        "still",
        "even",
        "would",
        "could",
        "should",
        "may",
        "might",
        "must",
        "our",
        "your",
        "out",
        "over",
        "per",
        "via",
        "get",
        "got",
        "too",
        "very",
        "own",
        "same",
        "such",
        "each",
        "both",
        "while",
        "until",
        "since",
        "run",
        "runs",
        "add",
        "added",
        "make",
        "makes",
        "made",
        "see",
        "look",
        "need",
        "needs",
        "want",
        "like",
        "one",
        "two",
        "way",
        "set",
        "file",
        "files",
        "code",
        "test",
        "tests",
        "check",
        "checks",
    ]
)


def words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without common ones."""
    return frozenset(word.lower() for word in WORD.findall(text)) - _COMMON


def subjects(facts: SessionFacts) -> dict[str, float]:
    """Return the weight of each word that the session was about, by the number of messages in which it stands."""
    count: Counter[str] = Counter()
    for _, message in groupby(facts.sentences, key=lambda sentence: sentence.number):
        count.update({word for sentence in message for word in words(sentence.text)})
    for ask in facts.said:
        for word in {word for phrase in ask.phrases for word in words(phrase.text)}:
            count[word] += OF_THE_USER
    return {word: math.log(1 + number) if number > 1 else ONCE for word, number in count.items()}


def recency(number: int, length: int) -> float:
    """Return the value of a line for its place in the record; the end counts more."""
    return NEWEST * math.exp(-(length - number) / (FADING * length + 1)) + LATE * number / max(1, length)


def worth(sentence: Sentence, length: int) -> float:
    """Return the value of a sentence before its length is counted."""
    text = sentence.text
    value = SPECIFIC * min(4, len(set(_SPECIFIC.findall(text)))) + CUE * min(3, len(_CUE.findall(text)))
    value += REASON * (_REASON.search(text) is not None) + CLOSING * sentence.closing + _VOICES[sentence.voice]
    value += ANNOUNCING * sentence.announces + recency(sentence.number, length)
    return max(0.05, value)
