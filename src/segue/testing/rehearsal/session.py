"""Context of a turn, and ways to end the process."""

import os
import signal
import sys
from asyncio import Task, create_task
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from segue.drivers.skeleton.payloads import Payload, present
from segue.drivers.skeleton.wire import Wire
from segue.testing.rehearsal.conversation_store import ConversationStore, StoredConversation
from segue.testing.rehearsal.diary import Diary


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalSession:
    """Conversation with one client, in one directory."""

    wire: Wire
    conversation: StoredConversation
    directory: Path
    memory: ConversationStore
    diary: Diary
    _asides: set[Task[None]] = field(default_factory=set[Task[None]])
    """Tasks that run in parallel to the turns."""

    def play_aside(self, steps: Coroutine[Any, Any, None]) -> None:
        """Play steps beside the turns, as a task."""
        task = create_task(steps)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def send(self, update: Payload) -> None:
        """Send an update of this conversation to the client."""
        await self.wire.notify("session/update", {"sessionId": self.conversation.token, "update": update})

    async def request(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a request for this conversation to the client, and return its result; empty if it has none."""
        answer = await self.wire.request(method, {"sessionId": self.conversation.token, **present(parameters)})
        return answer or {}

    def note(self, kind: str, **details: Any) -> None:
        """Write an entry of this conversation into the diary."""
        self.diary.write(kind, session=self.conversation.token, **details)

    def path(self, path: str) -> Path:
        return self.directory / path


def leave(code: int) -> NoReturn:
    """Exit at once with the script's code, without any cleanup."""
    sys.stderr.write(f"rehearsal: exit {code}, as the script says\n")
    sys.stderr.flush()
    os._exit(code)


def mute() -> None:
    """Redirect standard output to the null device, so that the client gets nothing more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def die_if(condition: bool) -> None:
    """Kill this process with SIGKILL if the condition holds."""
    if condition:
        os.kill(os.getpid(), signal.SIGKILL)
