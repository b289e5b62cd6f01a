"""From a question to clippings in order, over one connection."""

from sqlalchemy import Connection

from segue.journal.search import EVERYWHERE, occurrences
from segue.memory.ranking import RAREST, STRONGEST, Ranked, rank
from segue.memory.words import wanted


def ranked(connection: Connection, question: str, total: int, limit: int, within: range = EVERYWHERE) -> list[Ranked]:
    """What answers the question, the best first, among `total` clippings."""
    words = wanted(question)
    found = occurrences(connection, words.all, total, rarest=RAREST, most=STRONGEST, within=within)
    return rank(found, frozenset(words.words), total, limit)
