"""Recall and memorize over past work.

`clippings` selects the searchable text of the journal, `index` keeps the search index up to date, `terms` and `ranking`
find the best results, `memorizing` writes entries, and `adapter` is the one interface to all of it. The index is
derived data: it can be deleted and built again.
"""

from segue.memory.adapter import Memory

__all__ = ["Memory"]
