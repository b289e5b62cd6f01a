from collections.abc import AsyncIterator

import pytest

from segue.journal import Journal, open_journal
from segue.memory import Memory
from tests.journal.workflows import TickingClock


@pytest.fixture
async def journal(database_url: str, clock: TickingClock) -> AsyncIterator[Journal]:
    async with open_journal(database_url, clock) as journal:
        yield journal


@pytest.fixture
def memory(journal: Journal) -> Memory:
    return Memory(journal)
