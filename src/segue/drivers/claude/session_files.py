"""Claude Code's own files of a conversation. What is there is read and never changed; what is not may be put there."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import claude_agent_sdk as sdk

from segue.drivers.skeleton.jsonrpc import session_not_found

FileEntry = Mapping[str, Any]


def projects() -> Path:
    """Return the folder of Claude Code's conversations, which may not exist."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"


def copied(token: str, cwd: str, at: str | None) -> str:
    """Copy a conversation, up to `at` if given, for work in `cwd`; return the copy's token, or raise `session not
    found`."""
    try:
        copy = sdk.fork_session(token, up_to_message_id=at).session_id
    except (FileNotFoundError, ValueError) as error:
        raise session_not_found(token) from error
    found = next(projects().glob(f"*/{copy}.jsonl"))
    place = projects() / sdk.project_key_for_directory(cwd)
    place.mkdir(parents=True, exist_ok=True)
    found.replace(place / found.name)
    return copy


def parts(token: str) -> Iterator[tuple[sdk.SessionKey, Path]]:
    """Yield the key and the file of a conversation and of each of its subagents."""
    for main in projects().glob(f"*/{token}.jsonl"):
        key: sdk.SessionKey = {"project_key": main.parent.name, "session_id": token}
        yield key, main
        beside = main.with_suffix("")
        for file in sorted(beside.glob("subagents/**/*.jsonl")):
            yield {**key, "subpath": file.relative_to(beside).with_suffix("").as_posix()}, file


@dataclass(frozen=True, slots=True)
class UnreadableLine:
    """Line that cannot be parsed, though others follow it."""

    number: int


def named_entries(file: Path) -> Iterator[FileEntry | UnreadableLine]:
    """Yield the entries with a uuid, and a mark for each unreadable line except a torn last one."""
    unreadable: UnreadableLine | None = None
    with file.open(encoding="utf-8", errors="replace") as stream:
        for number, line in enumerate(stream, start=1):
            # The last line may have been torn when its writer died.
            if unreadable is not None:
                yield unreadable
            unreadable = None
            try:
                match json.loads(line):
                    case {"uuid": str()} as entry:
                        yield entry
                    case _:
                        pass
            except ValueError:
                unreadable = UnreadableLine(number) if line.strip() else None


def put(file: Path, text: str) -> bool:
    """Write a file atomically below Claude Code's projects; return False if it exists or the path is elsewhere."""
    if ".." in file.parts or not file.is_relative_to(projects()):
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{uuid4()}.tmp")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        with draft.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(draft, file)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def lines(stored: Sequence[FileEntry]) -> str:
    """Return entries as JSON lines."""
    return "".join(f"{json.dumps(entry)}\n" for entry in stored)
