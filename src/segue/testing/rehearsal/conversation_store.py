"""The agent's memory: its conversations, and the steps that it plays only once."""

import re
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from segue.testing.rehearsal.line_file import Line, LineFile, read_lines


class StoredConversation:
    """Conversation, stored line by line so that another process can continue it."""

    def __init__(self, path: Path) -> None:
        """Read the conversation so far, and open its file to append."""
        self.token = path.stem
        self._past = read_lines(path)
        self._lines = LineFile(path)

    def add(self, kind: str, **details: Any) -> None:
        """Append a line, which is on disk when this returns."""
        line = {"kind": kind, **details}
        self._lines.append(line)
        self._past.append(line)

    @property
    def prompts(self) -> list[str]:
        """All prompts of this conversation."""
        return [line["text"] for line in self._past if line["kind"] == "prompt"]

    def last(self, kind: str, name: str) -> str | None:
        """Return a field of the last line of a kind, or None."""
        return next((line[name] for line in reversed(self._past) if line["kind"] == kind), None)

    def __iter__(self) -> Iterator[Line]:
        return iter(tuple(self._past))

    def close(self) -> None:
        self._lines.close()


class ConversationStore:
    """The agent's home directory."""

    def __init__(self, home: Path) -> None:
        self._conversations = home / "conversations"
        self._played = home / "played.jsonl"
        self._lines = LineFile(self._played)

    def begin(self) -> StoredConversation:
        """Return a new conversation with a random token."""
        return StoredConversation(self._path(f"rehearsal-{secrets.token_hex(8)}"))

    def find(self, token: str) -> StoredConversation | None:
        """Return the conversation of this token, or None."""
        # The client supplies the token, which becomes a file name.
        if not re.fullmatch(r"[\w-]+", token) or not self._path(token).exists():
            return None
        return StoredConversation(self._path(token))

    def copy(self, conversation: StoredConversation) -> StoredConversation:
        """Return a new conversation with the same lines."""
        copied = self.begin()
        for line in conversation:
            copied.add(**line)
        return copied

    def all(self, directory: str) -> list[tuple[StoredConversation, str]]:
        """List the conversations of a directory, each with the time of its last change."""
        paths = sorted(self._conversations.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        dated = [(StoredConversation(path), datetime.fromtimestamp(path.stat().st_mtime, UTC)) for path in paths]
        return [(each, at.isoformat()) for each, at in dated if each.last("opened", "directory") == directory]

    def first_time(self, key: str) -> bool:
        """Note that a step is played; return False if it was already."""
        if any(line["key"] == key for line in read_lines(self._played)):
            return False
        self._lines.append({"key": key})
        return True

    def _path(self, token: str) -> Path:
        return self._conversations / f"{token}.jsonl"
