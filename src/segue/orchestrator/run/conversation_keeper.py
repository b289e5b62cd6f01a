"""Keeps the conversations of a run's agent."""

from collections.abc import Sequence
from dataclasses import dataclass

from segue.journal import Journal
from segue.model.events import JsonObject, Warned
from segue.model.kept import ConversationKey, Kept, Page
from segue.orchestrator.run.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Keeper:
    """In the journal's database, beside the events."""

    journal: Journal
    recorder: Recorder

    async def keep(self, key: ConversationKey, entries: Sequence[JsonObject]) -> None:
        now, session_id = self.journal.clock.now(), self.recorder.session_id
        await self.journal.conversations.add(key, entries, session_id, now)

    async def read(self, key: ConversationKey, after: int = 0) -> Page:
        return await self.journal.conversations.page(key, after)

    async def find(self, *, project: str | None = None, conversation: str | None = None) -> list[Kept]:
        return await self.journal.conversations.find(project, conversation)

    async def warn(self, message: str) -> None:
        await self.recorder.record(Warned(code="conversation_copy", message=message))
