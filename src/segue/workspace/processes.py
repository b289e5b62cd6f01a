"""Commands as guarded process trees, and the search for processes that a dead server left."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from errno import ENOENT
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol

import anyio
import anyio.to_thread

from segue.model.errors import AgentMissing, WorkspaceError
from segue.workspace import guardian

EXECUTION = "SEGUE_EXECUTION"
"""Variable with the name of the execution, in every process of a guarded tree."""
PART = "/"
"""Separator between the name of an execution and that of a part of it, which can be ended separately."""

_LINE_LIMIT = 64 * 1024 * 1024
_STDERR_LIMIT = 64 * 1024
_OUTPUT_LIMIT = 1024 * 1024
# Both guardians may try to kill the tree, one after the other.
_END_WITHIN = guardian.BACKUP_AFTER + 2 * guardian.GIVE_UP_AFTER + 2.0
_LOOKS = 500
_BETWEEN_LOOKS = 0.01


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identity of a process, which differs from that of a later process with the same number."""

    pid: int
    started: str
    boot: str


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """Command that ended, or was ended at its time limit."""

    code: int | None
    output: str
    """Last part of its output, standard error included."""
    timed_out: bool = False


class RunningProcess(Protocol):
    """Running command, under a guardian or in a container."""

    pid: int
    guardian_pid: int
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    def stderr_tail(self) -> str: ...
    async def wait(self) -> int | None: ...
    async def terminate(self) -> int | None: ...


class GuardedProcess:
    """Running command under its guardian."""

    def __init__(self, leash: "_Leash", execution: str) -> None:
        self.guardian_pid = leash.process.pid
        self.execution = execution
        self.pid: int
        self.stdin: asyncio.StreamWriter
        self.stdout: asyncio.StreamReader
        self._leash = leash
        self._pipes = _Pipes()
        self._stderr = Tail(_STDERR_LIMIT)
        self._first_report: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._outcome: asyncio.Task[int | None]
        self._draining: asyncio.Task[None] | None = None

    def stderr_tail(self) -> str:
        """Return the last part of the command's standard error."""
        return self._stderr.text()

    async def wait(self) -> int | None:
        """Return the exit code when the whole tree has ended: negative for a signal, None if unknown."""
        return await asyncio.shield(self._outcome)

    async def terminate(self) -> int | None:
        """Ask the guardian to stop the command, and to kill its tree after the grace; return the exit code (None if
        unknown)."""
        self._leash.ask_politely()
        return await self.wait()

    async def connect(self) -> None:
        """Open our ends of the pipes, and begin to read the guardian's reports and standard error."""
        process = self._leash.process
        assert process.stdin and process.stdout
        status = await self._pipes.reader(self._leash.status)
        self._outcome = asyncio.create_task(self._follow(status))
        self.stdin = await self._pipes.writer(process.stdin)
        self.stdout = await self._pipes.reader(process.stdout, _LINE_LIMIT)
        if process.stderr:
            stderr = await self._pipes.reader(process.stderr)
            self._draining = asyncio.create_task(self._stderr.follow(stderr))

    async def started(self, program: str) -> None:
        """Wait for the guardian's report of the start, and set `pid`; raise an error if the command did not start."""
        word, _, value = (await self._first_report).partition(" ")
        match word:
            case "started":
                self.pid = int(value)
            case "failed":
                raise _cannot_start(program, int(value))
            case _:
                raise WorkspaceError(f"The guardian of {program} could not start. {self.stderr_tail().strip()}".strip())

    async def close(self) -> None:
        """End the process tree, by its mark if the guardian does not end in time, and close the pipes."""
        self._leash.let_go()
        try:
            with anyio.move_on_after(_END_WITHIN):
                await self.wait()
            if not self._outcome.done():
                self._leash.process.kill()
                await end_marked(self.execution)
        finally:
            await self._pipes.close()
            await _cancelled(self._outcome, self._draining)

    async def _follow(self, status: asyncio.StreamReader) -> int | None:
        """Read the guardians' reports until both have ended; return the exit code, or None if it is unknown."""
        reports: dict[str, str] = {}
        async for line in status:
            word, value = line.decode().split()
            reports[word] = value
            if not self._first_report.done():
                self._first_report.set_result(line.decode())
        if not self._first_report.done():
            self._first_report.set_result("")
        await anyio.to_thread.run_sync(self._leash.process.wait)
        if reports.keys() == {"started"} or not guardian.ON_LINUX:
            # Both guardians were killed, or could not adopt an orphan: the rest is found by its mark.
            await end_marked(self.execution)
        code = reports.get("exited", "None")
        return None if code == "None" else int(code)


@asynccontextmanager
async def guarded(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    execution: str,
    merge_stderr: bool = False,
) -> AsyncGenerator[GuardedProcess]:
    """Run a command; on exit its whole process tree is ended and waited for."""
    leash = _launch(command, directory, {**environment, EXECUTION: execution}, merge_stderr)
    process = GuardedProcess(leash, execution)
    try:
        await _to_the_end(process.connect())
        await process.started(command[0])
        yield process
    finally:
        await _to_the_end(process.close())


async def run_guarded(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    execution: str,
    timeout: float | anyio.CancelScope,
) -> CompletedRun:
    """Run a command until its end, its timeout in seconds, or the cancellation of its scope; processes that it leaves
    running are ended with it."""
    output = Tail(_OUTPUT_LIMIT)
    code: int | None = None
    async with guarded(
        command, directory=directory, environment=environment, execution=execution, merge_stderr=True
    ) as process:
        process.stdin.close()
        with timeout if isinstance(timeout, anyio.CancelScope) else anyio.move_on_after(timeout) as limit:
            await output.follow(process.stdout)
            code = await process.wait()
    return CompletedRun(code, output.text(), timed_out=limit.cancelled_caught)


def identity(pid: int) -> ProcessIdentity | None:
    """Return the identity of the living process with this number, or None."""
    process = guardian.read_process(pid) if guardian.ON_LINUX else guardian.process_table().get(pid)
    if process is None or process.ended:
        return None
    return ProcessIdentity(pid, process.started, _boot())


def is_alive(process: ProcessIdentity) -> bool:
    """Return True if this very process still runs, and no later one with its number."""
    return identity(process.pid) == process


def descendants(pid: int) -> list[int]:
    """Return the living processes below this one."""
    table = guardian.process_table()
    return sorted(child for child in guardian.below({pid}, table) if not table[child].ended)


def marked(execution: str) -> list[int]:
    """Return the readable processes that carry the mark of this execution or of a part of it."""
    mark = f"{EXECUTION}={execution}".encode()
    part = mark + PART.encode()
    return sorted(
        pid
        for pid, environment in _environments()
        if any(variable == mark or variable.startswith(part) for variable in environment)
    )


async def end_marked(execution: str) -> int:
    """Kill every process with this mark and its descendants, and return their number; raise an error if some stay."""
    ended: set[int] = set()
    left: set[int] = set()
    for _ in range(_LOOKS):
        left = await anyio.to_thread.run_sync(_marked_trees, execution)
        if not left:
            return len(ended)
        guardian.signal_all(left, signal.SIGKILL)
        ended |= left
        await anyio.sleep(_BETWEEN_LOOKS)
    raise WorkspaceError(
        f"Processes of an earlier run cannot be ended: {', '.join(map(str, sorted(left)))}.",
        hint="End them by hand, then try again.",
    )


class _Leash:
    """Server's handle of a guardian: its process, and the only write end of its control pipe."""

    def __init__(self, process: "subprocess.Popen[bytes]", control: int, status: IO[bytes]) -> None:
        self.process = process
        self.status = status
        self._control: int | None = control

    def ask_politely(self) -> None:
        """Ask the guardian to stop the command with SIGTERM; one that has ended is no error."""
        if self._control is not None:
            # The guardian may have ended already.
            with suppress(BrokenPipeError):
                os.write(self._control, guardian.POLITE)

    def let_go(self) -> None:
        """Close the control pipe; both guardians see its end, and end the tree."""
        if self._control is not None:
            os.close(self._control)
            self._control = None


class _Pipes:
    """Our ends of a process's pipes, as streams."""

    def __init__(self) -> None:
        self._transports: list[asyncio.ReadTransport | asyncio.WriteTransport] = []

    async def reader(self, pipe: IO[bytes], limit: int = 64 * 1024) -> asyncio.StreamReader:
        """Return a stream that reads a pipe; `close` closes it."""
        stream = asyncio.StreamReader(limit)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), pipe)
        self._transports.append(transport)
        return stream

    async def writer(self, pipe: IO[bytes]) -> asyncio.StreamWriter:
        """Return a stream that writes to a pipe; `close` closes it without waiting for unsent data."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)

    async def close(self) -> None:
        """Close all pipes at once, and drop unsent data."""
        for transport in self._transports:
            if transport.is_closing():
                continue
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
            else:
                transport.close()
        # Transports close their files in the loop's next round.
        await asyncio.sleep(0)


class Tail:
    """Last part of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Keep the end of this stream until it closes."""
        while piece := await stream.read(64 * 1024):
            self.add(piece)

    def add(self, piece: bytes) -> None:
        """Append a piece, and drop the beginning beyond the limit."""
        self._kept += piece
        del self._kept[: -self._limit]

    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


def _launch(command: Sequence[str], directory: Path, environment: Mapping[str, str], merge_stderr: bool) -> _Leash:
    """Start a guardian that runs the command, with a control and a status pipe; raise an error if the directory is
    absent."""
    if not directory.is_dir():
        raise WorkspaceError(
            f"The directory {directory} does not exist.", hint="Bring it back, or start anew elsewhere."
        )
    # Both ends are closed on exec, so no other child of the server can hold a write end and keep the tree alive.
    control, our_control = os.pipe()
    our_status, status = os.pipe()
    # Isolated and without site-packages: the guardian starts faster, and the agent's PYTHON* variables do not reach it.
    python = [sys.executable, "-I", "-S", guardian.__file__, str(control), str(status)]
    try:
        process = subprocess.Popen(
            [*python, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
            bufsize=0,
            cwd=directory,
            env=dict(environment),
            pass_fds=(control, status),
            start_new_session=True,
        )
    except BaseException:
        os.close(our_control)
        os.close(our_status)
        raise
    finally:
        os.close(control)
        os.close(status)
    return _Leash(process, our_control, os.fdopen(our_status, "rb", 0))


def _cannot_start(program: str, number: int) -> AgentMissing:
    """Return the error for a program that could not be started, by its error number."""
    if number == ENOENT:
        return AgentMissing(
            f"The program {program} was not found.",
            hint=f"Install {program}, or put it on the PATH of the shell you call Segue from.",
        )
    return AgentMissing(
        f"The program {program} could not be started: {os.strerror(number)}.",
        hint=f"Try to run {program} yourself.",
    )


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish this even if we are cancelled, by anyio or by asyncio, and only then raise the cancellation."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled:
        raise cancelled
    task.result()


async def _cancelled(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel these tasks one after the other, and wait for the end of each; None is skipped."""
    for task in filter(None, tasks):
        task.cancel()
        await asyncio.wait([task])


@cache
def _boot() -> str:
    """Return the id of the machine's present boot."""
    if guardian.ON_LINUX:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True).stdout.strip()


def _environments() -> list[tuple[int, list[bytes]]]:
    """Return each process with its environment, which is empty if it cannot be read."""
    if guardian.ON_LINUX:
        return [(pid, _environment(pid)) for pid in guardian.process_table()]
    # For macOS; not tested on one yet.
    listing = subprocess.run(["ps", "-Eww", "-axo", "pid=,command="], capture_output=True).stdout
    return [(int(line.split(None, 1)[0]), line.split()) for line in listing.splitlines()]


def _environment(pid: int) -> list[bytes]:
    """Return the environment of a process; empty if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _marked_trees(execution: str) -> set[int]:
    """Return the living processes with this mark and their descendants, without this process."""
    table = guardian.process_table()
    # A server that was started from an agent's shell carries that agent's mark itself.
    table.pop(os.getpid(), None)
    roots = {pid for pid in marked(execution) if pid in table}
    return {pid for pid in roots | guardian.below(roots, table) if not table[pid].ended}
