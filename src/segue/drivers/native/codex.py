"""Codex's rollout file: what went to the model and came back, and the program's own events."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from segue.drivers.native.injected import own_words
from segue.drivers.native.lines import JsonObject, Tally, is_object, number_of, objects_of, string_of, text_of
from segue.model.events import (
    AgentMessage,
    AgentThought,
    FileAction,
    FilesChanged,
    TodoEntry,
    TodoUpdated,
    ToolCalled,
    ToolFinished,
    ToolProgressed,
    UsageReported,
    WorkLocation,
)
from segue.model.transcript import Said, Summarised, UserSaid

KINDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
OWN_BUSINESS = frozenset({"world_state", "item_completed", "thread_settings_applied", "token_usage_record"})
SHELLS = frozenset({"shell", "exec_command", "exec", "local_shell", "shell_command", "container.exec", "write_stdin"})
TOOLS = {"apply_patch": "edit", "view_image": "read", "web_search": "fetch", "spawn_agent": "delegate"} | dict.fromkeys(
    SHELLS, "execute"
)
ACTIONS: dict[str, FileAction] = {"add": "created", "delete": "deleted", "update": "modified"}

_EXIT = re.compile(
    r"^Process exited with code (-?\d+)|^\W{0,3}[Ee]xit[ _]?[Cc]ode\W{0,4}(-?\d+)|^\W{0,3}exit(?:ed)?\s*[=:]\s*(-?\d+)",
    re.MULTILINE,
)
_SUMMARY_FRAME = re.compile(r"\AAnother language model started to solve this problem.*?\n+(?=\S)", re.DOTALL)
_NOTIFIED = re.compile(r"\s*<subagent_notification>\s*(\{.*\})\s*</subagent_notification>", re.DOTALL)
_RUNNING = re.compile(r"Process running with session ID (\d+)")
_FRAME = re.compile(
    r"(?:(?:Command|Chunk ID|Wall time|Original token count|Total output lines):.*\n|Process (?:exited|running).*\n)*"
    r"Output:\n"
)
# A program of several commands, as the newer tool takes it: each command is a string after `cmd:`.
_COMMANDS = re.compile(
    r"\bcmd:\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`)",
)


def knows(line: JsonObject) -> bool:
    """Return True if a line is one of Codex's kinds."""
    return string_of(line.get("type")) in KINDS and is_object(line.get("payload"))


def tell(lines: Iterator[tuple[int, JsonObject]], tally: Tally) -> Iterator[tuple[int, str, Said]]:
    """Yield the number, the time and the content of each line of the conversation; the tally counts unknown ones."""
    teller = _Teller()
    for number, line in lines:
        if not knows(line):
            tally.unknown += string_of(line.get("type")) not in OWN_BUSINESS
            continue
        at = string_of(line.get("timestamp"))
        tally.conversation = tally.conversation or _conversation(line)
        for said in teller.tell(string_of(line["type"]), line["payload"]):
            yield number, at, said


@dataclass(slots=True)
class _Teller:
    """State between the lines of a file."""

    running: dict[str, str] = field(default_factory=dict[str, str])
    """Commands that were still at work when their call was answered: the terminal's number, and the call."""
    watched: dict[str, str] = field(default_factory=dict[str, str])
    """Calls that only look after a running command, and the call that began it."""
    so_far: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Output so far of a command that still runs."""
    tools: dict[str, str] = field(default_factory=dict[str, str])
    """The names of the calls that are not answered yet."""
    helpers: dict[str, str] = field(default_factory=dict[str, str])
    """Sub-agents by their id, and the calls that began them."""
    model: str = ""

    def tell(self, kind: str, payload: JsonObject) -> Iterator[Said]:
        """Yield the content of one line of the conversation."""
        match kind:
            case "session_meta" | "turn_context":
                self.model = string_of(payload.get("model")) or self.model
                yield from _standing(payload)
            case "compacted" if summary := string_of(payload.get("message")):
                yield Summarised(text=_SUMMARY_FRAME.sub("", summary))
            case "response_item":
                yield from self._item(string_of(payload.get("type")), payload)
            case "event_msg":
                yield from self._event(payload)
            case _:
                return

    def _item(self, kind: str, payload: JsonObject) -> Iterator[Said]:
        """Yield the content of a response item: a message, a thought, a call or a result."""
        match kind:
            case "message":
                yield from self._message(payload)
            case "reasoning":
                if text := text_of(payload.get("summary")).strip():
                    yield AgentThought(text=text)
            case "function_call" | "custom_tool_call" | "local_shell_call":
                yield from self._call(kind, payload)
            case "function_call_output" | "custom_tool_call_output":
                yield from self._result(payload)
            case _:
                return

    def _event(self, payload: JsonObject) -> Iterator[Said]:
        """Yield the files of an applied patch, or the tokens; nothing for other events."""
        match payload.get("type"):
            case "patch_apply_end" if payload.get("success") and is_object(payload.get("changes")):
                changes: JsonObject = payload["changes"]
                yield FilesChanged(changes=tuple((path, _action(change)) for path, change in changes.items()))
            case "token_count" if is_object(payload.get("info")):
                yield from _usage(payload["info"], self.model)
            case _:
                return

    def _message(self, payload: JsonObject) -> Iterator[Said]:
        """Yield a message of the agent or the user, or a sub-agent's report."""
        match payload.get("role"):
            case "assistant" if text := text_of(payload.get("content")).strip():
                yield AgentMessage(text=text)
            case "user":
                blocks = objects_of(payload.get("content"))
                if notice := _NOTIFIED.match(text_of(blocks)):
                    yield from self._notified(notice[1])
                    return
                texts = [own_words(string_of(block.get("text"))) for block in blocks]
                pictures = ["[attached picture]" for block in blocks if block.get("type") == "input_image"]
                if words := "\n".join(filter(None, [*texts, *pictures])):
                    yield UserSaid(text=words)
            case _:
                return

    def _notified(self, text: str) -> Iterator[Said]:
        """Yield the report of a sub-agent as the end of the call that began it; nothing while it works."""
        found = _parsed(text)
        began = self.helpers.pop(string_of(found.get("agent_path")), "")
        yield from (said for _, said in _reports({began: found.get("status")}))

    def _call(self, kind: str, payload: JsonObject) -> Iterator[Said]:
        """Yield a call; plans give the to-do list, and polls of running commands give nothing."""
        name, call_id = string_of(payload.get("name")) or "shell", string_of(payload.get("call_id"))
        arguments = _arguments(kind, payload)
        if name == "update_plan":
            yield TodoUpdated(entries=tuple(_entry(step) for step in objects_of(arguments.get("plan"))))
            return
        if name == "write_stdin" and (began := self.running.get(str(arguments.get("session_id")))):
            self.watched[call_id] = began
            return
        self.tools[call_id] = name
        if name != "wait_agent":
            yield ToolCalled(call_id=call_id, title=name, tool=TOOLS.get(name, "other"), input=arguments)

    def _result(self, payload: JsonObject) -> Iterator[Said]:
        """Yield the result of a call; one that still runs gives progress, and ends when its command does."""
        call_id = string_of(payload.get("call_id"))
        name = self.tools.pop(call_id, "")
        call_id = self.watched.pop(call_id, call_id)
        output, code, terminal = _output(payload.get("output"))
        if name == "wait_agent":
            status = _parsed(output).get("status")
            known: JsonObject = status if is_object(status) else {}
            yield from (said for _, said in _reports({self.helpers.pop(key, ""): each for key, each in known.items()}))
            return
        if name == "spawn_agent" and (helper := string_of(_parsed(output).get("agent_id"))):
            self.helpers[helper] = call_id
            yield ToolProgressed(call_id=call_id, output="")
            return
        if terminal is not None:
            self.running[terminal] = call_id
            self.so_far.setdefault(call_id, []).append(output)
            if output:
                yield ToolProgressed(call_id=call_id, output=output)
            return
        output = "".join([*self.so_far.pop(call_id, []), output])
        # Only a command has an exit code; one that ended without it may have failed.
        unknown = code is None and name in SHELLS
        status = "failed" if code else "unknown" if unknown else "completed"
        yield ToolFinished(call_id=call_id, status=status, output=output)


def _parsed(text: str) -> JsonObject:
    """Return the JSON object in a text, or an empty one if it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if is_object(found) else {}


def _reports(states: Mapping[str, object]) -> Iterator[tuple[str, ToolFinished]]:
    """Yield the ends of sub-agents, by the calls that began them; one that is still at work has none."""
    for call_id, state in states.items():
        if call_id and is_object(state) and (kind := next(iter(state), "")) in ("completed", "errored", "failed"):
            status = "completed" if kind == "completed" else "failed"
            yield call_id, ToolFinished(call_id=call_id, status=status, output=string_of(state[kind]))


def _conversation(line: JsonObject) -> str:
    """Return the conversation that a file's first metadata names, or an empty text for another line."""
    payload: JsonObject = line["payload"]
    named = string_of(payload.get("id")) or string_of(payload.get("session_id"))
    return named if line["type"] == "session_meta" else ""


def _standing(payload: JsonObject) -> Iterator[Said]:
    """Yield directory, branch and commit; nothing if none is named."""
    git = payload.get("git")
    known: JsonObject = git if is_object(git) else {}
    standing = WorkLocation(
        directory=string_of(payload.get("cwd")) or None,
        branch=string_of(known.get("branch")) or None,
        commit=string_of(known.get("commit_hash")) or None,
    )
    if standing != WorkLocation():
        yield standing


def _action(change: object) -> FileAction:
    """Return the action of a patch on a file; `modified` if unknown."""
    kind = string_of(change.get("type")) if is_object(change) else ""
    return ACTIONS.get(kind, "modified")


def _usage(info: JsonObject, model: str) -> Iterator[Said]:
    """Yield the tokens of the last request; nothing if there are none."""
    last = info.get("last_token_usage")
    if is_object(last):
        cached = number_of(last.get("cached_input_tokens")) or 0
        whole = number_of(last.get("input_tokens")) or 0
        yield UsageReported(
            context_tokens=whole or None,
            window=number_of(info.get("model_context_window")),
            input_tokens=max(0, whole - cached),
            output_tokens=number_of(last.get("output_tokens")),
            cached_tokens=cached,
            model=model or None,
        )


def _entry(step: JsonObject) -> TodoEntry:
    """Return a step of the plan as a to-do entry; one without a status is pending."""
    return TodoEntry(content=string_of(step.get("step")), status=string_of(step.get("status")) or "pending")


def _arguments(kind: str, payload: JsonObject) -> JsonObject:
    """Return a call's arguments as an object; a program of several commands lists them under `commands`."""
    if kind == "local_shell_call":
        action = payload.get("action")
        return action if is_object(action) else {}
    given = payload.get("arguments") if kind == "function_call" else payload.get("input")
    if is_object(given):
        return given
    text = string_of(given)
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if is_object(parsed):
        return parsed
    commands = [_unescaped(next(filter(None, found.groups()), "")) for found in _COMMANDS.finditer(text)]
    return {"input": text} | ({"commands": commands} if commands else {})


def _unescaped(text: str) -> str:
    """Return text with its escapes replaced."""
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def _output(output: object) -> tuple[str, int | None, str | None]:
    """Return the output of a command, its exit code (None if unknown), and its terminal (None unless it runs)."""
    text = text_of(output)
    if text.startswith('{"output"'):
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = None
        if is_object(parsed):
            metadata = parsed.get("metadata")
            code = metadata.get("exit_code") if is_object(metadata) else None
            return string_of(parsed.get("output")), number_of(code), None
    frame = _FRAME.match(text)
    head = frame[0] if frame else text[:2000]
    running = _RUNNING.search(head)
    codes = _codes(head) or (None if running else _codes(text[:2000] + text[-2000:]))
    code = next((each for each in codes if each), 0) if codes else None
    return text[frame.end() :] if frame else text, code, running[1] if running and code is None else None


def _codes(text: str) -> list[int]:
    """Return the exit codes that a text names; a program of several commands may print one for each."""
    return [int(next(filter(None, found.groups()))) for found in _EXIT.finditer(text)]
