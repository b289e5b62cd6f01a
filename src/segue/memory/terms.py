"""Search terms: the tokens of a query, and identifiers both whole and in their parts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from segue.model.naming import words

STOP = words(
    "a about an and any are as at be been but by can could did do does for from had has have he her his how i if in "
    "into is it its just me my no not of on or our she should so than that the their them then there these they this "
    "those to us was we were what when where which who why will with would you your"
)
MOST = 60
"""Maximum tokens of a query."""

LONGEST = 80
"""Maximum characters of a token; longer ones are data, and the search for identifiers in them would take very long."""
_ENDLESS = re.compile(rf"\w{{{LONGEST + 1},}}")
_WORD = re.compile(r"[^\W_]+")
_IDENTIFIER = re.compile(
    r"[^\W\d_][^\W_]*(?:_[^\W_]+)+|[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*|[A-Z]+[a-z0-9]+[A-Z][A-Za-z0-9]*"
    r"|[A-Z]{2,}[a-z]{2,}[A-Za-z0-9]*"
)
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """Terms of a query."""

    words: tuple[str, ...]
    wholes: tuple[str, ...]
    """Identifiers as one token: a match improves the order, but a miss does not lower the score."""

    @property
    def all(self) -> tuple[str, ...]:
        """Return all terms of the query, each once."""
        return tuple(dict.fromkeys((*self.words, *self.wholes)))


def query_terms(question: str) -> QueryTerms:
    """Return the terms of a query without stop-list entries; all tokens if only those are left."""
    question = _bounded(question)
    found = [word for word in _words(question) if word not in STOP] or list(_words(question))
    wholes = {_joined(name): None for name in _IDENTIFIER.findall(question)}
    plain = dict.fromkeys(word for word in found if word not in wholes)
    return QueryTerms(tuple(plain)[:MOST], tuple(wholes)[:MOST])


def _words(text: str) -> Iterator[str]:
    """Yield every token in small letters, identifiers in their parts."""
    for word in _WORD.findall(text):
        yield from (part.lower() for part in (_parts(word) if _IDENTIFIER.fullmatch(word) else (word,)))


def names(text: str) -> str:
    """Return terms to index beside the text: the parts of camelCase names, and compound identifiers as one token.

    Parts that are joined by underscores are tokens of the text anyway.
    """
    found: dict[str, None] = {}
    for name in dict.fromkeys(_IDENTIFIER.findall(_bounded(text))):
        parts = _parts(name)
        if "_" in name:
            found[_joined(name)] = None
        if "_" not in name or len(parts) > name.count("_") + 1:
            found.update(dict.fromkeys(part.lower() for part in parts))
    return " ".join(found)


def _bounded(text: str) -> str:
    """Cut tokens that are too long."""
    return _ENDLESS.sub(lambda word: word[0][:LONGEST], text)


def _parts(name: str) -> list[str]:
    """Split an identifier at its underscores and capitals."""
    return _PART.findall(name)


def _joined(name: str) -> str:
    """Return an identifier as one token in small letters, without underscores."""
    return name.replace("_", "").lower()


def likeness(one: str, other: str) -> float:
    """Return the similarity of two texts, from 0 to 1: twice their common tokens, divided by their tokens; 0 if both
    have none."""
    ours, theirs = ({word for word in _words(text) if word not in STOP} for text in (one, other))
    return 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours or theirs else 0.0
