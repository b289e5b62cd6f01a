"""Connection to one agent process: requests, notifications and the end of the process."""

from collections.abc import Awaitable, Callable

import anyio
from acp.core import Connection, MethodHandler

from segue.drivers.acp.request_ids import RequestIds
from segue.drivers.acp.transport import Transport
from segue.drivers.text import shortened
from segue.model import errors
from segue.model.events import AgentExited, JsonObject
from segue.workspace.processes import RunningProcess

# From the end of a process to the end of its output.
_GRACE = 5.0
# From the end of its output to the end of a process; one that stays longer is alive, and never heard again.
_LINGER = 2.0
# What an agent wrote to its standard error last is enough to see why it ended.
_LAST_WORDS = 2_000
# What a shell ends with that does not find what it was to start.
_NO_PROGRAM = 127


class Link:
    """Connection that pairs requests with their answers, and detects the end of the agent."""

    def __init__(self, process: RunningProcess, names: RequestIds | None = None) -> None:
        self._process = process
        self._lines = Transport(process, names)
        self._broken = anyio.Event()
        self._exited = False
        self._code: int | None = None
        self.gone = anyio.Event()
        self.ready = False

    def connect(self, handle: MethodHandler, *, listen: bool = True) -> None:
        """Set the handler of the agent's messages, and begin to read unless `listen` is False."""
        self._connection = Connection(handle, self._lines)
        if listen:
            self.listen()

    def listen(self) -> None:
        """Begin to read; a caller that needs preparation first can delay this."""
        self._lines.begun.set()

    async def close(self) -> None:
        """Close the connection, even during a cancellation."""
        with anyio.CancelScope(shield=True):
            await self._connection.close()

    async def request(self, method: str, parameters: JsonObject) -> object:
        """Send a request and return its result. Raise its `RequestError`, or the error of `over` if it is gone."""
        try:
            return await self._connection.send_request(method, parameters)
        except OSError as error:
            await self._lose()
            raise self.over() from error

    async def notify(self, method: str, parameters: JsonObject) -> None:
        """Send a notification; an agent that is gone need not receive it."""
        try:
            await self._connection.send_notification(method, parameters)
        except OSError:
            await self._lose()

    async def watch(self) -> None:
        """Wait until the process has ended and its output is read; each wait is bounded once the other has ended."""
        async with anyio.create_task_group() as waiting:
            limit = waiting.cancel_scope

            async def hurry_after(end: Callable[[], Awaitable[object]], grace: float) -> None:
                await end()
                limit.deadline = min(limit.deadline, anyio.current_time() + grace)

            async def both() -> None:
                async with anyio.create_task_group() as ends:
                    ends.start_soon(hurry_after, self._exit, _GRACE)
                    ends.start_soon(hurry_after, self._lines.ended.wait, _LINGER)
                limit.cancel()

            waiting.start_soon(both)
            waiting.start_soon(hurry_after, self._broken.wait, _LINGER)
        await self._process.terminate()
        self._code = await self._process.wait()
        self.gone.set()

    @property
    def lost(self) -> bool:
        """True if the connection ended before the process did."""
        return self.gone.is_set() and not self._exited

    def over(self) -> errors.AgentError:
        """Return the error that explains why requests are not answered any more."""
        if self.lost:
            return errors.TransportLost(f"{_lost()}{_quoted(self.last_words())}")
        if self.ready:
            return errors.AgentExited(f"The agent's process has ended{self._end_sentence()}")
        if self._code == _NO_PROGRAM:
            return errors.AgentMissing(f"The agent's program was not found{self._end_sentence()}")
        return errors.AgentExited(
            f"The agent's process ended before it was ready{self._end_sentence()}",
            hint="Start its command by hand to see what it says.",
        )

    def exit(self) -> AgentExited:
        """Return the last event of the stream."""
        if self.lost:
            return AgentExited(code=None, detail=f"{_lost()}{_quoted(self.last_words())}")
        return AgentExited(code=self._code, detail=self.last_words())

    def failed(self, message: str, kind: type[errors.AgentError] = errors.HandshakeFailed) -> errors.AgentError:
        """Return the error of a failed handshake, with the lines that the agent printed in place of an answer."""
        stray = f" It printed: {shortened(self._lines.stray, 500)}" if self._lines.stray else ""
        return kind(f"{message}{stray}", hint=self.last_words() or None)

    def last_words(self) -> str:
        """Return the end of the agent's standard error, cut at a space so that no secret is cut in two."""
        words = self._process.stderr_tail().strip()
        # Between words: half a secret would not be recognised as one.
        return words if len(words) <= _LAST_WORDS else words[-_LAST_WORDS:].split(maxsplit=1)[-1]

    async def _exit(self) -> None:
        """Wait for the end of the process, and note it."""
        await self._process.wait()
        self._exited = True

    async def _lose(self) -> None:
        """Record a broken pipe, and wait for the end of the process, which is of no more use."""
        self._broken.set()
        await self.gone.wait()

    def _end_sentence(self) -> str:
        """Return how the process ended, and its last output, as the end of a sentence."""
        code, words = self._code, self.last_words()
        how = "" if code is None else f" with exit code {code}" if code >= 0 else f" by signal {-code}"
        return f"{how}: {words}" if words else f"{how}."


def _lost() -> str:
    """Return the message of a lost connection."""
    return errors.TransportLost().message


def _quoted(words: str) -> str:
    """Return the agent's last output as a sentence, or an empty text."""
    return f" Its last words: {words}" if words else ""
