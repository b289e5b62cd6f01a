"""A turn: Amp is started with one prompt, goes on with its thread, and ends."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segue.drivers.amp.command import NO_KEY, Amp, fields, refusal
from segue.drivers.amp.permission_socket import AmpQuestion, permission_socket
from segue.drivers.amp.reporter import AmpReporter, call
from segue.drivers.amp.settings import own_settings, refuse_what_allows_all
from segue.drivers.skeleton.agent_program import Channel, text_of
from segue.drivers.skeleton.jsonrpc import INTERNAL_ERROR, Message, RequestError
from segue.drivers.skeleton.payloads import Payload, turn_ended
from segue.drivers.text import shortened

WORDS = (
    *("--execute", "--stream-json", "--stream-json-thinking", "--stream-json-input"),
    # A thread that is put away cannot be continued.
    "--no-archive-after-execute",
    # Amp's permissions are a plugin of its own, and no call must be made before it is there.
    *("--plugin-ready-timeout", "30"),
)
# From being asked to stop to being ended.
_GRACE = 5.0
_LONGEST_COMPLAINT = 2_000


@dataclass(slots=True, kw_only=True)
class AmpThread:
    """A thread, and where its turns take place."""

    amp: Amp
    channel: Channel
    directory: str
    servers: Mapping[str, Any]
    """Servers of tools, as Amp writes them."""
    mode: str | None = None

    @property
    def token(self) -> str:
        return self.channel.token


class AmpTurn:
    """One prompt, and all that follows until Amp ends."""

    def __init__(self, setting: AmpThread) -> None:
        self._setting = setting
        self._reporter = AmpReporter(setting.channel.update)
        self._process: asyncio.subprocess.Process | None = None
        self._result: Mapping[str, Any] | None = None
        self._stray: list[str] = []
        self._cancelled = asyncio.Event()

    async def cancel(self) -> None:
        """Request the end of the turn; Amp is terminated, and killed after the grace."""
        self._cancelled.set()

    async def play(self, content: Sequence[Message]) -> Payload:
        """Start Amp with a prompt, follow it to its end, and return the end of the turn."""
        setting = self._setting
        own = own_settings(os.environ)
        refuse_what_allows_all(Path(setting.directory))
        async with permission_socket(self._ask, own, setting.servers) as words:
            mode = ("--mode", setting.mode) if setting.mode else ()
            self._process = process = await setting.amp.start(
                "threads", "continue", setting.token, *WORDS, *mode, *words, directory=setting.directory
            )
            try:
                problem = await self._follow(process, content)
            finally:
                await _end(process)
        return await self._ending(problem)

    async def _follow(self, process: asyncio.subprocess.Process, content: Sequence[Message]) -> str:
        """Wait for the end of Amp's output, and return its standard error."""
        stopping = asyncio.create_task(self._stop(process))
        try:
            _, problem = await asyncio.gather(self._exchange(process, content), _complaint(process))
            return problem
        finally:
            stopping.cancel()

    async def _exchange(self, process: asyncio.subprocess.Process, content: Sequence[Message]) -> None:
        """Send the prompt, and report Amp's output line by line until it ends."""
        assert process.stdin is not None and process.stdout is not None
        message = {"type": "user", "message": {"role": "user", "content": [_content(block) for block in content]}}
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(message).encode() + b"\n")
            await process.stdin.drain()
        process.stdin.close()
        async for line in process.stdout:
            await self._line(line.decode(errors="replace"))

    async def _line(self, line: str) -> None:
        """Take one line of Amp's output; kill Amp if it answers for another thread or has no key."""
        try:
            said = fields(json.loads(line))
        except ValueError:
            said = {}
        if not said:
            self._stray.append(line)
            if NO_KEY in line:
                # It waits for a code that will not come.
                self._kill()
            return
        if (thread := said.get("session_id")) not in (None, self._setting.token):
            self._kill()
            raise RequestError(INTERNAL_ERROR, f"Amp answered for thread {thread}, not {self._setting.token}.")
        if said.get("type") == "result":
            self._result = said
        else:
            await self._reporter.take(said)

    async def _ending(self, problem: str) -> Payload:
        """Return the end of a turn: cancelled, or by itself; raise Amp's complaint if it failed."""
        if self._cancelled.is_set():
            await self._reporter.fail_open_calls("was cancelled")
            return turn_ended("cancelled", self._reporter.usage())
        if self._result is None or self._result.get("is_error"):
            await self._reporter.fail_open_calls("failed")
            told = self._result.get("error") if self._result else problem or "".join(self._stray)
            raise refusal(str(told))
        return turn_ended("end_turn", self._reporter.usage())

    # ── what Amp asks ───────────────────────────────────────────────────────────────────────────────

    async def _ask(self, question: AmpQuestion) -> bool:
        """Ask the user to allow a call; False if refused or the turn is cancelled."""
        if self._cancelled.is_set():
            return False
        call_id = await self._reporter.asks(question)
        allowed = (await self._setting.channel.ask(call(call_id, question.tool, question.input))).allowed
        await self._reporter.answered(call_id, allowed=allowed)
        return allowed and not self._cancelled.is_set()

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """Wait for a cancellation, then terminate Amp, and kill it after the grace."""
        await self._cancelled.wait()
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.sleep(_GRACE)
        self._kill()

    def _kill(self) -> None:
        """Kill Amp with its process group, if it runs."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and the commands it started: the next turn must not find them running."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _complaint(process: asyncio.subprocess.Process) -> str:
    """Return Amp's standard error, shortened."""
    assert process.stderr is not None
    return shortened((await process.stderr.read()).decode(errors="replace").strip(), _LONGEST_COMPLAINT)


def _content(block: Message) -> dict[str, Any]:
    """Return a block of a prompt as Amp writes it."""
    if block.get("type") == "image":
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": block["mimeType"], "data": block["data"]},
        }
    return {"type": "text", "text": text_of(block)}
