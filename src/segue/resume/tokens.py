"""How many tokens a text takes, estimated offline.

The text is split as the tokenizers of today's models split it before they look anything up; what each piece costs is
then a matter of its kind and length. The figures are a little high, because a context must not exceed its budget.
"""

import re
from functools import lru_cache

_PIECE = re.compile(
    r"[^\r\nA-Za-z0-9]?[A-Z]*[a-z]+(?:'(?:s|t|re|ve|m|ll|d)\b)?|[^\r\nA-Za-z0-9]?[A-Z]+|[0-9]{1,3}"
    r"| ?[^\sA-Za-z0-9]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Tokens of a piece by the number of its letters, from one letter on; a longer one costs the last figure and the rate.
_SPACED = (1.0, 1.0, 1.03, 1.02, 1.06, 1.06, 1.11, 1.16, 1.19, 1.23, 1.26, 1.33, 1.4, 1.56)
_JOINED = (1.0, 1.0, 1.12, 1.12, 1.2, 1.2, 1.3, 1.5, 1.7, 1.9, 1.95, 2.1)
_SPACED_CAPITAL = (1.0, 1.0, 1.02, 1.03, 1.07, 1.09, 1.18, 1.3, 1.4, 1.44, 1.5, 1.55)
_JOINED_CAPITAL = (1.0, 1.05, 1.08, 1.04, 1.11, 1.13, 1.16, 1.25, 1.32, 1.39, 1.45, 1.5)
_AFTER_A_DOT = (1.0, 1.02, 1.15, 1.12, 1.17, 1.24, 1.27, 1.46, 1.75, 1.75, 1.87, 1.95)
_AFTER_A_SLASH = (1.0, 1.31, 1.44, 1.44, 1.61, 1.69, 1.74, 2.1, 2.25, 2.55, 2.6, 2.7)
_AFTER_A_MARK = (1.12, 1.6, 1.5, 1.65, 1.9, 1.85, 1.9, 2.3, 2.3, 2.5, 2.6, 2.7)
_CAPITALS = (1.0, 1.02, 1.26, 1.3, 1.65, 1.8, 2.0, 2.6)
_PUNCTUATION = (1.01, 1.1, 1.45, 1.87, 2.05, 2.5)
_AFTER = dict.fromkeys("._(", _AFTER_A_DOT) | dict.fromkeys("/-=", _AFTER_A_SLASH)
_PER_LETTER = 0.3
_PER_BYTE = 0.36
MARGIN = 1.01
"""How much the estimate of a whole text is raised, so that unusual words do not carry it over a budget."""


def tokens(text: str) -> int:
    """Estimate the tokens of a text, rounded up with a margin; 0 for an empty one."""
    return int(weigh(text) * MARGIN) + 1 if text else 0


@lru_cache(maxsize=20_000)
def weigh(text: str) -> float:
    """Estimate the tokens of a text without rounding; the estimates of its parts add up to that of the whole."""
    return sum(map(_piece, _PIECE.findall(text)))


@lru_cache(maxsize=100_000)
def _piece(piece: str) -> float:
    """Estimate the tokens of one piece: a word, a number, spaces or punctuation."""
    if not piece.isascii():
        return max(1.1, len(piece.strip().encode()) * _PER_BYTE)
    last = piece[-1]
    if last.isalpha():
        return _word(piece)
    if last.isdigit() or piece.isspace():
        return 1.0
    return _by_length(_PUNCTUATION, len(piece.strip()))


def _word(piece: str) -> float:
    """Estimate the tokens of a word by its length, its capitals and the character before it."""
    first = piece[0]
    letters = piece if first.isalpha() else piece[1:]
    if letters.isupper() and len(letters) > 1:
        return _by_length(_CAPITALS, len(letters)) + (0.4 if first not in (" ", letters[0]) else 0.0)
    capital = letters[0].isupper()
    if first.isalpha():
        table = _JOINED_CAPITAL if capital else _JOINED
    elif first == " ":
        table = _SPACED_CAPITAL if capital else _SPACED
    else:
        table = _AFTER.get(first, _AFTER_A_MARK)
    mixed = 0.0 if letters[1:].islower() or len(letters) == 1 else 0.8
    return mixed + _by_length(table, len(letters))


def _by_length(table: tuple[float, ...], length: int) -> float:
    """Return the table's estimate for this length; beyond its end a fixed rate per letter is added."""
    over = length - len(table)
    return table[length - 1] if over <= 0 else table[-1] + over * _PER_LETTER
