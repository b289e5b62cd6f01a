"""Segue's journal as the SDK's session store, at the other end of the protocol."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
)

from segue.drivers.skeleton.jsonrpc import Parameters
from segue.drivers.skeleton.wire import Wire

# Characters of one request; an entry may be a picture, and is not cut.
_REQUEST = 1024 * 1024

KeptPart = Mapping[str, Any]


def keeps(client: Parameters) -> bool:
    """Return True if the client declares in `initialize` that it keeps conversations."""
    return bool(client.extension("clientCapabilities").get("keeper"))


class ClientStore:
    """Adds and reads; nothing in it is ever changed or taken away."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Send entries to the client to keep, in batches."""
        for batch in _batches(entries):
            await self._wire.request("_segue/keep", {**_named(key), "entries": batch})

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all kept entries of a part, page by page; None if there are none."""
        entries: list[SessionStoreEntry] = []
        after: int | None = 0
        while after is not None:
            page = await self._wire.request("_segue/read", {**_named(key), "after": after})
            entries += page["entries"]
            after = page["next"]
        return entries or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """List the kept conversations of a project, with the time of their last entry."""
        return [
            {"session_id": each["conversation"], "mtime": int(datetime.fromisoformat(each["at"]).timestamp() * 1000)}
            for each in await self._find(project=project_key)
            if not each["part"]
        ]

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """List the kept parts of a conversation beside the main one."""
        return [
            each["part"]
            for each in await self.parts(key["session_id"])
            if each["part"] and each["project"] == key["project_key"]
        ]

    async def parts(self, token: str) -> Sequence[KeptPart]:
        """Return all parts that are kept of a conversation, the latest first."""
        return await self._find(conversation=token)

    async def warn(self, message: str) -> None:
        """Send a warning to the client."""
        await self._wire.request("_segue/warn", {"message": message})

    async def _find(self, **asked: str) -> Sequence[KeptPart]:
        """Return the kept parts that match, by project or conversation, as the client orders them."""
        return (await self._wire.request("_segue/find", asked))["found"]


def _named(key: SessionKey) -> dict[str, Any]:
    """Return the key of a part in the client's form."""
    return {"project": key["project_key"], "conversation": key["session_id"], "part": key.get("subpath") or ""}


def _batches(entries: Sequence[SessionStoreEntry]) -> Iterator[list[SessionStoreEntry]]:
    """Yield the entries in batches below the size of a request; a larger entry is a batch of its own."""
    batch: list[SessionStoreEntry] = []
    size = 0
    for entry in entries:
        length = len(json.dumps(cast(Mapping[str, Any], entry)))
        if batch and size + length > _REQUEST:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += length
    if batch:
        yield batch
