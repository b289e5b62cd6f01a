"""Copy of Claude Code's conversation at Segue: kept up to date while it is open, and restored if the original is lost.

The copy is always a beginning of the conversation, without gaps: after the first entry that could not be added no
other is, until the conversation is opened the next time and the copy caught up with Claude Code's own file. Lines that
cannot be read there are missing in the copy too, with a warning.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import SessionKey, SessionStoreEntry

from segue.drivers.claude.client_store import ClientStore, KeptPart
from segue.drivers.claude.session_files import FileEntry, UnreadableLine, lines, named_entries, parts, projects, put
from segue.drivers.skeleton.jsonrpc import INTERNAL_ERROR, RequestError

# Less than the SDK waits: it would drop the entries and go on with the next ones.
_WITHIN = 30.0
_REDACTED = "[redacted:"
_METADATA = "agent_metadata"
"""The type of an entry that Claude Code keeps in a file of its own, beside the conversation that it describes."""


class Mirror:
    """Session store for the SDK. A failing copy does not disturb the turn, and causes one warning."""

    def __init__(self, store: ClientStore) -> None:
        self._store = store
        self._stopped = False

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Send entries to the copy; after a failure, which causes one warning, do nothing any more."""
        if self._stopped:
            return
        try:
            async with asyncio.timeout(_WITHIN):
                await self._store.append(key, entries)
        except (RequestError, OSError) as error:
            await self._stop(error)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return None: else the SDK would start Claude Code in a temporary home, away from the user's own settings."""
        return None

    async def catch_up(self, token: str) -> None:
        """Add the entries that are in Claude Code's file and not in the copy, after a crash or a failure."""
        try:
            kept = {(each["project"], each["part"]): each["last"] for each in await self._store.parts(token)}
        except (RequestError, OSError) as error:
            await self._stop(error)
            return
        for key, file in parts(token):
            news = _after(kept.get((key["project_key"], key.get("subpath", ""))), list(named_entries(file)))
            entries = [each for each in news if not isinstance(each, UnreadableLine)]
            await self.append(key, cast(list[SessionStoreEntry], entries))
            if gaps := [str(each.number) for each in news if isinstance(each, UnreadableLine)]:
                await self._warn(
                    f"Claude Code's own file {file} cannot be read in line {', '.join(gaps)}. Segue's copy of this "
                    "conversation goes on without that."
                )

    async def _stop(self, error: Exception) -> None:
        """Stop copying, and warn of the reason."""
        self._stopped = True
        message = f"Segue's copy of this conversation stands still until it is opened again: {error or 'no answer'}"
        await self._warn(message)

    async def _warn(self, message: str) -> None:
        """Send a warning to the client; a failure is ignored."""
        # Whoever is gone need not be told.
        with suppress(RequestError, OSError):
            await self._store.warn(message)


def _after(last: str | None, found: Sequence[FileEntry | UnreadableLine]) -> Sequence[FileEntry | UnreadableLine]:
    """Return the entries after the one that was added last; all of them if that one is unknown."""
    names = [None if isinstance(each, UnreadableLine) else each["uuid"] for each in found]
    return found[names.index(last) + 1 if last in names and last else 0 :]


# ── putting it back ─────────────────────────────────────────────────────────────────────────────────


async def restore(store: ClientStore, token: str, project: str | None = None) -> bool:
    """Write a conversation from Segue's copy to where Claude Code reads it; return False without a copy, or if the file
    exists."""
    found = await store.parts(token)
    main = next((each for each in found if not each["part"]), None)
    if main is None:
        return False
    place = projects() / (project or main["project"])
    try:
        for each in found:
            if each["part"] and each["project"] == main["project"]:
                await _restore_part(store, each, place / token / f"{each['part']}.jsonl")
        # The main file comes last: with it the conversation is there.
        if not put(place / f"{token}.jsonl", lines(await _loaded(store, main))):
            return False
    except OSError as error:
        raise RequestError(
            INTERNAL_ERROR, f"Segue's copy of conversation {token} could not be put back: {error}"
        ) from error
    until = datetime.fromisoformat(main["at"]).isoformat(" ", "seconds")
    await store.warn(
        f"Claude Code did not have conversation {token} any more. It was put back from Segue's copy, which was last "
        f"added to at {until}; secrets are left out of it, and a result without its call is told in words."
    )
    return True


async def _restore_part(store: ClientStore, part: KeptPart, file: Path) -> None:
    """Write one part of a conversation, and its description, into Claude Code's files."""
    stored = await _loaded(store, part)
    put(file, lines([entry for entry in stored if entry["type"] != _METADATA]))
    if described := [entry for entry in stored if entry["type"] == _METADATA]:
        own = {name: value for name, value in described[-1].items() if name != "type"}
        put(file.with_suffix(".meta.json"), json.dumps(own))


async def _loaded(store: ClientStore, part: KeptPart) -> list[Mapping[str, Any]]:
    """Return the kept entries of a part, in a form that the vendor accepts."""
    key: SessionKey = {"project_key": part["project"], "session_id": part["conversation"], "subpath": part["part"]}
    saying = _Saying()
    return [saying.entry(cast(dict[str, Any], entry)) for entry in await store.load(key) or ()]


class _Saying:
    """Replacement, as text, of blocks that the vendor would refuse; no entry is dropped, since others may name it."""

    def __init__(self) -> None:
        self._called: set[str] = set()

    def entry(self, entry: dict[str, Any]) -> Mapping[str, Any]:
        """Return an entry with those blocks replaced by text that the vendor would refuse."""
        match entry:
            case {"message": {"content": [*blocks]}}:
                return {**entry, "message": {**entry["message"], "content": [self._block(block) for block in blocks]}}
            case _:
                return entry

    def _block(self, block: Any) -> Any:
        """Return a block as it is, or as text: a result without its call, a redacted or empty thought."""
        match block:
            case {"type": "tool_use", "id": str(call)}:
                self._called.add(call)
                return block
            case {"type": "tool_result", "tool_use_id": str(call)} if call not in self._called:
                return _words(f"[The result of a call that is missing here: {json.dumps(block.get('content'))}]")
            case {"type": "thinking", "thinking": str(thought)} if _REDACTED in json.dumps(block):
                # It is signed by the vendor, who refuses one that was changed.
                return _words(thought)
            case {"type": "thinking", "thinking": ""} if not block.get("signature"):
                return _words("[An empty thought]")
            case _:
                return block


def _words(text: str) -> Mapping[str, str]:
    """Return text as a content block."""
    return {"type": "text", "text": text}
