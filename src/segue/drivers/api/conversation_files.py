"""Files of the agent's conversations: each line is on disk before the work goes on.

So a process that is killed at any moment leaves a conversation that can be resumed. A last line that was not written
to its end is cut off. A tool call without a result gets one that explains it, before the next prompt. The process that
resumes a conversation locks its file, so that no second process writes into it; reading needs no lock.
"""

import fcntl
import io
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

INTERRUPTED = "The process ended before this call's result was recorded. Its effect may be absent, partial or complete."
CANCELLED = "The turn was cancelled before this call was finished. Its effect may be absent or partial."


class ConversationDamaged(Exception):
    """A conversation cannot be read any more."""


class ConversationHeld(Exception):
    """The conversation is open in another process."""


def home(environment: Mapping[str, str]) -> Path:
    """Return the directory of the agent's conversations, from the environment."""
    if own := environment.get("SEGUE_API_HOME"):
        return Path(own)
    data = environment.get("XDG_DATA_HOME", "")
    base = Path(data) if data.startswith("/") else Path(environment.get("HOME", "/")) / ".local" / "share"
    return base / "segue-api"


class ConversationFile:
    """Conversation in a file. Only the process that holds its lock appends to it, until it is closed."""

    def __init__(self, file: Path, *, hold: bool) -> None:
        """Read the conversation from its file, under its lock if `hold`; raise an error if it is damaged or held."""
        self.token = file.stem
        self.directory = ""
        self.model: str | None = None
        self._file = _LineFile(file, hold=hold)
        self._messages: list[ModelMessage] = []
        self._spent: float | None = 0.0
        self._priced = 0
        try:
            for line in self._file.lines():
                self._take(line)
        except ConversationDamaged:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock."""
        self._file.close()

    # ── what is known ───────────────────────────────────────────────────────────────────────────────

    @property
    def title(self) -> str:
        """How it began."""
        prompts = (part for message in self._messages for part in message.parts if isinstance(part, UserPromptPart))
        words = (word for part in prompts for word in part.content if isinstance(word, str))
        return next(words, "")[:100]

    @property
    def updated_at(self) -> str:
        return datetime.fromtimestamp(self._file.file.stat().st_mtime, UTC).isoformat()

    @property
    def length(self) -> int:
        """Messages so far: each of them stays where it is, so that this is a name for the place behind the last."""
        return len(self._messages)

    def messages(self, until: int | None = None) -> list[ModelMessage]:
        """Return the first `until` messages as a model expects them: the results of one response in one message."""
        merged: list[ModelMessage] = []
        for message in self._messages[:until]:
            if _answers(message) and merged and _answers(before := merged[-1]):
                merged[-1] = replace(before, parts=[*before.parts, *message.parts])
            else:
                merged.append(message)
        return merged

    def open_calls(self) -> list[ToolCallPart]:
        """Return the calls of the last response that have no result."""
        parts = (part for message in self._messages for part in message.parts)
        answered = {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
        last = next((each for each in reversed(self._messages) if isinstance(each, ModelResponse)), None)
        return [call for call in last.tool_calls if call.tool_call_id not in answered] if last else []

    def spent(self) -> float | None:
        """Return the US dollars for all answers so far, by the vendors' own prices; None if one is not known."""
        unpriced = [each for each in self._messages[self._priced :] if isinstance(each, ModelResponse)]
        self._priced = len(self._messages)
        try:
            if self._spent is not None:
                self._spent += sum(float(each.cost().total_price) for each in unpriced)
        except (LookupError, AssertionError):
            self._spent = None
        return self._spent

    # ── what is added ───────────────────────────────────────────────────────────────────────────────

    def add(self, message: ModelMessage) -> None:
        """Append a message to the file."""
        self._append({"message": ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]})

    def answer(self, call: ToolCallPart, content: str, *, failed: bool) -> None:
        """Append the result of a call to the file."""
        part = ToolReturnPart(
            tool_name=call.tool_name,
            content=content,
            tool_call_id=call.tool_call_id,
            outcome="failed" if failed else "success",
        )
        self.add(ModelRequest(parts=[part]))

    def close_calls(self, words: str) -> list[ToolCallPart]:
        """Store a failed result with this text for every open call, and return the calls; models need all results."""
        calls = self.open_calls()
        for call in calls:
            self.answer(call, words, failed=True)
        return calls

    def choose(self, model: str) -> None:
        """Append the choice of a model to the file."""
        self._append({"model": model})

    def open_in(self, directory: str) -> None:
        """Append the directory of the conversation to the file."""
        self._append({"directory": directory})

    def _append(self, line: dict[str, Any]) -> None:
        """Append a line to the file, and apply it."""
        self._file.append(line)
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        """Apply one line: directory, model or message; raise ConversationDamaged if it is invalid."""
        self.directory = line.get("directory", self.directory)
        self.model = line.get("model", self.model)
        if "message" in line:
            try:
                self._messages += ModelMessagesTypeAdapter.validate_python([line["message"]])
            except ValidationError as error:
                raise ConversationDamaged(f"The conversation {self.token} is damaged.") from error


class ConversationFiles:
    """All conversations of the agent."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "conversations"

    def begin(self, directory: str) -> ConversationFile:
        """Create a conversation of this directory, and hold its lock."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        history = ConversationFile(self._path(f"api-{secrets.token_hex(8)}"), hold=True)
        history.open_in(directory)
        return history

    def find(self, token: str, *, hold: bool) -> ConversationFile | None:
        """Return the conversation of this token, locked if `hold`; None if there is none."""
        # A token comes from outside and becomes a file name.
        if not re.fullmatch(r"[\w-]+", token) or not self._path(token).exists():
            return None
        return ConversationFile(self._path(token), hold=hold)

    def copy(self, history: ConversationFile, directory: str, until: int | None = None) -> ConversationFile:
        """Create a copy of the first `until` messages, or of all, for this directory; hold its lock."""
        copy = self.begin(directory)
        if history.model is not None:
            copy.choose(history.model)
        for message in history.messages(until):
            copy.add(message)
        return copy

    def all(self, directory: str) -> Iterator[ConversationFile]:
        """Yield the undamaged conversations of this directory, or all for an empty one."""
        for file in sorted(self._directory.glob("*.jsonl")):
            try:
                history = ConversationFile(file, hold=False)
            except ConversationDamaged:
                continue
            if not directory or Path(history.directory).resolve() == Path(directory).resolve():
                yield history

    def _path(self, token: str) -> Path:
        return self._directory / f"{token}.jsonl"


def _answers(message: ModelMessage) -> TypeGuard[ModelRequest]:
    """Return True if a message has only results of tool calls."""
    return isinstance(message, ModelRequest) and all(isinstance(part, ToolReturnPart) for part in message.parts)


# ── the file ────────────────────────────────────────────────────────────────────────────────────────


class _LineFile:
    """Lines that are on disk when they were appended."""

    def __init__(self, file: Path, *, hold: bool) -> None:
        """Read the complete lines, under a lock if `hold`; an unfinished last one is overwritten later."""
        self.file = file
        self._held = _held(file) if hold else None
        content = file.read_bytes() if file.exists() else b""
        # What a process that was killed was about to write was never acted on; the next line is written over it.
        self._whole = content[: content.rfind(b"\n") + 1]
        self._end = len(self._whole)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines as JSON; raise ConversationDamaged at one that is none."""
        for line in self._whole.splitlines():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ConversationDamaged(f"The conversation {self.file.stem} is damaged.") from error

    def append(self, line: dict[str, Any]) -> None:
        """Append a line, which is on disk when this returns."""
        if self._held is None:
            raise ValueError(f"The conversation {self.file.stem} is not held, and cannot be added to.")
        content = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        self._held.truncate(self._end)
        self._held.seek(self._end)
        rest = content
        while rest:
            rest = rest[self._held.write(rest) :]
        os.fsync(self._held.fileno())
        self._end += len(content)

    def close(self) -> None:
        """Release the lock, if it is held."""
        if self._held is not None:
            self._held.close()
            self._held = None


def _held(file: Path) -> io.FileIO:
    """Open and lock the file, created if missing; raise ConversationHeld if another process has the lock."""
    fresh = not file.exists()
    stream = io.FileIO(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        raise ConversationHeld(f"The conversation {file.stem} is open in another process.") from None
    if fresh:
        _sync(file.parent)
    return stream


def _sync(directory: Path) -> None:
    """Write a directory to disk: a power cut would lose its new file otherwise."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
