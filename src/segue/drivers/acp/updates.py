"""From the protocol's updates to events. Nothing here waits, so the order of the updates is the order of the events."""

import difflib
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeGuard

from acp.schema import (
    AgentMessageChunk,
    AgentPlanContentUpdate,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ContentToolCallContent,
    EmbeddedResourceContentBlock,
    FileEditToolCallContent,
    ImageContentBlock,
    PlanEntry,
    PlanUpdateItems,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
)
from pydantic import BaseModel, ValidationError

from segue.drivers.acp.meter import Meter
from segue.drivers.acp.risky_paths import ordinary
from segue.drivers.acp.window import Window
from segue.drivers.text import shortened
from segue.model.events import (
    AgentEvent,
    JsonObject,
    PermissionOption,
    PermissionRequested,
    TextDelta,
    TodoEntry,
    TodoUpdated,
    ToolCalled,
    ToolFinished,
    ToolStatus,
)
from segue.model.ids import RequestId
from segue.workspace.files import real_path

LONGEST_OUTPUT = 20_000
"""Characters of a tool call's output that are kept."""

_CHANGES = frozenset({"edit", "delete", "move"})
# What is longer is no complaint.
_LONGEST_MESSAGE = 2_000

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Call:
    """State of a tool call; each update of it may add more."""

    call_id: str
    title: str = ""
    tool: str = "other"
    input: JsonObject = field(default_factory=dict[str, Any])
    paths: tuple[str, ...] = ()
    output: str = ""
    diff: str = ""
    """Diff of an edit; some agents send a sentence in its place in the end."""
    begun: bool = False
    told: bool = False
    finished: bool = False
    compacts: bool = False

    @property
    def understood(self) -> bool:
        """True if the call can be shown: some agents send the directory before the command."""
        return bool(self.input.keys() - {"cwd"} or set(self.paths) - {self.input.get("cwd")})

    def learn(self, news: ToolCallStart | ToolCallUpdate) -> None:
        """Add the content of an update to the state of the call."""
        self.compacts = self.compacts or _compacts(news)
        self.title = news.title or self.title
        self.tool = news.kind or self.tool
        if news.raw_input:
            self.input = news.raw_input if is_object(news.raw_input) else {"value": news.raw_input}
        if news.locations or news.content:
            self.paths = _paths(news) or self.paths
        self.output = _output(news) or self.output
        if any(isinstance(each, FileEditToolCallContent) for each in news.content or ()):
            self.diff = _output(news)

    def kind(self, directory: Path) -> str:
        """Return the kind for a permission request: a change of unknown or risky paths is not an ordinary edit."""
        known = self.paths and all(ordinary(path, directory) for path in self.paths)
        return self.tool if known or self.tool not in _CHANGES else "other"

    def result(self, status: ToolStatus) -> str:
        """Return the output of a call, with its diff if the call succeeded and the output lacks it."""
        if status == "failed" or not self.diff or self.diff in self.output:
            return self.output
        return shortened(f"{self.diff}\n{self.output}", LONGEST_OUTPUT)

    def called(self) -> Iterator[AgentEvent]:
        """Yield the event of the call once; nothing for a compaction or if it was reported."""
        if not self.told and not self.compacts:
            self.told = True
            yield ToolCalled(call_id=self.call_id, title=self.title, tool=self.tool, input=self.input, paths=self.paths)


class _LastMessage:
    """Last message of the agent; cleared by whatever it does after it."""

    def __init__(self) -> None:
        self.text = ""
        self._id: str | None = None
        self._paragraph_ended = False

    def add(self, text: str, message_id: str | None) -> None:
        """Append a piece of the same message; a new message or a separate notice replaces it."""
        # Notices that come between messages have no id and a blank line of their own.
        ends = text.endswith("\n\n")
        notice = message_id is None and ends and self._paragraph_ended
        if notice or message_id != self._id:
            self.text = text
        elif len(self.text) < _LONGEST_MESSAGE:
            self.text += text
        self._id, self._paragraph_ended = message_id, ends

    def clear(self) -> None:
        """Forget the message."""
        self.text, self._id, self._paragraph_ended = "", None, False


class UpdateTranslation:
    """Turns the agent's updates into events, and remembers the tool calls for it."""

    def __init__(self, directory: Path, meter: Meter | None = None) -> None:
        self._directory = directory
        self._calls: dict[str, _Call] = {}
        self._window = Window()
        self._meter = meter or Meter()
        self._last = _LastMessage()

    @property
    def last_message(self) -> str:
        """Last message of this turn, if the agent did nothing after it."""
        return self._last.text

    def begin_turn(self) -> None:
        """Forget the last message of the turn before."""
        self._last.clear()

    def translate(self, update: JsonObject) -> Iterator[AgentEvent]:
        """Yield the events of an update; unknown and invalid updates give none."""
        model = _UPDATES.get(str(update.get("sessionUpdate")))
        if model is None:
            return
        try:
            news = model.model_validate(update)
        except ValidationError as error:
            # Where it was wrong, and not what it said: this goes to a log.
            places = [(problem["loc"], problem["type"]) for problem in error.errors(include_input=False)]
            _log.warning("an agent's update is left out: %s %s", model.__name__, places)
            return
        match news:
            case AgentMessageChunk():
                yield from self._window.settle()
                self._last.add(_text(news.content), news.message_id)
                yield from _delta("message", _text(news.content))
            case AgentThoughtChunk():
                self._last.clear()
                yield from _delta("thought", _text(news.content))
            case ToolCallStart() | ToolCallProgress():
                self._last.clear()
                yield from self._tool_call(news)
            case AgentPlanUpdate():
                yield _todo(news.entries)
            case AgentPlanContentUpdate(plan=PlanUpdateItems() as plan):
                yield _todo(plan.entries)
            case UsageUpdate():
                yield from self._window.report(news.used)
                yield self._meter.window(news)
            case _:
                return

    def recall(self, update: JsonObject) -> None:
        """Record a tool call of an old conversation: it was reported when it happened, only its end may be new."""
        for _ in self.translate(update):
            pass
        if (call := self._calls.get(str(update.get("toolCallId")))) is not None:
            call.told = True
        self._window.forget()

    def question(
        self, request_id: RequestId, asked: ToolCallUpdate, options: tuple[PermissionOption, ...]
    ) -> Iterator[AgentEvent]:
        """Yield the events of a permission request, the call's own first if it began."""
        call = self._unfinished(asked.tool_call_id)
        call.learn(asked)
        if call.begun:
            yield from call.called()
        yield PermissionRequested(
            request_id=request_id,
            call_id=call.call_id,
            title=call.title,
            tool=call.kind(self._directory),
            options=options,
            free_text=_takes_words(asked),
        )

    def allowed(self, call_id: str) -> Iterator[AgentEvent]:
        """Mark a call as allowed. Calls that agents report only when they are over are reported now."""
        call = self._call(call_id)
        call.begun = True
        yield from call.called()

    def edited(self, call_id: str) -> Iterator[Path]:
        """Yield the files of a call that is an edit; nothing for other calls."""
        call = self._call(call_id)
        for path in call.paths if call.tool == "edit" else ():
            with suppress(OSError, ValueError):
                yield real_path(self._directory / path)

    def remainder(self) -> Iterator[AgentEvent]:
        """Yield what was not reported yet at the end of the updates: a compaction, and calls that were begun."""
        yield from self._window.settle()
        for call in self._calls.values():
            if call.begun:
                yield from call.called()

    def _call(self, call_id: str) -> _Call:
        """Return the call of this id, created if it is new."""
        return self._calls.setdefault(call_id, _Call(call_id))

    def _unfinished(self, call_id: str) -> _Call:
        """Return the call of this id, or a new one if it is finished: some agents reuse their ids in each turn."""
        if self._call(call_id).finished:
            self._calls[call_id] = _Call(call_id)
        return self._calls[call_id]

    def _tool_call(self, news: ToolCallStart | ToolCallProgress) -> Iterator[AgentEvent]:
        """Yield the events of a tool call's update: its begin once it can be shown, its end, or a compaction."""
        call = self._call(news.tool_call_id)
        if call.finished and isinstance(news, ToolCallProgress):
            if call.compacts:
                yield from self._compaction(call, news)
            return
        call = self._unfinished(news.tool_call_id)
        call.learn(news)
        call.begun = True
        if call.compacts:
            yield from self._compaction(call, news)
            return
        # Agents announce a call while the model still writes its input; it is told when there is something to tell.
        if call.understood or news.status not in (None, "pending"):
            yield from call.called()
        if news.status == "completed" or news.status == "failed":
            call.finished = True
            yield ToolFinished(call_id=call.call_id, status=news.status, output=call.result(news.status))
            call.input, call.output, call.diff = {}, "", ""

    def _compaction(self, call: _Call, news: ToolCallStart | ToolCallProgress) -> Iterator[AgentEvent]:
        """Yield the end of a compaction with its tokens, once they are known."""
        raw = news.raw_output if is_object(news.raw_output) else {}
        before, after = _whole(raw.get("preTokens")), _whole(raw.get("postTokens"))
        match news.status:
            case "completed":
                call.finished = True
                yield from self._window.done(before, after)
            case "failed":
                call.finished = True
                self._window.failed()
            case _ if call.finished:
                yield from self._window.counted(before, after)
            case _:
                self._window.begin()


_UPDATES: dict[str, type[BaseModel]] = {
    "agent_message_chunk": AgentMessageChunk,
    "agent_thought_chunk": AgentThoughtChunk,
    "tool_call": ToolCallStart,
    "tool_call_update": ToolCallProgress,
    "plan": AgentPlanUpdate,
    "plan_update": AgentPlanContentUpdate,
    "usage_update": UsageUpdate,
}


def _compacts(news: ToolCallStart | ToolCallUpdate) -> bool:
    """Return True if a call is the agent's compaction of its conversation."""
    claude = (news.field_meta or {}).get("claudeCode")
    return news.title == "Compact conversation" or (is_object(claude) and claude.get("toolName") == "compact")


def _takes_words(asked: ToolCallUpdate) -> bool:
    """Return True if a question allows free text; only our own agent programs mark that."""
    ours = (asked.field_meta or {}).get("segue")
    return is_object(ours) and ours.get("words") is True


def _whole(value: object) -> int | None:
    """Return the value if it is an integer, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _delta(role: Literal["message", "thought"], text: str) -> Iterator[AgentEvent]:
    """Yield a piece of text as an event; nothing if it is empty."""
    if text:
        yield TextDelta(role=role, text=text)


def is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _todo(entries: Sequence[PlanEntry]) -> TodoUpdated:
    """Return the agent's to-do list as an event."""
    return TodoUpdated(
        entries=tuple(TodoEntry(content=each.content, status=each.status, priority=each.priority) for each in entries)
    )


def _text(block: BaseModel) -> str:
    """Return a content block as text; an image as its type and size, unknown blocks as an empty text."""
    match block:
        case TextContentBlock():
            return block.text
        case ResourceContentBlock():
            return block.uri
        case ImageContentBlock() if block.data:
            return f"[image: {block.mime_type}, {len(block.data.rstrip('=')) * 3 // 4} bytes]"
        case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
            return resource.text
        case _:
            return ""


def _paths(news: ToolCallStart | ToolCallUpdate) -> tuple[str, ...]:
    """Return the files that an update of a call names, each once."""
    edited = (each.path for each in news.content or () if isinstance(each, FileEditToolCallContent))
    return tuple(dict.fromkeys([*(each.path for each in news.locations or ()), *edited]))


def _output(news: ToolCallStart | ToolCallUpdate) -> str:
    """Return the output in an update of a call, shortened."""
    parts = (_content_text(each) for each in news.content or ())
    text = "\n".join(part for part in parts if part)
    return shortened(text or _raw_text(news.raw_output), LONGEST_OUTPUT)


def _content_text(content: BaseModel) -> str:
    """Return one content of a call as text; an edit as a diff."""
    match content:
        case ContentToolCallContent():
            return _text(content.content)
        case FileEditToolCallContent():
            return _diff(content)
        case _:
            return ""


def _diff(edit: FileEditToolCallContent) -> str:
    """Return an edit as a diff; a large one as its new text only."""
    before, after = edit.old_text or "", edit.new_text
    # Comparing takes long where there is much to compare, and the rest would be cut off again.
    if len(before) + len(after) > LONGEST_OUTPUT:
        return f"+++ {edit.path}\n{after}"
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), edit.path, edit.path, lineterm="")
    return "\n".join(lines)


def _raw_text(raw: object) -> str:
    """Return raw output as text, JSON if it is no text; empty for None."""
    if raw is None or isinstance(raw, str):
        return raw or ""
    return json.dumps(raw, ensure_ascii=False)
