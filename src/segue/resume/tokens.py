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
_SPACED = (1.0, 1.0, 1.0, 1.02, 1.03, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.5, 1.8)
_JOINED = (1.0, 1.0, 1.05, 1.08, 1.2, 1.25, 1.35, 1.5, 1.8, 2.1, 2.2, 2.4)
_MARKED = (1.05, 1.1, 1.35, 1.35, 1.6, 1.9, 1.8, 2.0, 2.0, 2.4, 2.6, 2.8)
_CAPITALS = (1.0, 1.05, 1.35, 1.5, 1.9, 2.2, 2.5, 3.2)
_PER_LETTER = 0.3
_PER_BYTE = 0.45
MARGIN = 1.0


def tokens(text: str) -> int:
    return int(weigh(text) * MARGIN) + 1 if text else 0


def weigh(text: str) -> float:
    """The estimate before it is rounded; those of parts add up to that of the whole."""
    return sum(map(_piece, _PIECE.findall(text)))


@lru_cache(maxsize=100_000)
def _piece(piece: str) -> float:
    if not piece.isascii():
        return max(1.0, len(piece.encode()) * _PER_BYTE)
    last = piece[-1]
    if last.isalpha():
        return _word(piece)
    if last.isdigit() or piece.isspace():
        return 1.0
    return max(1.0, len(piece.strip()) * 0.5)


def _word(piece: str) -> float:
    letters = piece if piece[0].isalpha() else piece[1:]
    if letters.isupper() and len(letters) > 1:
        return _by_length(_CAPITALS, len(letters)) + (0.4 if piece[0] not in (" ", letters[0]) else 0.0)
    table = _JOINED if piece[0].isalpha() else _SPACED if piece[0] == " " else _MARKED
    mixed = 0.0 if letters[1:].islower() or len(letters) == 1 else 1.0
    return mixed + _by_length(table, len(letters))


def _by_length(table: tuple[float, ...], length: int) -> float:
    over = length - len(table)
    return table[length - 1] if over <= 0 else table[-1] + over * _PER_LETTER
