"""Messages of an old conversation, in an order that a model accepts, and the faults found in it.

Claude Code resumes from its own file, which is not changed: faults are reported, not repaired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from claude_agent_sdk import SessionMessage

INTERRUPTED = "[interrupted]"
_NO_MESSAGES: tuple["StoredMessage", ...] = ()

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """Message of one side, in the vendor's own blocks."""

    role: str
    content: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """A conversation in which every call has one result, right after it, and where that was not so."""

    messages: tuple[StoredMessage, ...] = _NO_MESSAGES
    interrupted: tuple[str, ...] = ()
    """Calls that were begun and whose result is unknown."""
    gaps: tuple[str, ...] = ()


def should_resume(token: str | None, messages: Sequence[object] | None) -> bool:
    """Return True if a conversation can be resumed: it has a token and at least one message."""
    return bool(token) and bool(messages)


def reconstruct(stored: Sequence[SessionMessage], at: str | None = None) -> Reconstruction:
    """Pair calls with their results; the content of messages is unchanged. Messages after `at` are left out."""
    last = next((number for number, each in enumerate(stored, start=1) if each.uuid == at), len(stored))
    messages = [_message(each) for each in stored[:last]]
    mending = _Mending()
    for message, following in zip(messages, [*messages[1:], None], strict=False):
        mending.take(message, following)
    return Reconstruction(
        messages=tuple(mending.messages), interrupted=tuple(mending.interrupted), gaps=tuple(mending.gaps)
    )


class _Mending:
    def __init__(self) -> None:
        self.messages: list[StoredMessage] = []
        self.interrupted: list[str] = []
        self.gaps: list[str] = []
        self._open: dict[str, str] = {}

    def take(self, message: StoredMessage, following: StoredMessage | None) -> None:
        """Add a message without its faulty blocks; close open calls if no result can follow."""
        content = tuple(self._kept(message))
        if content:
            self.messages.append(StoredMessage(role=message.role, content=content))
        self._open |= {str(block["id"]): called(block) for block in content if block["type"] == "tool_use"}
        if self._open and _over(message, following):
            self._close()

    def _kept(self, message: StoredMessage) -> Iterator[Block]:
        """Yield the blocks of a message, and note those left out as gaps: results without calls, empty thoughts."""
        for block in message.content:
            if block["type"] == "tool_result" and self._open.pop(str(block.get("tool_use_id")), None) is None:
                self.gaps.append("a result has no call")
            elif block["type"] == "thinking" and not block.get("thinking") and not block.get("signature"):
                self.gaps.append("a thought is empty")
            else:
                yield block

    def _close(self) -> None:
        """Add a failed result for every open call, and note the calls as interrupted."""
        results = tuple(
            {"type": "tool_result", "tool_use_id": call, "content": INTERRUPTED, "is_error": True}
            for call in self._open
        )
        self.messages.append(StoredMessage(role="user", content=results))
        self.interrupted += self._open.values()
        self.gaps += [f"{call} has no result" for call in self._open.values()]
        self._open.clear()


def called(block: Block) -> str:
    """Return a call as its tool and first argument."""
    given: object = block.get("input")
    words = [str(value) for value in given.values()] if _is_object(given) else []
    return f"{block.get('name')}({words[0][:200] if words else ''})"


def _over(message: StoredMessage, following: StoredMessage | None) -> bool:
    """Return True if no result can follow a message; calls and results of one answer may be several messages."""
    if following is None or message.role == "user" != following.role:
        return True
    return following.role == "user" and not any(block["type"] == "tool_result" for block in following.content)


def _message(stored: SessionMessage) -> StoredMessage:
    """Return a stored message with its content as blocks."""
    said: object = stored.message.get("content") if _is_object(stored.message) else None
    if isinstance(said, str):
        return StoredMessage(role=stored.type, content=({"type": "text", "text": said},))
    blocks: list[object] = said if isinstance(said, list) else []  # pyright: ignore[reportUnknownVariableType]
    return StoredMessage(
        role=stored.type, content=tuple(each for each in blocks if _is_object(each) and "type" in each)
    )


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
