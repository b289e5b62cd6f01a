"""Commands in containers, which outlive the server, and how a later server connects to them again.

A container's output is read from the engine's log from the first line on, so that output of the time without a server
is neither lost nor repeated. Its standard input is a pipe inside the container that its own shell keeps open at both
ends, so that the command never sees its end; input is written to it by a separate command. Variables are passed as the
first lines of the input, because an engine stores a container's own variables on disk.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import anyio

from segue.model.agents import Container
from segue.model.errors import AgentMissing, WorkspaceError
from segue.workspace.engine_api import UNIX, EngineApi, EngineError, NoEngine
from segue.workspace.mounts import mounts_for
from segue.workspace.processes import Tail

MANAGED = "segue.managed"
EXECUTION = "segue.execution"
_ALL = {"label": [f"{MANAGED}=true"]}
"""Label that identifies our containers; names and images are not used for that."""

_PIPE = "/tmp/.segue-stdin"
_FIRST = (
    f'mkfifo -m 600 {_PIPE} && exec 0<>{_PIPE} && while IFS= read -r v && [ -n "$v" ]; do export "$v"; done '
    '&& exec "$@"'
)
_SPEAK = f"until [ -p {_PIPE} ]; do sleep 0.05; done; exec cat > {_PIPE}"
_STDOUT = 1
_LINE_LIMIT = 64 * 1024 * 1024
_STDERR_LIMIT = 64 * 1024
_GRACE = 2
"""Seconds in which a command must end after the request to stop."""
_END_WITHIN = 30.0
_BEGIN_WITHIN = 300.0
"""Seconds in which a container must be created or started: the owner of an image's files may have to be changed first.
"""
_NOT_FOUND, _NOT_RUNNING = 404, 409
_UNREACHABLE = (EngineError, NoEngine)


@dataclass(frozen=True, slots=True)
class FoundContainer:
    """Container that a Segue server has started."""

    id: str
    execution: str
    running: bool


def engine_address(setting: str, environment: Mapping[str, str]) -> str:
    """Return the engine's socket: the setting, else DOCKER_HOST, else a usual one; an address off this machine raises
    NoEngine."""
    named = setting or environment.get("DOCKER_HOST", "")
    if named:
        address = named if "://" in named else f"{UNIX}{named}"
        if not address.startswith(UNIX):
            raise NoEngine(f"The container engine at {address} is not a socket of this machine.")
        return address
    usual = _usual(environment)
    there = [path for path in usual if os.path.exists(path)]  # noqa: PTH110 - Path's own fails on what is not ours to see
    ours = [path for path in there if os.access(path, os.R_OK | os.W_OK)]
    return UNIX + [*ours, *there, *usual][0]


def _usual(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the usual socket paths of Docker and Podman, on Linux and macOS."""
    run = environment.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    home, temporary = environment.get("HOME", str(Path.home())), environment.get("TMPDIR", "/tmp").rstrip("/")
    return (
        *("/var/run/docker.sock", f"{run}/docker.sock", f"{run}/podman/podman.sock", "/run/podman/podman.sock"),
        # On macOS both run in a virtual machine.
        f"{home}/.docker/run/docker.sock",
        f"{temporary}/podman/podman-machine-default-api.sock",
        f"{home}/.local/share/containers/podman/machine/podman.sock",
    )


class ContainedProcess:
    """Running command in a container of its own."""

    def __init__(self, api: EngineApi, container: str, execution: str, pid: int, stdin: asyncio.StreamWriter) -> None:
        """Begin to read the container's output and to wait for its end, in two tasks."""
        self.container = container
        self.execution = execution
        self.pid = pid
        # It has no guardian, because it outlives the server.
        self.guardian_pid = pid
        self.stdin = stdin
        self.stdout = asyncio.StreamReader(_LINE_LIMIT)
        self._api = api
        self._stderr = Tail(_STDERR_LIMIT)
        self._listening = asyncio.create_task(self._listen())
        self._outcome = asyncio.create_task(self._end())

    def stderr_tail(self) -> str:
        """Return the last part of the command's standard error."""
        return self._stderr.text()

    async def wait(self) -> int | None:
        """Return the exit code at the end: negative for a signal, None if unknown."""
        return await asyncio.shield(self._outcome)

    async def terminate(self) -> int | None:
        """Stop the container, killed after the grace; return the exit code, or None if the engine cannot be reached."""
        with suppress(*_UNREACHABLE):
            await self._api.ask("POST", f"/containers/{self.container}/stop", t=_GRACE)
        return await self.wait()

    async def let_go(self) -> None:
        """Stop reading and waiting, and close standard input; the container goes on."""
        for task in (self._listening, self._outcome):
            task.cancel()
        await asyncio.wait((self._listening, self._outcome))
        self.stdin.close()

    async def _listen(self) -> None:
        """Feed the container's output to `stdout` and the tail of stderr until it ends or the engine breaks off."""
        try:
            path = f"/containers/{self.container}/logs"
            async with self._api.follow(path, follow=1, stdout=1, stderr=1) as pieces:
                async for stream, piece in pieces:
                    if stream == _STDOUT:
                        self.stdout.feed_data(piece)
                    else:
                        self._stderr.add(piece)
        except _UNREACHABLE as error:
            self._stderr.add(f"{error.message}\n".encode())
        finally:
            self.stdout.feed_eof()

    async def _end(self) -> int | None:
        """Wait for the container's end; return its exit code, negative for a signal, or None if the engine breaks
        off."""
        try:
            ended = await self._api.ask("POST", f"/containers/{self.container}/wait", within=inf)
        except _UNREACHABLE:
            return None
        code = int(ended["StatusCode"])
        return 128 - code if code > 128 else code


@asynccontextmanager
async def contained(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    execution: str,
    container: Container,
    engine: str,
) -> AsyncGenerator[ContainedProcess]:
    """Run a command in a new container, which is stopped and removed on exit."""
    api = EngineApi(engine)
    wanted = await _wanted(api, command, directory, execution, container)
    try:
        made = await api.ask("POST", "/containers/create", wanted, within=_BEGIN_WITHIN)
    except EngineError as error:
        raise _no_image(error, container.image) from error
    async with _until_left(api, str(made["Id"])) as made_id:
        await api.ask("POST", f"/containers/{made_id}/start", within=_BEGIN_WITHIN)
        async with _joined(api, made_id, execution) as process:
            own = {"HOME": container.home} if container.home else {}
            process.stdin.write(_variables({**environment, **own}))
            await process.stdin.drain()
            yield process


@asynccontextmanager
async def rejoined(container: str, *, engine: str) -> AsyncGenerator[ContainedProcess]:
    """Connect to a container of an earlier server: its whole output is read again, and input can be sent."""
    api = EngineApi(engine)
    found = next((each for each in await managed(engine) if each.id == container and each.running), None)
    if found is None:
        raise WorkspaceError("The container that the agent was in does not run any more.")
    async with _until_left(api, found.id), _joined(api, found.id, found.execution) as process:
        # The last writer may have died in the middle of a line.
        process.stdin.write(b"\n")
        yield process


@asynccontextmanager
async def _until_left(api: EngineApi, container: str) -> AsyncGenerator[str]:
    """Yield the container's id; on exit stop and remove it, within a time limit and without an error if that fails."""
    try:
        yield container
    finally:
        # A container that cannot be stopped now is found by its label later.
        with anyio.move_on_after(_END_WITHIN, shield=True), suppress(*_UNREACHABLE):
            await _end(api, container)


@asynccontextmanager
async def _joined(api: EngineApi, container: str, execution: str) -> AsyncGenerator[ContainedProcess]:
    """Yield the process of a running container; on exit stop reading it, and leave the container as it is."""
    inspected = await api.ask("GET", f"/containers/{container}/json")
    process = ContainedProcess(api, container, execution, inspected["State"]["Pid"], await _speaker(api, container))
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await process.let_go()


async def _speaker(api: EngineApi, container: str) -> asyncio.StreamWriter:
    """Open the container's standard input through an exec, and return it as a writer."""
    attached = {"AttachStdin": True, "AttachStdout": True, "AttachStderr": True}
    speaker = await api.ask("POST", f"/containers/{container}/exec", {**attached, "Cmd": ["/bin/sh", "-c", _SPEAK]})
    return await api.hold(f"/exec/{speaker['Id']}/start", {"Detach": False, "Tty": False})


async def managed(engine: str) -> list[FoundContainer]:
    """Return all containers that a Segue server has started, running or not."""
    listed: list[dict[str, Any]] = await EngineApi(engine).ask("GET", "/containers/json", all=1, filters=_ALL)
    return [
        FoundContainer(id=each["Id"], execution=each["Labels"].get(EXECUTION, ""), running=each["State"] == "running")
        for each in listed
    ]


async def end_container(container: str, *, engine: str) -> None:
    """Stop and remove a container, if it exists."""
    await _end(EngineApi(engine), container)


async def require_engine(engine: str) -> None:
    """Raise an error if no container engine answers at this address."""
    await EngineApi(engine).ask("GET", "/version")


async def _end(api: EngineApi, container: str) -> None:
    """Stop and remove a container; one that is stopped or gone is no error."""
    for method, path, query in (
        ("POST", f"/containers/{container}/stop", {"t": _GRACE}),
        ("DELETE", f"/containers/{container}", {"force": 1, "v": 1}),
    ):
        try:
            await api.ask(method, path, **query)
        except EngineError as error:
            if error.status not in (_NOT_FOUND, _NOT_RUNNING):
                raise


async def _wanted(
    api: EngineApi, command: Sequence[str], directory: Path, execution: str, container: Container
) -> dict[str, Any]:
    """Return the engine's request for a container: command, mounts, user, labels and log, as Docker or Podman needs
    them."""
    podman = "Podman" in str((await api.ask("GET", "/version")).get("Components"))
    host: dict[str, Any] = {
        "Binds": await mounts_for(directory, container),
        # Output is read from the log, so the engine must not drop any of it.
        "LogConfig": {"Type": "json-file", "Config": {} if podman else {"max-size": "-1"}},
    }
    if container.network:
        host["NetworkMode"] = container.network
    if not podman:
        # Docker always has an init program; Podman only if it is installed.
        host["Init"] = True
    user = container.user or (f"{os.getuid()}:{os.getgid()}" if os.getuid() else "")
    if podman and user and not container.user:
        host["UsernsMode"] = "keep-id"
    return {
        "Image": container.image,
        "Entrypoint": [],
        "Cmd": ["/bin/sh", "-c", _FIRST, "segue", *command],
        "WorkingDir": str(directory),
        "User": user,
        "Labels": {MANAGED: "true", EXECUTION: execution},
        "HostConfig": host,
    }


def _variables(environment: Mapping[str, str]) -> bytes:
    """Return variables as lines that end with an empty one; values with a line break are left out."""
    lines = [f"{name}={value}" for name, value in environment.items() if "\n" not in value]
    return "".join(f"{line}\n" for line in [*lines, ""]).encode()


def _no_image(error: EngineError, image: str) -> WorkspaceError | AgentMissing:
    """Return AgentMissing if the engine lacks the image, else the error itself."""
    if error.status != _NOT_FOUND:
        return error
    return AgentMissing(
        f"The container engine does not have the image {image}.",
        hint=f"Get it first: docker pull {image}, or podman pull {image}.",
    )
