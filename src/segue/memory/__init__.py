"""Recall and memorize over past work.

`clippings` says what of the journal can be found again, `index` keeps the search index up, `words` and `ranking` say
what answers a question best, `memorizing` puts entries down, and `adapter` is the one object for all of it. The index
is derived: it can be thrown away and made again.
"""

from segue.memory.adapter import Memory

__all__ = ["Memory"]
