"""Register of the opened conversations, in memory and on disk: their names and figures, and no content."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMetadata:
    """Names and figures of one conversation."""

    id: str
    cwd: str
    created_at: str
    last_message_at: str
    model: str | None = None
    """The one that was chosen for it; None where Claude Code chooses."""
    message_count: int = 0
    turn_count: int = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    last_stop_reason: str | None = None
    last_message: str | None = None
    """Id of the message at which its last turn ended, in Claude Code's own naming."""
    window: int | None = None
    """The context window of the model that answered last."""


def _now() -> datetime:
    return datetime.now(UTC)


class Register:
    """Looks into memory first, and then on disk."""

    def __init__(self, home: Path, now: Callable[[], datetime] = _now) -> None:
        self._directory = home / "sessions"
        self._now = now
        self._memory: dict[str, SessionMetadata] = {}

    def begin(self, token: str, cwd: str, model: str | None = None) -> SessionMetadata:
        """Store the figures of a new conversation."""
        moment = self._now().isoformat()
        return self._put(SessionMetadata(id=token, cwd=cwd, model=model, created_at=moment, last_message_at=moment))

    def find(self, token: str) -> SessionMetadata | None:
        """Return the figures of a conversation, from memory or disk; None if unknown or unreadable."""
        if token not in self._memory and (stored := self._read(token)) is not None:
            self._memory[token] = stored
        return self._memory.get(token)

    def update(self, token: str, **changes: Any) -> SessionMetadata:
        """Change and store the figures of a known conversation, with the time as that of its last message."""
        known = self._memory[token]
        return self._put(replace(known, last_message_at=self._now().isoformat(), **changes))

    def choose(self, token: str, model: str | None) -> None:
        """Store the model of a known conversation."""
        self._put(replace(self._memory[token], model=model))

    def _put(self, metadata: SessionMetadata) -> SessionMetadata:
        """Write figures to disk atomically, and keep them in memory."""
        self._memory[metadata.id] = metadata
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._path(metadata.id)
        draft = file.with_suffix(f".{os.getpid()}.tmp")
        with draft.open("w") as stream:
            json.dump(asdict(metadata), stream, indent=2)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
        return metadata

    def _read(self, token: str) -> SessionMetadata | None:
        """Return the figures stored on disk; None if there are none or they are not readable."""
        # A token comes from outside and becomes a file name.
        if not re.fullmatch(r"[\w-]+", token):
            return None
        try:
            stored = json.loads(self._path(token).read_text())
            return SessionMetadata(**{each.name: stored[each.name] for each in fields(SessionMetadata)})
        except (OSError, ValueError, KeyError, TypeError):
            # Figures that cannot be read are missing, and the conversation is Claude Code's own.
            return None

    def _path(self, token: str) -> Path:
        return self._directory / f"{token}.json"
