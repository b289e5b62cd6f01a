"""Commands in containers: heard from the first line on, spoken to, found again, and taken away."""

import errno
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from segue.model.errors import AgentMissing, WorkspaceError
from segue.workspace.containers import ContainedProcess, contained, engine_address, managed, rejoined
from tests.containers.engines import Engine

pytestmark = pytest.mark.anyio

ECHO = (sys.executable, "-u", "-c", "import sys\nfor line in sys.stdin: print('heard', line.strip())")
SECRET = "sk-ant-" + "a1b2c3d4" * 4


@asynccontextmanager
async def running(
    engine: Engine, root: Path, *command: str, execution: str = "attempt-1", **variables: str
) -> AsyncGenerator[ContainedProcess]:
    with anyio.fail_after(60):
        async with contained(
            command,
            directory=root,
            environment=variables,
            execution=execution,
            container=engine.container(root),
            engine=engine.address,
        ) as process:
            yield process


async def said(process: ContainedProcess, *lines: str) -> None:
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    await process.stdin.drain()


async def heard(process: ContainedProcess, lines: int) -> list[str]:
    return [(await process.stdout.readline()).decode().strip() for _ in range(lines)]


async def test_a_command_hears_and_is_heard(engine: Engine, tmp_path: Path) -> None:
    async with running(engine, tmp_path, *ECHO) as process:
        await said(process, "one", "x" * 100_000)
        assert await heard(process, 2) == ["heard one", "heard " + "x" * 100_000]


async def test_its_worktree_is_where_it_is_here(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("yes")
    async with running(engine, tmp_path, "/bin/sh", "-c", "pwd; cat here.txt; echo no > there.txt") as process:
        assert await heard(process, 2) == [str(tmp_path), "yes"]
        assert await process.wait() == 0
    assert (tmp_path / "there.txt").read_text() == "no\n"


async def test_variables_reach_the_command_and_not_what_the_engine_writes_down(engine: Engine, tmp_path: Path) -> None:
    value = f"it's $HOME `{SECRET}`"
    async with running(engine, tmp_path, "/bin/sh", "-c", 'echo "$KEY"', KEY=value) as process:
        assert await heard(process, 1) == [value]
        assert SECRET not in engine.inspect(process.container)


async def test_how_it_ended_is_known_with_its_last_words(engine: Engine, tmp_path: Path) -> None:
    async with running(engine, tmp_path, "/bin/sh", "-c", "echo out of order >&2; exit 3") as process:
        assert await process.wait() == 3
        assert await process.stdout.read() == b""
        assert process.stderr_tail() == "out of order\n"


async def test_leaving_takes_the_container_away(engine: Engine, tmp_path: Path) -> None:
    async with running(engine, tmp_path, *ECHO):
        assert len(engine.containers()) == 1
    assert engine.containers() == []


async def test_what_was_said_while_nobody_listened_is_heard_from_the_first_line_on(
    engine: Engine, tmp_path: Path
) -> None:
    async with running(engine, tmp_path, *ECHO) as first:
        await said(first, "one")
        assert await heard(first, 1) == ["heard one"]
        # Whoever spoke is gone in the middle of a line.
        first.stdin.write(b"two\nthr")
        await first.stdin.drain()
        first.stdin.close()
        async with rejoined(first.container, engine=engine.address) as again:
            await said(again, "four")
            assert await heard(again, 4) == ["heard one", "heard two", "heard thr", "heard four"]
        assert await managed(engine.address) == []


async def test_one_that_is_gone_cannot_be_joined(engine: Engine, tmp_path: Path) -> None:
    async with running(engine, tmp_path, *ECHO) as process:
        container = process.container
    with pytest.raises(WorkspaceError, match="does not run any more"):
        async with rejoined(container, engine=engine.address):
            pass


async def test_an_image_that_is_not_there_is_said_with_the_command_that_gets_it(engine: Engine, tmp_path: Path) -> None:
    missing = replace(engine.container(tmp_path), image="nobody-has-this:1")
    with pytest.raises(AgentMissing, match="does not have the image nobody-has-this:1") as refused:
        async with contained(
            ECHO, directory=tmp_path, environment={}, execution="e", container=missing, engine=engine.address
        ):
            pass
    assert "pull nobody-has-this:1" in refused.value.hint


async def test_without_an_engine_one_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(AgentMissing, match=r"^No container engine runs: nothing answers at unix://\S+\.$"):
        await managed(f"unix://{tmp_path}/nothing.sock")


@pytest.mark.parametrize(
    ("setting", "variables", "address"),
    [
        ("/run/mine.sock", {"DOCKER_HOST": "unix:///other.sock"}, "unix:///run/mine.sock"),
        ("", {"DOCKER_HOST": "unix:///other.sock"}, "unix:///other.sock"),
    ],
)
def test_the_engine_is_where_it_is_said_to_be(setting: str, variables: dict[str, str], address: str) -> None:
    assert engine_address(setting, variables) == address


@pytest.mark.parametrize(
    "socket",
    [
        "run/podman/podman.sock",
        ".docker/run/docker.sock",
        "tmp/podman/podman-machine-default-api.sock",
        ".local/share/containers/podman/machine/podman.sock",
    ],
)
def test_the_engine_is_found_where_docker_and_podman_have_their_sockets(tmp_path: Path, socket: str) -> None:
    _touch(tmp_path / socket)
    assert engine_address("", _home(tmp_path)) == f"unix://{tmp_path / socket}"


def test_an_engine_that_lets_us_in_goes_before_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, ours = _touch(tmp_path / "run/docker.sock"), _touch(tmp_path / "run/podman/podman.sock")
    monkeypatch.setattr(os, "access", lambda path, _: path == str(ours))  # pyright: ignore
    assert engine_address("", _home(tmp_path)) == f"unix://{ours}"
    ours.unlink()
    assert engine_address("", _home(tmp_path)) == f"unix://{closed}"


def _home(place: Path) -> dict[str, str]:
    return {"HOME": str(place), "XDG_RUNTIME_DIR": str(place / "run"), "TMPDIR": str(place / "tmp")}


def _touch(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


async def test_an_engine_that_lets_nobody_in_is_told_apart_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    # Whoever runs the tests may be root, who is let in everywhere.
    monkeypatch.setattr("asyncio.open_unix_connection", refuse)
    with pytest.raises(
        AgentMissing, match=r"^The container engine at unix:///a\.sock refuses you access\.$"
    ) as refused:
        await managed("unix:///a.sock")
    assert "usermod -aG docker" in refused.value.hint and "Podman" in refused.value.hint


def test_an_engine_of_another_machine_is_refused() -> None:
    with pytest.raises(AgentMissing, match="tcp://far:2375 is not a socket of this machine"):
        engine_address("", {"DOCKER_HOST": "tcp://far:2375"})
