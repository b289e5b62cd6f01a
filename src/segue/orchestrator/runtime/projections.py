"""Projections: the files of each session, written from the journal for people and other programs."""

import json
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from anyio.to_thread import run_sync

from segue.journal.rows import SessionRow
from segue.model import events as e
from segue.model.ids import NOTHING_SEEN, Seq, SessionId
from segue.model.status import SessionStatus
from segue.model.views import SessionFiles
from segue.orchestrator.runtime.services import RuntimeServices
from segue.state.fold import SessionState
from segue.state.moves import SESSION_ENDED
from segue.workspace.files import replace_file

Entry = dict[str, Any]
log = logging.getLogger("segue")

ARCHIVE = "archive"
PAGE = 500
"""Events that are read at once."""

STATUSES: Mapping[SessionStatus, str] = {
    SessionStatus.CREATED: "active",
    SessionStatus.STARTING: "active",
    SessionStatus.RUNNING: "active",
    SessionStatus.WAITING_FOR_INPUT: "active",
    SessionStatus.SUSPENDED: "paused",
    SessionStatus.FAILED: "paused",
    SessionStatus.COMPLETED: "completed",
    SessionStatus.CANCELLED: "completed",
    SessionStatus.TERMINATED: "completed",
    SessionStatus.EXPIRED: "expired",
}


async def extend(services: RuntimeServices, session_id: SessionId) -> None:
    """Append the session's new events to its lines; a file that is torn or gone is written anew, an ended session's
    files are rebuilt."""
    session = await services.journal.sessions.get(session_id)
    if session.status in SESSION_ENDED:
        await rebuild(services, session_id)
        return
    file = (await run_sync(_files, services, session_id)).lines
    known = await run_sync(_last_seq, file)
    entries = [entry async for entry in _entries(services, session, known or NOTHING_SEEN)]
    text = b"".join(map(_line, entries))
    if known is None:
        await run_sync(replace_file, file, text)
    elif text:
        await run_sync(_append, file, text)


async def refresh(services: RuntimeServices, session_id: SessionId) -> None:
    """Update a session's files; an error is logged, and the next run repairs the files."""
    try:
        await extend(services, session_id)
    except Exception:  # a full disk, perhaps
        log.exception("the files of session %s could not be written", session_id)


async def rebuild(services: RuntimeServices, session_id: str) -> SessionFiles:
    """Write both files of a session anew from the journal; the result names them, and whether the old ones were
    right."""
    row = await services.journal.sessions.get(session_id)
    state = await services.journal.state(row.workflow_id)
    entries = [entry async for entry in _entries(services, row, NOTHING_SEEN)]
    document, lines = await run_sync(_files, services, row.id)
    whole = _document(row.id, state.sessions[row.id], state.worktree, row.created_at.isoformat(), entries)
    found = {lines: b"".join(map(_line, entries)), document: json.dumps(whole, indent=2, ensure_ascii=False).encode()}
    right = [await run_sync(_holds, file, content) for file, content in found.items()]
    for file, content in found.items():
        await run_sync(replace_file, file, content)
    return SessionFiles(
        session_id=row.id, history=str(lines), session=str(document), entries=len(entries), were_right=all(right)
    )


# ── the archive ─────────────────────────────────────────────────────────────────────────────────────


async def not_archived(services: RuntimeServices) -> set[SessionId]:
    """Return the names of all sessions with a file outside the archive."""

    def names() -> set[SessionId]:
        lines = [file.stem for file in (services.home / "sessions").glob("*.jsonl")]
        documents = [file.parent.name for file in (services.home / "agent-sessions").glob("*/session.json")]
        return {SessionId(name) for name in [*lines, *documents]}

    return await run_sync(names)


async def archive(services: RuntimeServices, session_id: SessionId) -> None:
    """Rebuild a session's files and move them to the archive; a call that was interrupted is completed by the next
    one."""
    await rebuild(services, session_id)
    await run_sync(_move, _files_in(services.home, session_id), _files_in(services.home / ARCHIVE, session_id))


def _move(here: "_Files", there: "_Files") -> None:
    """Move each file that exists, and remove the empty directory that is left."""
    for file, place in zip(here, there, strict=True):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            file.replace(place)
    with suppress(OSError):  # removed already, or not empty
        here.document.parent.rmdir()


class _Files(NamedTuple):
    document: Path
    lines: Path
    """Moved last: a session counts as archived when these are there."""


def _files(services: RuntimeServices, session_id: SessionId) -> _Files:
    """Return the paths of a session's files, in the archive if they are there."""
    archived = _files_in(services.home / ARCHIVE, session_id)
    return archived if archived.lines.exists() else _files_in(services.home, session_id)


def _files_in(folder: Path, session_id: SessionId) -> _Files:
    """Return the paths of a session's files under this folder."""
    return _Files(
        document=folder / "agent-sessions" / session_id / "session.json",
        lines=folder / "sessions" / f"{session_id}.jsonl",
    )


# ── from events to entries ──────────────────────────────────────────────────────────────────────────


async def _entries(services: RuntimeServices, session: SessionRow, after: Seq) -> AsyncIterator[Entry]:
    """Yield the entries of a session's events after event `after`, read page by page."""
    names: dict[str, str] = {}
    page: list[e.Record] | None = None
    while page is None or len(page) == PAGE:
        page = await services.journal.records(session.workflow_id, after, PAGE)
        after = page[-1].seq if page else after
        for record in page:
            if record.session_id != session.id:
                continue
            entries = list(_entry(record.event, names))
            if isinstance(record.event, e.PromptSent):
                # The text is in the event that queued the prompt, perhaps in another session.
                queued = await services.journal.prompts.queued(record.event.prompt_id)
                entries = [{"type": "user_message", "id": queued.prompt_id, "content": queued.text}]
            for entry in entries:
                yield {"seq": record.seq, "timestamp": record.at.isoformat(), **entry}


def _entry(event: e.Event, names: dict[str, str]) -> Iterator[Entry]:
    """Yield the entry of an event, none for most kinds; `names` keeps the names of calls for their results."""
    match event:
        case e.UserSpoke(text=text):
            yield {"type": "user_message", "content": text}
        case e.AgentMessage(text=text) | e.AgentReported(text=text):
            yield {"type": "agent_message", "content": text}
        case e.ToolCalled(call_id=call_id, title=title, tool=tool):
            names[call_id] = title or tool
            yield {"type": "tool_call", "id": call_id, "tool_name": names[call_id], "arguments": event.input}
        case e.ToolFinished(call_id=call_id, status=status, output=output):
            name = names.get(call_id, "")
            yield {"type": "tool_result", "id": call_id, "tool_name": name, "status": status, "content": output}
        case e.TurnEnded(reason=reason):
            yield {"type": "turn_end", "stop_reason": reason}
        case _:
            return


def _line(entry: Entry) -> bytes:
    """Encode an entry as one line of JSON."""
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


# ── the conversation as one document ────────────────────────────────────────────────────────────────


def _document(
    session_id: SessionId, session: SessionState, worktree: str | None, created_at: str, entries: list[Entry]
) -> dict[str, Any]:
    """Build the content of `session.json` from the session's state and entries."""
    messages = _messages(entries)
    reasons = [entry["stop_reason"] for entry in entries if entry["type"] == "turn_end"]
    return {
        "id": session_id,
        "metadata": {
            "agent": session.agent,
            "model": session.model,
            "cwd": worktree,
            "createdAt": created_at,
            "lastMessageAt": messages[-1]["timestamp"] if messages else created_at,
            "messageCount": len(messages),
            "turnCount": session.usage.turns,
            "totalInputTokens": session.usage.input_tokens,
            "totalOutputTokens": session.usage.output_tokens,
            "status": STATUSES[session.status],
            "lastStopReason": reasons[-1] if reasons else None,
        },
        "messages": messages,
    }


def _messages(entries: list[Entry]) -> list[dict[str, Any]]:
    """Convert entries to messages, where consecutive blocks of one role are one message; tool results have the
    user's role."""
    messages: list[dict[str, Any]] = []
    for entry in entries:
        if (spoken := _block(entry)) is None:
            continue
        role, block = spoken
        if not messages or messages[-1]["role"] != role:
            messages.append({"role": role, "content": [], "timestamp": entry["timestamp"]})
        _join(messages[-1]["content"], block)
    return messages


def _block(entry: Entry) -> tuple[str, Entry] | None:
    """Convert an entry to its role and block of a message; None for entries of other kinds."""
    match entry["type"]:
        case "user_message":
            return "user", {"type": "text", "text": entry["content"]}
        case "agent_message":
            return "assistant", {"type": "text", "text": entry["content"]}
        case "tool_call":
            use = {"id": entry["id"], "name": entry["tool_name"], "input": entry["arguments"]}
            return "assistant", {"type": "tool_use", "tool_use": use}
        case "tool_result":
            result = {"tool_use_id": entry["id"], "content": entry["content"], "is_error": entry["status"] == "failed"}
            return "user", {"type": "tool_result", "tool_result": result}
        case _:
            return None


def _join(blocks: list[Entry], block: Entry) -> None:
    """Append a block; text that follows text is added to it."""
    if blocks and blocks[-1]["type"] == block["type"] == "text":
        blocks[-1]["text"] += block["text"]
    else:
        blocks.append(block)


# ── files ───────────────────────────────────────────────────────────────────────────────────────────


def _last_seq(file: Path) -> Seq | None:
    """Return the last event's number in the file; None if it is unreadable, empty or torn, and must be written anew."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - 1_000_000))
            last = stream.read().splitlines(keepends=True)[-1]
        return Seq(json.loads(last)["seq"]) if last.endswith(b"\n") else None
    except (OSError, IndexError, ValueError, KeyError, TypeError):
        return None


def _append(file: Path, content: bytes) -> None:
    with file.open("ab") as stream:
        stream.write(content)


def _holds(file: Path, content: bytes) -> bool:
    """Return True if the file has exactly this content; False if not or unreadable."""
    try:
        return file.read_bytes() == content
    except OSError:
        return False
