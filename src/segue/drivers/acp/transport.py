"""Messages to and from an agent, one to a line."""

import json
import logging
import re

import anyio

from segue.drivers.acp.request_ids import RequestIds
from segue.drivers.acp.updates import is_object
from segue.model.events import JsonObject
from segue.workspace.processes import RunningProcess

_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")

_log = logging.getLogger(__name__)


class Transport:
    """Lines of an agent process as messages. Other lines are ignored: some agents print on the same channel."""

    def __init__(self, process: RunningProcess, names: RequestIds | None = None) -> None:
        self._process = process
        self._names = names
        self.begun = anyio.Event()
        """Until then nothing is read."""
        self.ended = anyio.Event()
        self.stray = ""

    async def send(self, message: JsonObject) -> None:
        """Write a message as a line; one that was sent before the reconnection is left out."""
        named = self._names.outgoing(message) if self._names else message
        if named is not None:
            self._process.stdin.write(json.dumps(named).encode() + b"\n")
            await self._process.stdin.drain()

    async def receive(self) -> JsonObject | None:
        """Return the next message, once reading has begun; None at the end. Other lines are skipped, the last is
        kept."""
        await self.begun.wait()
        while line := await self._line():
            if message := _message(line):
                if (meant := self._names.incoming(message) if self._names else message) is not None:
                    return meant
            else:
                self.stray = line.decode(errors="replace").strip() or self.stray
        self.ended.set()
        return None

    async def close(self) -> None:
        """Do nothing: the process owns the pipes."""

    async def _line(self) -> bytes:
        """Return the next line, empty at the end; one that is too long is dropped."""
        try:
            return await self._process.stdout.readline()
        except ValueError:
            # Longer than the reader's limit, which is far above any real message.
            _log.warning("an agent's line was too long and is left out")
            return b"\n"


def _message(line: bytes) -> JsonObject | None:
    """Parse a line into a message of a shape that the library survives; None for any other line."""
    try:
        message: object = _mended(line) if _HALF_CHARACTER.search(line) else json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not is_object(message) or not isinstance(message.get("id", 0), int | str | None):
        return None
    if "error" in message and not is_object(message["error"]):
        message["error"] = {"message": str(message["error"])}
    return message


def _mended(line: bytes) -> object:
    """Replace every character that the agent cut in two between its chunks by a mark."""
    text = json.dumps(json.loads(line), ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
