"""The raw record as the exam reads it: who spoke, what was run, and how it ended.

Nothing here is shared with the readers, the facts or the compiler: a mistake of theirs must not be repeated here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from segue.model import events as e
from segue.model.facts import Outcome

Row = Mapping[str, Any]

_OPENING_TAG = re.compile(r"^\s*<([A-Za-z][\w -]*)(?:\s[^<>]*)?>.*?(?:</\1>|\Z)\s*", re.DOTALL)
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_CLIENT = re.compile(
    r"^\s*(?:# AGENTS\.md|Caveat:|\[Request interrupted|Operation stopped by|This session is being continued"
    r"|Base directory for this skill"
    r"|Stop hook|PreToolUse|PostToolUse|UserPromptSubmit)"
)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_GIVEN = re.compile(r"\s*##? Session Resume Context\b")
_CODE = re.compile(
    r"(?:^|\n)\W{0,3}(?:Process exited with code|(?:Error: )?[Ee]xit[ _]?[Cc]ode|exit(?:ed)?(?=\s*[=:]))\W{0,4}(-?\d+)"
)
_STILL = re.compile(r"Process running with session ID (\d+)|Command running in background with ID: (\w+)")
_BODY = re.compile(r"\nOutput:\n|^Output:\n")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing of the record."""

    number: int
    kind: Literal["user", "agent", "call", "end", "branch", "tasks", "handed"]
    """`handed` is a context or a summary that the session was given at its beginning."""
    text: str = ""
    call: str = ""
    outcome: Outcome = "unknown"


def entries_of_file(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Yield the entries of a session file from its raw lines, in the form of Claude Code or Codex."""
    waits: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        row = _parsed(line.strip(b"\0 \t\r\n").decode(errors="replace"))
        if "payload" in row:
            yield from _codex(number, row.get("type"), _row(row.get("payload")), waits)
        else:
            yield from _claude(number, row)


def entries_of_journal(records: Iterable[e.Record], offset: int = 0) -> Iterator[Entry]:
    """Yield the entries of a workflow's journal; `offset` events of another journal come before it."""
    for record in records:
        yield from _journal(offset + record.seq, record.event)


def _journal(number: int, event: e.Event) -> Iterator[Entry]:
    """Yield the entries of one event; nothing for kinds that are not asked about."""
    match event:
        case e.WorkflowCreated(issue=issue):
            yield Entry(number, "user", f"{issue.title}\n{issue.description}")
        case e.UserSpoke(text=text) | e.PromptQueued(text=text, task_id=None):
            yield _spoken(number, text)
        case e.AgentMessage(text=text):
            yield Entry(number, "agent", text)
        case e.ToolCalled(call_id=call, input=given, title=title):
            yield Entry(number, "call", _command(given) or title, call)
        case e.ToolFinished(call_id=call, status=status, output=output):
            yield Entry(number, "end", output, call, {"completed": "passed", "failed": "failed"}.get(status, "unknown"))  # pyright: ignore[reportArgumentType]
        case e.WorktreeReady(branch=str(branch)):
            yield Entry(number, "branch", branch)
        case e.TodoUpdated(entries=entries):
            yield Entry(number, "tasks", "\n".join(each.content for each in entries if each.status != "completed"))
        case _:
            return


def _claude(number: int, row: Row) -> Iterator[Entry]:
    """Yield the entries of one row of Claude Code's file: branch, messages, calls and results of the main
    conversation."""
    if (branch := str(row.get("gitBranch") or "")) not in ("", "HEAD"):
        yield Entry(number, "branch", branch)
    waiting = row.get("content") if row.get("type") == "queue-operation" else _row(row.get("attachment")).get("prompt")
    if isinstance(waiting, str) and (words := _persons(waiting)):
        yield _spoken(number, words)
    if row.get("isSidechain") or row.get("isMeta") or row.get("isCompactSummary"):
        return
    content = _row(row.get("message")).get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _rows(content)
    for block in blocks:
        yield from _block(number, block, person=row.get("type") == "user")


def _block(number: int, block: Row, *, person: bool) -> Iterator[Entry]:
    """Yield the entries of one block of a message: text, a tool call, or a result with its outcome."""
    text = str(block.get("text") or "")
    match block.get("type"):
        case "text" if person:
            if words := _persons(text):
                yield _spoken(number, words)
        case "text":
            yield Entry(number, "agent", text)
        case "tool_use":
            given = _row(block.get("input"))
            if block.get("name") == "TodoWrite":
                waiting = [each for each in _rows(given.get("todos")) if each.get("status") != "completed"]
                yield Entry(number, "tasks", "\n".join(str(each.get("content")) for each in waiting))
            yield Entry(number, "call", _command(given) or str(block.get("name")), str(block.get("id")))
        case "tool_result":
            output = _flat(block.get("content"))
            code = _CODE.match(output)
            failed = bool(block.get("is_error")) or (code is not None and code[1] != "0")
            outcome: Outcome = "failed" if failed else "unknown" if _STILL.search(output[:200]) else "passed"
            yield Entry(number, "end", output, str(block.get("tool_use_id")), outcome)
        case _:
            return


def _codex(number: int, kind: object, payload: Row, waits: dict[str, str]) -> Iterator[Entry]:
    """Yield the entries of one row of Codex's file; `waits` joins polls of a running command to its call, and is
    updated."""
    if branch := _row(payload.get("git")).get("branch"):
        yield Entry(number, "branch", str(branch))
    if kind != "response_item":
        return
    match payload.get("type"):
        case "message" if payload.get("role") == "user":
            words = "\n".join(filter(None, (_persons(_flat(block)) for block in _rows(payload.get("content")))))
            if words:
                yield _spoken(number, words)
        case "message" if payload.get("role") == "assistant":
            yield Entry(number, "agent", _flat(payload.get("content")))
        case "function_call" | "custom_tool_call" | "local_shell_call":
            given = _given(payload)
            call = str(payload.get("call_id"))
            if payload.get("name") == "write_stdin" and str(given.get("session_id")) in waits:
                waits[call] = waits[str(given.get("session_id"))]
                return
            if payload.get("name") == "update_plan":
                steps = [each for each in _rows(given.get("plan")) if each.get("status") != "completed"]
                yield Entry(number, "tasks", "\n".join(str(each.get("step")) for each in steps))
            yield Entry(number, "call", _command(given) or str(payload.get("name")), call)
        case "function_call_output" | "custom_tool_call_output":
            text = _flat(payload.get("output"))
            call = waits.get(str(payload.get("call_id")), str(payload.get("call_id")))
            head, *body = _BODY.split(text, maxsplit=1)
            still = _STILL.search(head)
            codes = [int(each) for each in _CODE.findall(f"\n{head}")] or [
                int(each) for each in _CODE.findall(f"\n{text}")
            ]
            if text.startswith('{"output"') and (metadata := _parsed(text).get("metadata")):
                codes = [int(metadata.get("exit_code") or 0)]
            if still and not codes:
                waits[still[1] or still[2]] = call
            outcome: Outcome = "unknown" if not codes else "failed" if any(codes) else "passed"
            yield Entry(number, "end", body[0] if body else text, call, outcome)
        case _:
            return


def _spoken(number: int, text: str) -> Entry:
    """Return a message as an entry; a context that opens a session is no message of the person."""
    return Entry(number, "handed" if _GIVEN.match(text) else "user", text)


def _persons(text: str) -> str:
    """Return the person's part of a text, without anything that clients inject; empty if nothing is left."""
    text = _REMINDER.sub("", text)
    if given := _ARGUMENTS.search(text):
        return given[1].strip()
    if _CLIENT.match(text):
        return ""
    while found := _OPENING_TAG.match(text):
        if not re.search(r"[_ -]|^[A-Z]{4}", found[1]) and found[1] not in ("skill", "hook"):
            break
        text = text[found.end() :]
    return text.strip()


def _row(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _rows(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list that are not empty; an empty list for any other value."""
    several: list[object] = value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [row for each in several if (row := _row(each))]


def _flat(content: object) -> str:
    """Return the text of a message's content, whatever its nesting."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks: list[object] = content  # pyright: ignore[reportUnknownVariableType]
        return "\n".join(filter(None, map(_flat, blocks)))
    block = _row(content)
    return str(block.get("text") or "") or _flat(block.get("content") or "")


def _parsed(text: str) -> dict[str, Any]:
    """Return the JSON object in a text, or an empty one if it is none."""
    try:
        return _row(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _given(payload: Row) -> dict[str, Any]:
    """Return the arguments of a call; of a script only its commands, and an empty object if nothing is readable."""
    given = payload.get("arguments") or payload.get("input") or payload.get("action")
    if found := _row(given) or _parsed(str(given)):
        return found
    commands = re.findall(r"\bcmd:\s*[\"'`]((?:[^\"'`\\]|\\.)*)", str(given))
    return {"command": "; ".join(commands)} if commands else {}


def _command(given: Mapping[str, Any]) -> str:
    """Return the shell command in a call's arguments, or an empty text."""
    command: Any = given.get("command") or given.get("cmd")
    if isinstance(command, list):
        parts = [str(word) for word in command]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return parts[-1] if len(parts) == 3 and parts[1] in ("-lc", "-c") else " ".join(parts)
    return command if isinstance(command, str) else ""
