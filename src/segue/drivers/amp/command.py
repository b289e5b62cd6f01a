"""Commands of Amp's own program, and the meaning of its errors."""

import asyncio
import re
import subprocess
from dataclasses import dataclass
from typing import Any, cast

from segue.drivers.skeleton.jsonrpc import INTERNAL_ERROR, LOGIN_REQUIRED, NOT_FOUND, RequestError

LONGEST_LINE = 50 * 1024 * 1024
NO_KEY = "No API key found"
"""Line that Amp prints before it waits, on the standard input for prompts, for a code from the browser."""

_THREAD = re.compile(r"\bT-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_MEANINGS = (
    (re.compile(r"thread .*(does not exist|not found)|invalid thread", re.IGNORECASE), NOT_FOUND),
    (re.compile(r"not logged in|amp login|auth-required|no api key found", re.IGNORECASE), LOGIN_REQUIRED),
)


def fields(value: object) -> dict[str, Any]:
    """Return the fields of an object of Amp's; other values have no fields."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def refusal(said: str) -> RequestError:
    """Return the error for Amp's complaint, with the code that it means; a missing key means login required."""
    sentence = " ".join(said.removeprefix("Error: ").split()) or "Amp ended without a word."
    code = next((code for pattern, code in _MEANINGS if pattern.search(sentence)), INTERNAL_ERROR)
    if NO_KEY in sentence:
        sentence = "Not logged in. Run 'amp login' to authenticate."
    return RequestError(code, sentence)


@dataclass(frozen=True, slots=True)
class Amp:
    """The program, and its commands that are over at once."""

    command: tuple[str, ...]

    def version(self) -> str:
        """Return Amp's version; raise an error if it cannot be started or fails."""
        words = (*self.command, "--version")
        try:
            done = subprocess.run(words, input=b"", capture_output=True, check=False, start_new_session=True)
        except OSError as error:
            raise self._not_started(error) from error
        return _answer(done.returncode, done.stdout, done.stderr).partition(" ")[0]

    async def begin(self, directory: str) -> str:
        """Create a thread on Amp's server, and return its id."""
        said = await self._told("threads", "new", directory=directory)
        if (found := _THREAD.search(said)) is None:
            raise refusal(f"Amp made a thread and did not tell which: {said}")
        return found[0]

    async def find(self, thread: str, directory: str) -> None:
        """Raise an error if Amp does not have the thread; nothing is continued."""
        await self._told("threads", "export", thread, directory=directory)

    async def start(self, *words: str, directory: str) -> asyncio.subprocess.Process:
        """Start Amp with pipes, in a process group of its own."""
        try:
            return await asyncio.create_subprocess_exec(
                *self.command,
                *words,
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                limit=LONGEST_LINE,
                # What it leaves behind is ended with its group.
                start_new_session=True,
            )
        except OSError as error:
            raise self._not_started(error) from error

    async def _told(self, *words: str, directory: str) -> str:
        """Run an Amp command to its end, and return its output; raise an error if it fails."""
        process = await self.start(*words, directory=directory)
        told, complaint = await process.communicate(b"")
        return _answer(process.returncode, told, complaint)

    def _not_started(self, error: OSError) -> RequestError:
        """Return the error for a program that cannot be started."""
        return RequestError(INTERNAL_ERROR, f"The program {self.command[0]} cannot be started: {error.strerror}.")


def _answer(code: int | None, told: bytes, complaint: bytes) -> str:
    """Return a command's output; raise its complaint if the exit code is not 0."""
    if code:
        raise refusal((complaint or told).decode(errors="replace").strip())
    return told.decode(errors="replace").strip()
