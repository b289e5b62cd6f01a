"""From the SDK's messages to the protocol's updates. Nothing here waits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from claude_agent_sdk import (
    AssistantMessage,
    ContentBlock,
    Message,
    ResultMessage,
    ServerToolResultBlock,
    ServerToolUseBlock,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from segue.drivers.skeleton import payloads
from segue.drivers.skeleton.payloads import Payload, ToolKind

ToolInput = Mapping[str, Any]

_KINDS: Mapping[str, ToolKind] = {
    "Bash": "execute",
    "Edit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Read": "read",
    "Glob": "search",
    "Grep": "search",
    "ToolSearch": "search",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    "web_fetch": "fetch",
    "web_search": "fetch",
    "ExitPlanMode": "switch_mode",
    "EnterPlanMode": "switch_mode",
}
_COMPACTION: Payload = {"claudeCode": {"toolName": "compact"}}
"""Mark of a compaction, as the client knows it from Claude Code's own adapter."""
_MAIN_INPUTS = ("command", "file_path", "notebook_path", "pattern", "url", "query", "description")
_PATHS = ("file_path", "notebook_path")
# What fills the window: the prompt, fresh or cached, and the answer.
_IN_USE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class MessageTranslation:
    """Translation of messages into updates, which remembers the content that was streamed."""

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.model: str | None = None
        self.last_message: str | None = None
        self.messages = 0
        """Messages since the last turn began."""
        self.calls = 0
        """How many tools were used since then."""
        self._used: dict[str, int] = {}
        self._streamed: str | None = None
        self._compaction: str | None = None

    def translate(self, message: Message) -> Iterator[Payload]:
        """Yield the updates of a message of Claude Code; other kinds of messages give none."""
        match message:
            case StreamEvent(parent_tool_use_id=None):
                yield from self._stream(message.event)
            case AssistantMessage():
                yield from self._assistant(message)
            case UserMessage(content=list(blocks)):
                self.messages += message.parent_tool_use_id is None
                yield from self._blocks(blocks, aloud=False)
            case SystemMessage(subtype="compact_boundary"):
                yield from self._compacted(message.data)
            case ResultMessage():
                yield from self._result(message)
            case _:
                return

    # ── what it says ────────────────────────────────────────────────────────────────────────────────

    def _stream(self, event: ToolInput) -> Iterator[Payload]:
        """Yield the updates of a streamed event: text, thoughts and tokens."""
        match event:
            case {"type": "message_start", "message": {"id": str(name), "model": str(model), "usage": usage}}:
                self._streamed, self.model = name, model
                self._used = _counts(usage)
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}} if text:
                yield payloads.message(text)
            case {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": str(text)}} if text:
                yield payloads.thought(text)
            case {"type": "message_delta", "usage": usage}:
                self._used |= _counts(usage)
                yield from self._usage(None)
            case _:
                return

    def _assistant(self, message: AssistantMessage) -> Iterator[Payload]:
        """Yield the updates of an assistant's message; text that was streamed is not repeated."""
        main = message.parent_tool_use_id is None
        if main:
            self.messages += 1
            self.last_message = message.uuid or self.last_message
        # What came as a stream was told already, and an error is told with the end of the turn.
        aloud = main and message.error is None and message.message_id != self._streamed
        yield from self._blocks(message.content, aloud=aloud)

    def _blocks(self, blocks: Sequence[ContentBlock], *, aloud: bool) -> Iterator[Payload]:
        """Yield the updates of content blocks: calls and results, and text and thoughts if `aloud`."""
        for block in blocks:
            match block:
                case TextBlock() if aloud and block.text:
                    yield payloads.message(block.text)
                case ThinkingBlock() if aloud and block.thinking:
                    yield payloads.thought(block.thinking)
                case ToolUseBlock() | ServerToolUseBlock():
                    self.calls += 1
                    changes = _change(block.name, block.input)
                    yield payloads.call_started(call(block.id, block.name, block.input), "pending", changes=changes)
                case ToolResultBlock():
                    yield _finished(block.tool_use_id, _text(block.content), failed=bool(block.is_error))
                case ServerToolResultBlock():
                    yield _finished(block.tool_use_id, "", failed="error" in str(block.content.get("type")))
                case _:
                    pass

    # ── how full it is ──────────────────────────────────────────────────────────────────────────────

    def _result(self, result: ResultMessage) -> Iterator[Payload]:
        """Note the window that the result names, and yield the usage with the cost."""
        told: ToolInput = (result.model_usage or {}).get(self.model or "") or {}
        self.window = told.get("contextWindow") or self.window
        yield from self._usage(result.total_cost_usd)

    def _usage(self, dollars: float | None) -> Iterator[Payload]:
        """Yield the tokens in the context with the cost (None if unknown); nothing if none were counted."""
        if used := sum(self._used.values()):
            yield payloads.window(used, self.window or 0, dollars, meta={"_claude/model": self.model})

    def compacting(self) -> Iterator[Payload]:
        """Yield the begin of a compaction as a call, and note it."""
        self._compaction = f"compaction-{uuid4()}"
        call = payloads.call(self._compaction, "Compact conversation", "other")
        yield payloads.call_started(call, "in_progress", meta=_COMPACTION)

    def _compacted(self, data: ToolInput) -> Iterator[Payload]:
        """Yield the end of a compaction with its tokens; its begin first if it was not reported."""
        if self._compaction is None:
            yield from self.compacting()
        told: ToolInput = data.get("compact_metadata") or {}
        counted = {"preTokens": told.get("pre_tokens"), "postTokens": told.get("post_tokens")}
        yield payloads.call_ended(self._compaction or "", "completed", raw=counted, meta=_COMPACTION)
        self._compaction = None
        self._used = {}


def _counts(usage: ToolInput) -> dict[str, int]:
    """Return the counts of tokens in use."""
    return {name: usage[name] for name in _IN_USE if isinstance(usage.get(name), int)}


# ── tool calls ──────────────────────────────────────────────────────────────────────────────────────


def call(call_id: str, tool: str, given: ToolInput) -> Payload:
    """Return a call of a tool, as the protocol writes it."""
    paths = [given[name] for name in _PATHS if isinstance(given.get(name), str)]
    return payloads.call(call_id, _title(tool, given), _KINDS.get(tool, "other"), paths=paths or None, given=given)


def _finished(call_id: str, output: str, *, failed: bool) -> Payload:
    """Return the update that ends a call; empty output becomes None."""
    return payloads.call_ended(call_id, "failed" if failed else "completed", output or None)


def _title(tool: str, given: ToolInput) -> str:
    """Return a call's title: its main argument, with the tool unless it is Bash."""
    main = next((given[name] for name in _MAIN_INPUTS if isinstance(given.get(name), str)), "")
    return main if tool == "Bash" and main else f"{tool} {main}".strip()


def _change(tool: str, given: ToolInput) -> list[Payload] | None:
    """Return the diff of a call that writes or edits a file; None for other calls."""
    match tool, given:
        case "Write", {"file_path": str(path), "content": str(text)}:
            return [payloads.diff(path, text)]
        case "Edit", {"file_path": str(path), "old_string": str(before), "new_string": str(after)}:
            return [payloads.diff(path, after, before)]
        case _:
            return None


def _text(content: str | Sequence[ToolInput] | None) -> str:
    """Return the text of a result's content; empty if it has none."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block["text"] for block in content if isinstance(block.get("text"), str))
