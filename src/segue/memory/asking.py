"""From a question to clippings in order."""

from segue.journal.search import EVERYWHERE, SearchIndex
from segue.memory.ranking import RAREST, STRONGEST, Ranked, rank
from segue.memory.terms import query_terms


def ranked(index: SearchIndex, question: str, total: int, limit: int, within: range = EVERYWHERE) -> list[Ranked]:
    """What answers the question, the best first, among `total` clippings."""
    words = query_terms(question)
    found = index.occurrences(words.all, total, rarest=RAREST, most=STRONGEST, within=within)
    return rank(found, frozenset(words.words), total, limit)
