"""The product's own search, on SQLite, for scorers that hand in documents and ask for the indices of the best.

`build(docs)` puts the documents on one shelf, as if each were a turn of one workflow; `search(query, k)` asks it.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from segue.journal.search import SHELF, SearchIndex, Shelf
from segue.memory.recall import ranked
from segue.memory.terms import names
from segue.model.ids import Seq, WorkflowId
from segue.model.memories import Clipping
from segue.store.tables import metadata

Search = Callable[[str, int], list[int]]
MARGIN = 4
"""Places beside the first and the last document, where there is none."""
NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def build(docs: Sequence[str]) -> Search:
    """Build the index of the documents."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    connection = engine.connect()
    metadata.create_all(connection)
    clippings = [Clipping(kind="message", text=doc, at=NOON) for doc in docs]
    shelf = Shelf(workflow_id=WorkflowId("bench"), number=None, seq=Seq(0), clippings=0)
    index = SearchIndex(connection)
    index.add(shelf, Seq(len(docs)), clippings, [names(doc) for doc in docs], rules=0)
    total = index.count()

    def search(query: str, k: int) -> list[int]:
        places = (each.id - SHELF - 1 for each in ranked(index, query, total, k + MARGIN))
        return [place for place in places if 0 <= place < len(docs)][:k]

    return search
