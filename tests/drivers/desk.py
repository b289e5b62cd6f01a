"""A journal for agents that have their conversations kept."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from segue.journal import Journal, open_journal
from segue.model.events import Warned
from segue.model.ids import WorkflowId, new_attempt_id
from segue.orchestrator.run.agent_start import Keeper
from segue.orchestrator.run.recorder import Recorder
from tests.journal.statements import execute
from tests.journal.workflows import BOOT, TickingClock, begun


class Desk:
    """A journal with one workflow in it, and a keeper for its agent."""

    def __init__(self, journal: Journal, workflow_id: WorkflowId, recorder: Recorder) -> None:
        self.journal = journal
        self._workflow_id = workflow_id
        self.keeper = Keeper(journal, recorder)

    async def entries(self, token: str) -> list[Any]:
        (kept,) = await self.keeper.find(conversation=token)
        return list((await self.keeper.read(kept.key)).entries)

    async def kept(self, token: str) -> list[Any]:
        """Nothing while there is nothing."""
        return await self.entries(token) if await self.keeper.find(conversation=token) else []

    async def said(self, token: str) -> list[str]:
        return [each["message"]["content"][0]["text"] for each in await self.entries(token) if "message" in each]

    async def warnings(self) -> list[str]:
        records = await self.journal.records(self._workflow_id)
        return [each.event.message for each in records if isinstance(each.event, Warned)]

    async def run(self, statement: str) -> None:
        await execute(self.journal, statement)


@asynccontextmanager
async def desk_at(url: str, clock: TickingClock) -> AsyncGenerator[Desk]:
    async with open_journal(url, clock) as journal:
        workflow_id, session_id = await begun(journal)
        attempt = new_attempt_id()
        await journal.transact(workflow_id, lambda t: t.runs.claim(session_id, 1, attempt, BOOT))
        recorder = Recorder(journal=journal, workflow_id=workflow_id, session_id=session_id, run=1, attempt=attempt)
        yield Desk(journal, workflow_id, recorder)


def desk_in(directory: Path) -> AbstractAsyncContextManager[Desk]:
    return desk_at(f"sqlite:///{directory}/segue.db", TickingClock())
