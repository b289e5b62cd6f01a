"""The tools: effects on files and processes, directly or through the client."""

import asyncio
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Any, assert_never

from segue.drivers.skeleton.jsonrpc import RequestError
from segue.drivers.skeleton.payloads import ToolKind, ToolStatus
from segue.testing.rehearsal.script import (
    ClientRead,
    ClientRun,
    ClientWrite,
    Edit,
    Run,
    Spawn,
    ToolAction,
    Touch,
    Write,
)
from segue.testing.rehearsal.session import RehearsalSession


class ToolFailed(Exception):
    """The tool call had no effect; the message is its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCall:
    """Tool call as reported to the client."""

    title: str
    tool: ToolKind
    input: dict[str, Any]
    paths: tuple[str, ...] = ()


def describe(action: ToolAction) -> ReportedCall:
    """Return the tool call that an action is reported as."""
    match action:
        case Write(path, content) | ClientWrite(path, content):
            given = {"path": path, "content": content}
            return ReportedCall(title=f"Write {path}", tool="edit", input=given, paths=(path,))
        case Edit(path, find, replace):
            given = {"path": path, "find": find, "replace": replace}
            return ReportedCall(title=f"Edit {path}", tool="edit", input=given, paths=(path,))
        case Run(command) | ClientRun(command):
            return ReportedCall(title=command, tool="execute", input={"command": command})
        case Spawn(command):
            return ReportedCall(title=f"{command} &", tool="execute", input={"command": command, "background": True})
        case Touch(path):
            return ReportedCall(title=f"Touch {path}", tool="edit", input={"path": path}, paths=(path,))
        case ClientRead(path):
            return ReportedCall(title=f"Read {path}", tool="read", input={"path": path}, paths=(path,))
        case _:
            assert_never(action)


@dataclass(frozen=True, slots=True)
class Effects:
    """Tools of one conversation; each effect is in the diary before it is reported."""

    stage: RehearsalSession

    async def use(self, action: ToolAction) -> tuple[ToolStatus, str]:
        """Perform an action; return its status and its output, `failed` with the message for an error."""
        try:
            return await self._effect(action)
        except (ToolFailed, OSError, RequestError) as error:
            return "failed", str(error)

    async def _effect(self, action: ToolAction) -> tuple[ToolStatus, str]:
        """Perform an action by itself or through the client; return its status and its output."""
        match action:
            case Run(command):
                return await self._run(command)
            case ClientRun(command):
                return await self._client_run(command)
            case ClientRead() | ClientWrite():
                return "completed", await self._client_file(action)
            case _:
                return "completed", self._do(action)

    def _do(self, action: Write | Edit | Spawn | Touch) -> str:
        """Perform an action on files, or start a process; note it in the diary, and return the output."""
        stage = self.stage
        match action:
            case Write(path, content):
                stage.path(path).parent.mkdir(parents=True, exist_ok=True)
                stage.path(path).write_text(content)
                stage.note("effect", what="write", path=path)
                return f"Wrote {path}."
            case Edit(path, find, replace):
                self._replace(path, find, replace)
                stage.note("effect", what="edit", path=path)
                return f"Edited {path}."
            case Spawn(command):
                pid = self._spawn(command)
                stage.note("effect", what="spawn", command=command, pid=pid)
                return f"Started {pid}."
            case Touch(path):
                stage.path(path).touch()
                stage.note("effect", what="touch", path=path)
                return f"Touched {path}."
            case _:
                assert_never(action)

    def _replace(self, path: str, find: str, replace: str) -> None:
        """Replace a text in a file; raise ToolFailed unless it occurs exactly once."""
        text = self.stage.path(path).read_text()
        if text.count(find) != 1:
            raise ToolFailed(f"{find!r} stands {text.count(find)} times in {path}; it must stand there once.")
        self.stage.path(path).write_text(text.replace(find, replace))

    def _spawn(self, command: str) -> int:
        """Start a shell command that outlives the turn, and return its pid."""
        return subprocess.Popen(
            command,
            shell=True,
            cwd=self.stage.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ).pid

    async def _run(self, command: str) -> tuple[ToolStatus, str]:
        """Run a shell command to its end; it is killed with its group if the turn is cancelled."""
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=self.stage.directory,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            raise
        self.stage.note("effect", what="run", command=command, exit_code=process.returncode)
        text = output.decode(errors="replace")
        return ("completed", text) if process.returncode == 0 else ("failed", f"{text}\nExit code {process.returncode}")

    async def _client_file(self, action: ClientRead | ClientWrite) -> str:
        """Read or write a file through the client; return its content or a confirmation."""
        stage, path = self.stage, str(self.stage.path(action.path))
        if isinstance(action, ClientRead):
            answer = await stage.request("fs/read_text_file", path=path, line=action.line, limit=action.limit)
            stage.note("effect", what="client_read", path=action.path)
            return answer["content"]
        await stage.request("fs/write_text_file", path=path, content=action.content)
        stage.note("effect", what="client_write", path=action.path)
        return f"Wrote {action.path}."

    async def _client_run(self, command: str) -> tuple[ToolStatus, str]:
        """Run a command in a terminal of the client; return its status and its output."""
        stage = self.stage
        terminal = (await stage.request("terminal/create", command=command))["terminalId"]
        end = await stage.request("terminal/wait_for_exit", terminalId=terminal)
        output = await stage.request("terminal/output", terminalId=terminal)
        await stage.request("terminal/release", terminalId=terminal)
        exit_code = end.get("exitCode")
        stage.note("effect", what="client_run", command=command, exit_code=exit_code)
        return "completed" if exit_code == 0 else "failed", output["output"]
