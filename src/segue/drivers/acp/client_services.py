"""Files and terminals that the driver serves to agents that do not access them directly.

Reading within the directory is served at once. For every change the caller is asked for permission. Nothing outside
the directory is touched, with or without permission.
"""

import shlex
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import anyio
import anyio.to_thread
from acp import RequestError
from acp.schema import (
    CreateTerminalRequest,
    KillTerminalRequest,
    ReadTextFileRequest,
    ReleaseTerminalRequest,
    TerminalOutputRequest,
    WaitForTerminalExitRequest,
    WriteTextFileRequest,
)
from anyio.abc import TaskGroup, TaskStatus

from segue.drivers import Launch
from segue.model.errors import SegueError
from segue.model.events import JsonObject
from segue.workspace.files import real_path, rewrite
from segue.workspace.git_folder import in_git_folder
from segue.workspace.processes import GuardedProcess, guarded

_INTERNAL_ERROR = -32603
_NOT_FOUND = -32002
_LARGEST_OUTPUT = 1024 * 1024


class Permitted(Protocol):
    """Request for permission, answered by the caller."""

    async def __call__(self, title: str, tool: Literal["edit", "execute"], path: Path | None = None) -> bool: ...


class ClientServices:
    """Answers the agent's requests for files and terminals."""

    def __init__(self, launch: Launch, tasks: TaskGroup, permitted: Permitted) -> None:
        self._root = launch.directory.resolve()
        self._terminals = Terminals(launch, tasks)
        self._permitted = permitted
        self._methods: dict[str, Callable[[Any], Awaitable[JsonObject]]] = {
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait_for_exit,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }

    def knows(self, method: str) -> bool:
        """Return True if this method is one of the services."""
        return method in self._methods

    async def serve(self, method: str, parameters: object) -> JsonObject:
        """Answer a request for a file or a terminal; a failure becomes the protocol's error."""
        try:
            return await self._methods[method](parameters)
        except FileNotFoundError as error:
            raise RequestError(_NOT_FOUND, f"Resource not found: {error.filename}") from error
        except (SegueError, OSError, UnicodeDecodeError) as error:
            raise RequestError(_INTERNAL_ERROR, _reason(error)) from error

    def end(self) -> None:
        """End the terminals of an agent that is gone."""
        self._terminals.end()

    # ── files ───────────────────────────────────────────────────────────────────────────────────────

    async def _read(self, parameters: object) -> JsonObject:
        """Return the text of a file in the worktree, or the requested lines of it."""
        asked = ReadTextFileRequest.model_validate(parameters)
        path = self._inside(asked.path)
        text = await anyio.to_thread.run_sync(path.read_text, "utf-8")
        return {"content": _extract(text, asked.line, asked.limit)}

    async def _write(self, parameters: object) -> JsonObject:
        """Write a file of the worktree after permission; files of git are refused."""
        asked = WriteTextFileRequest.model_validate(parameters)
        path = self._inside(asked.path)
        if in_git_folder(path.relative_to(self._root)):
            raise RequestError(_INTERNAL_ERROR, f"{asked.path} belongs to git, and is changed by git commands only.")
        await self._permit(f"Write {path.relative_to(self._root)}", "edit", path)
        await anyio.to_thread.run_sync(rewrite, path, asked.content)
        return {}

    def _inside(self, given: str) -> Path:
        """Return the real path; raise an error if it is outside the worktree."""
        path = real_path(self._root / given)
        if not path.is_relative_to(self._root):
            raise RequestError(_INTERNAL_ERROR, f"{given} is outside the directory of this conversation.")
        return path

    async def _permit(self, title: str, tool: Literal["edit", "execute"], path: Path | None = None) -> None:
        """Raise an error unless the user allows this."""
        if not await self._permitted(title, tool, path):
            raise RequestError(_INTERNAL_ERROR, f"Not allowed: {title}")

    # ── terminals ───────────────────────────────────────────────────────────────────────────────────

    async def _create(self, parameters: object) -> JsonObject:
        """Start a command in a new terminal after permission, and return the terminal's id."""
        asked = CreateTerminalRequest.model_validate(parameters)
        directory = self._inside(asked.cwd or ".")
        await self._permit(shlex.join([asked.command, *asked.args]) if asked.args else asked.command, "execute")
        # Without arguments it is a line for a shell; that is how agents use it.
        words = [asked.command, *asked.args] if asked.args else ["sh", "-c", asked.command]
        variables = {each.name: each.value for each in asked.env or ()}
        limit = _LARGEST_OUTPUT if asked.output_byte_limit is None else asked.output_byte_limit
        return {"terminalId": await self._terminals.create(words, directory, variables, limit)}

    async def _output(self, parameters: object) -> JsonObject:
        """Return a terminal's output so far, with the exit status if it has ended."""
        terminal = self._terminals.find(TerminalOutputRequest.model_validate(parameters).terminal_id)
        ended = {"exitStatus": terminal.exit_status()} if terminal.exited.is_set() else {}
        return {"output": terminal.text(), "truncated": terminal.truncated, **ended}

    async def _wait_for_exit(self, parameters: object) -> JsonObject:
        """Wait until a terminal's command has ended, and return its exit status."""
        terminal = self._terminals.find(WaitForTerminalExitRequest.model_validate(parameters).terminal_id)
        await terminal.exited.wait()
        return terminal.exit_status()

    async def _kill(self, parameters: object) -> JsonObject:
        """End a terminal's command; the terminal and its output stay."""
        terminal = self._terminals.find(KillTerminalRequest.model_validate(parameters).terminal_id)
        await terminal.kill()
        return {}

    async def _release(self, parameters: object) -> JsonObject:
        """End a terminal's command if it runs, and remove the terminal."""
        await self._terminals.release(ReleaseTerminalRequest.model_validate(parameters).terminal_id)
        return {}


def _reason(error: Exception) -> str:
    """Return the message of an error for the agent."""
    match error:
        case SegueError():
            return error.message
        case UnicodeDecodeError():
            return "The file is not text."
        case OSError(strerror=str(reason)):
            return f"{reason}: {error.filename}" if error.filename else reason
        case _:
            return str(error)


def _extract(text: str, line: int | None, limit: int | None) -> str:
    """Return `limit` lines from line `line` on (counted from 1); the whole text if both are None."""
    if line is None and limit is None:
        return text
    first = max((line or 1) - 1, 0)
    lines = text.splitlines(keepends=True)
    return "".join(lines[first:] if limit is None else lines[first : first + limit])


class Terminal:
    """A command that runs for the agent, and what it printed last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._process: GuardedProcess | None = None
        self.truncated = False
        self.exited = anyio.Event()
        self.code: int | None = None
        self.scope = anyio.CancelScope()

    async def follow(self, process: GuardedProcess) -> None:
        """Keep the end of the command's output until it closes, and then its exit code."""
        self._process = process
        while piece := await process.stdout.read(64 * 1024):
            self._kept += piece
            if len(self._kept) > self._limit:
                self.truncated = True
                del self._kept[: len(self._kept) - self._limit]
        self.code = await process.wait()

    def text(self) -> str:
        """Return the output that is kept, without a half character at its begin."""
        kept = bytes(self._kept)
        # What is cut off may begin in the middle of a character.
        while self.truncated and kept and kept[0] & 0xC0 == 0x80:
            kept = kept[1:]
        return kept.decode("utf-8", "replace")

    def exit_status(self) -> JsonObject:
        """Return the exit code or the signal; both are None if unknown."""
        if self.code is None or self.code >= 0:
            return {"exitCode": self.code, "signal": None}
        return {"exitCode": None, "signal": signal.Signals(-self.code).name}

    async def kill(self) -> None:
        """End the command and wait for its end; do nothing if it has ended."""
        if self._process is not None and not self.exited.is_set():
            await self._process.terminate()
            await self.exited.wait()


class Terminals:
    """The terminals of one conversation, each a guarded tree that carries the agent's own mark."""

    def __init__(self, launch: Launch, tasks: TaskGroup) -> None:
        self._launch = launch
        self._tasks = tasks
        self._open: dict[str, Terminal] = {}
        self._count = 0

    async def create(self, words: Sequence[str], directory: Path, variables: Mapping[str, str], limit: int) -> str:
        """Start a command in a new terminal, and return the terminal's name."""
        terminal = Terminal(limit)
        await self._tasks.start(self._run, terminal, words, directory, variables)
        self._count += 1
        name = f"terminal-{self._count}"
        self._open[name] = terminal
        return name

    def find(self, name: str) -> Terminal:
        """Return the open terminal of this name; raise an error if there is none."""
        if name not in self._open:
            raise RequestError.resource_not_found(name)
        return self._open[name]

    async def release(self, name: str) -> None:
        """End a terminal's command, wait for its end, and remove the terminal."""
        terminal = self.find(name)
        del self._open[name]
        terminal.scope.cancel()
        await terminal.exited.wait()

    def end(self) -> None:
        """Cancel the commands of all open terminals."""
        for terminal in self._open.values():
            terminal.scope.cancel()

    async def _run(
        self,
        terminal: Terminal,
        words: Sequence[str],
        directory: Path,
        variables: Mapping[str, str],
        *,
        task_status: TaskStatus[None],
    ) -> None:
        """Run a terminal's command until it ends or the terminal is released; it is started when this reports so."""
        try:
            with terminal.scope:
                async with guarded(
                    words,
                    directory=directory,
                    environment={**self._launch.environment, **variables},
                    execution=self._launch.execution,
                    merge_stderr=True,
                ) as process:
                    process.stdin.close()
                    task_status.started()
                    await terminal.follow(process)
        finally:
            terminal.exited.set()
