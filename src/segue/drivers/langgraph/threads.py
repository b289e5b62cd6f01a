"""Threads of a graph, and their checkpoints in a SQLite file or a PostgreSQL database.

A thread begins with a checkpoint of its own, before the first prompt, so that it can be found again whenever its
process dies; the checkpoint's metadata names the directory to which it belongs.
"""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

Saver = BaseCheckpointSaver[Any]

_DIRECTORY = "segue_directory"
_BEFORE_ALL = -2
"""The step of a checkpoint that no input has reached yet."""
_LOCKED_FOR = 60.0
"""Seconds to wait while another graph writes to the same file."""


def place(environment: Mapping[str, str]) -> str:
    """Return the location of the checkpoints: an address of PostgreSQL, or a file."""
    if own := environment.get("SEGUE_LANGGRAPH_CHECKPOINTS"):
        return own
    data = environment.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path(environment.get("HOME", "/")) / ".local" / "share"
    return str(base / "segue-langgraph" / "checkpoints.sqlite")


@asynccontextmanager
async def opened(place: str) -> AsyncGenerator[Saver]:
    """Open the checkpoints at this location, created if missing: PostgreSQL, or an SQLite file."""
    if place.startswith(("postgresql:", "postgres:", "postgresql+psycopg:")):
        address = place.replace("postgresql+psycopg:", "postgresql:", 1)
        async with AsyncPostgresSaver.from_conn_string(address) as saver:
            await saver.setup()
            yield saver
        return
    async with aiosqlite.connect(_own_file(place), timeout=_LOCKED_FOR) as connection:
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
        yield saver


def _own_file(place: str) -> Path:
    """Create the file with private permissions, before SQLite writes into it."""
    file = Path(place.removeprefix("sqlite:///"))
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch(mode=0o600)
    return file


def config_of(token: str) -> RunnableConfig:
    return {"configurable": {"thread_id": token}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Thread in a list of conversations."""

    token: str
    updated_at: str


class Threads:
    """All threads of one place."""

    def __init__(self, saver: Saver) -> None:
        self._saver = saver

    async def begin(self, directory: str) -> str:
        """Store the first, empty checkpoint of a new thread, and return its token."""
        token = _new_token()
        metadata: dict[str, Any] = {"source": "input", "step": _BEFORE_ALL, "parents": {}, _DIRECTORY: _real(directory)}
        await self._saver.aput(_at(token), empty_checkpoint(), cast(CheckpointMetadata, metadata), {})
        return token

    async def knows(self, token: str, checkpoint: str | None = None) -> bool:
        """Return True if a thread, and its checkpoint if named, is stored."""
        return await self._saver.aget_tuple(_at(token, checkpoint=checkpoint)) is not None

    async def copy(self, token: str, directory: str, at: str | None = None) -> str:
        """Copy the checkpoints of a thread, up to `at` if given, into a new thread, and return its token."""
        copy = _new_token()
        # Ids of checkpoints grow with time, in graphs within the graph too: LangGraph finds the last one by that.
        found = [each async for each in self._saver.alist(config_of(token)) if at is None or _id(each) <= at]
        for number, each in enumerate(reversed(found), 1):
            metadata: dict[str, Any] = {key: value for key, value in each.metadata.items() if key != _DIRECTORY}
            if number == len(found):
                # Written last: a copy that was interrupted belongs to no directory, and is not listed.
                metadata[_DIRECTORY] = _real(directory)
            if _id(each) == at:
                # Nothing was under way there. What was begun from it came later, and belongs to the original.
                each = each._replace(pending_writes=[])
            await self._write(copy, each, cast(CheckpointMetadata, metadata))
        return copy

    async def all(self, directory: str) -> AsyncIterator[Listed]:
        """Yield the threads of a directory, each with the time of its last checkpoint."""
        beginnings = self._saver.alist(None, filter={_DIRECTORY: _real(directory)})
        tokens = [_configurable(each.config)["thread_id"] async for each in beginnings]
        for token in tokens:
            last = await self._saver.aget_tuple(config_of(token))
            if last is not None:
                yield Listed(token=token, updated_at=last.checkpoint["ts"])

    async def _write(self, token: str, found: CheckpointTuple, metadata: CheckpointMetadata) -> None:
        """Store a copy of a checkpoint and its pending writes under another token."""
        namespace = _configurable(found.config).get("checkpoint_ns", "")
        parent = _configurable(found.parent_config).get("checkpoint_id")
        config = await self._saver.aput(
            _at(token, namespace, parent), found.checkpoint, metadata, found.checkpoint["channel_versions"]
        )
        for task, writes in groupby(found.pending_writes or (), key=lambda write: write[0]):
            await self._saver.aput_writes(config, [(channel, value) for _, channel, value in writes], task)


def _new_token() -> str:
    return f"langgraph-{secrets.token_hex(8)}"


def _at(token: str, namespace: str = "", checkpoint: str | None = None) -> RunnableConfig:
    """Return LangGraph's configuration for a thread, a namespace in it and a checkpoint."""
    return {"configurable": {"thread_id": token, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}}


def _id(found: CheckpointTuple) -> str:
    return found.checkpoint["id"]


def _configurable(config: RunnableConfig | None) -> dict[str, Any]:
    """Return the inner part of a configuration; empty for None."""
    return (config or {}).get("configurable", {})


def _real(directory: str) -> str:
    """Return the real path of a directory, wherever links lead."""
    return str(Path(directory).resolve())
