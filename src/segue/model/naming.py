"""Names in texts: tokens that people write only when they mean one specific thing.

A name is the path of a file, or an identifier of several words joined as in code.
"""

import re
from collections.abc import Iterator
from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """Split a text into a set of words."""
    return frozenset(text.split())


WORD = re.compile(r"[\w./@+~-]{4,}")
_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9_])(?:[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*|[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+"
    r"|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)(?![A-Za-z0-9_])"
)
_FILE = re.compile(r"[\w@+.-]*[\w@+-]\.[A-Za-z]\w{0,5}")
# Without a folder before it, only what is surely the name of a file counts as one.
_SURE = words(
    "go py ts tsx js jsx mjs cjs rs md json toml yaml yml sh sql css html mod java rb cpp cc h c txt cfg ini "
    "lock swift kt vue svelte proto php cs scala ex exs"
)
SHORTEST, LONGEST = 6, 60
LONGEST_PATH = 160

Name = tuple[str, str, bool]
"""Key that is equal for all spellings of a name, the name as it is written, and True for a path."""


@lru_cache(maxsize=200_000)
def names_in_word(word: str) -> tuple[Name, ...]:
    """Return the path in one token, if it is one, and its identifiers that are neither short, long nor capitals
    only."""
    found: list[Name] = []
    if (path := _path(word)) is not None:
        found.append((path_key(path), path, True))
    for each in _IDENTIFIER.findall(word):
        if SHORTEST <= len(each) <= LONGEST and not each.isupper():
            found.append((each, each, False))
    return tuple(found)


def names_in(text: str) -> Iterator[tuple[Name, int]]:
    """Yield the names of a text, each with its position."""
    for word in WORD.finditer(text):
        for name in names_in_word(word[0]):
            yield name, word.start() + max(0, word[0].find(name[1]))


def path_key(path: str) -> str:
    """Return the key of a path: folder and file, in lower case."""
    return "/".join(path.lower().replace("\\", "/").split("/")[-2:])


def _path(word: str) -> str | None:
    """Return the path that a token is, or None if it is none."""
    word = word.rstrip("./-+@~")
    if word.startswith("//") or len(word) > LONGEST_PATH:
        return None
    file = word.rsplit("/", 1)[-1]
    if not _FILE.fullmatch(file) or ("/" not in word and file.rsplit(".", 1)[-1] not in _SURE):
        return None
    return word.removeprefix("./")
