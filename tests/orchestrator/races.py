"""Steps inside a run, held while a test does something else, or made to fail.

This is the only module of the tests that names such internals; a test asks for a step by its name in STEPS.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from segue.model.status import Trigger
from segue.orchestrator.requests import launches, rewinds, snapshots
from segue.orchestrator.requests.launches import Launching
from segue.orchestrator.requests.resumption import Resuming
from segue.orchestrator.run import dialogue
from segue.orchestrator.run.lifecycle import Run
from segue.orchestrator.run.turns import Turns
from segue.orchestrator.runtime import snapshot_studies
from segue.orchestrator.runtime.run_handle import Stop
from segue.orchestrator.settling import sweep
from segue.orchestrator.settling.run_ends import RunStopped
from tests.orchestrator.theatre import WITHIN

STEPS: dict[str, tuple[Any, str]] = {
    "open agent": (Run, "_open_agent"),
    "finish": (Run, "_finish"),
    "settle": (Run, "_settle"),
    "take messages": (Turns, "take"),
    "read pictures": (Turns, "_images"),
    "wait until the agent is gone": (Launching, "_until_gone"),
    "wait until the files are still": (Launching, "until_still"),
    "try again": (Resuming, "try_again"),
    "restore files": (rewinds, "restore"),
    "require worktree": (rewinds, "require_worktree_of"),
    "refuse question": (sweep, "answer_question"),
    "compile context": (dialogue, "compile_workflow"),
    "study": (snapshot_studies, "_study"),
}
When = Callable[..., object]


class Held:
    """A step that waits until the test lets it go on.

    It is held from its call number `time` on, of the calls for which `when` holds; `after` its work or before.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        step: str,
        *,
        when: When = lambda *_: True,
        time: int = 1,
        after: bool = False,
    ) -> None:
        self.there, self.go = anyio.Event(), anyio.Event()
        owner, name = STEPS[step]
        original, left = getattr(owner, name), time

        async def slowly(*given: Any, **more: Any) -> Any:
            nonlocal left
            done = await original(*given, **more) if after else None
            if when(*given):
                left -= 1
                if left <= 0:
                    self.there.set()
                    await self.go.wait()
            return done if after else await original(*given, **more)

        monkeypatch.setattr(owner, name, slowly)

    async def until_there(self) -> None:
        with anyio.fail_after(WITHIN):
            await self.there.wait()

    async def let_go_after(self, event: anyio.Event, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask for something, let the step go on once this event has come, and return the answer."""
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await ask())

        with anyio.fail_after(WITHIN):
            async with anyio.create_task_group() as asking:
                asking.start_soon(call)
                await event.wait()
                self.go.set()
        return answers[0]


def noticed(monkeypatch: pytest.MonkeyPatch, step: str, *, when: When = lambda *_: True, after: bool = False):
    """Return an event that is set when this step is reached, or done; nothing waits there."""
    held = Held(monkeypatch, step, when=when, after=after)
    held.go.set()
    return held.there


def failing(monkeypatch: pytest.MonkeyPatch, step: str, error: Exception, *, when: When = lambda *_: True) -> None:
    """Let the calls of a step fail for which `when` holds."""
    owner, name = STEPS[step]
    original = getattr(owner, name)

    async def fail(*given: Any, **more: Any) -> Any:
        if when(*given):
            raise error
        return await original(*given, **more)

    monkeypatch.setattr(owner, name, fail)


def waiting_briefly_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "FILES_WITHIN", 0.1)


def reading_two_messages_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MOST_READ", 2)


def torn(reason: str) -> Exception:
    """Return the exception by which a run is ended from outside."""
    return RunStopped(Stop(trigger=Trigger.CRASH, reason=reason))
