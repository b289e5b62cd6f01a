"""Methods beyond the protocol, for agents whose conversations are kept."""

from collections.abc import Awaitable, Callable
from typing import Any

from acp import RequestError
from pydantic import BaseModel

from segue.drivers import Keeper
from segue.model.conversations import ConversationKey
from segue.model.errors import SegueError
from segue.model.events import JsonObject

_INTERNAL_ERROR = -32603


class _Named(BaseModel):
    project: str
    conversation: str
    part: str = ""

    def key(self) -> ConversationKey:
        """Return the key of the part that a request names."""
        return ConversationKey(project=self.project, conversation=self.conversation, part=self.part)


class _Keep(_Named):
    entries: list[JsonObject]


class _Read(_Named):
    after: int = 0


class _Find(BaseModel):
    project: str | None = None
    conversation: str | None = None


class _Warn(BaseModel):
    message: str


class KeeperMethods:
    """Passes the agent's requests on to its keeper, if it has one."""

    def __init__(self, keeper: Keeper | None) -> None:
        self._methods = _methods(keeper) if keeper else {}

    def knows(self, method: str) -> bool:
        """Return True if there is a keeper and this method is one of its requests."""
        return method in self._methods

    async def serve(self, method: str, parameters: object) -> JsonObject:
        """Answer a request for the keeper; its failure becomes the protocol's error."""
        try:
            return await self._methods[method](parameters)
        except SegueError as error:
            raise RequestError(_INTERNAL_ERROR, error.message) from error


def _methods(keeper: Keeper) -> dict[str, Callable[[Any], Awaitable[JsonObject]]]:
    """Return the handlers of the requests to keep, read and find entries, and to warn."""

    async def keep(parameters: object) -> JsonObject:
        asked = _Keep.model_validate(parameters)
        await keeper.keep(asked.key(), asked.entries)
        return {}

    async def read(parameters: object) -> JsonObject:
        asked = _Read.model_validate(parameters)
        page = await keeper.read(asked.key(), asked.after)
        return {"entries": list(page.entries), "next": page.next}

    async def find(parameters: object) -> JsonObject:
        asked = _Find.model_validate(parameters)
        found = await keeper.find(project=asked.project, conversation=asked.conversation)
        return {
            "found": [
                {
                    "project": each.key.project,
                    "conversation": each.key.conversation,
                    "part": each.key.part,
                    "at": each.at.isoformat(),
                    "last": each.last,
                }
                for each in found
            ]
        }

    async def warn(parameters: object) -> JsonObject:
        await keeper.warn(_Warn.model_validate(parameters).message)
        return {}

    return {"_segue/keep": keep, "_segue/read": read, "_segue/find": find, "_segue/warn": warn}
