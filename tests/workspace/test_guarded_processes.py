import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import anyio
import pytest

from segue.model.errors import AgentMissing, WorkspaceError
from segue.workspace import (
    CompletedRun,
    GuardedProcess,
    ProcessIdentity,
    descendants,
    end_marked,
    guarded,
    identity,
    is_alive,
    marked,
    run_guarded,
)
from segue.workspace.processes import PART

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
AGENT = [sys.executable, str(HERE / "tree_of_trouble.py")]


def a_name() -> str:
    """Of its own for each execution: the same tests may be running twice on this machine."""
    return f"test-{token_hex(6)}"


@dataclass(frozen=True)
class Tree:
    """A guarded tree of trouble, by identity."""

    outer: ProcessIdentity
    inner: ProcessIdentity
    agent: ProcessIdentity
    rest: tuple[ProcessIdentity, ...]

    def everyone(self) -> tuple[ProcessIdentity, ...]:
        return (self.outer, self.inner, self.agent, *self.rest)


def known(pid: int) -> ProcessIdentity:
    process = identity(pid)
    assert process is not None
    return process


def look_at(outer: int, agent: int, reported: list[int]) -> Tree:
    below = descendants(outer)
    # A daemon is in the tree, too: the guardian has adopted it.
    assert set(reported) < set(below)
    (inner,) = {pid for pid in below if parent(pid) == outer}
    rest = (known(pid) for pid in below if pid not in (inner, agent))
    return Tree(known(outer), known(inner), known(agent), tuple(rest))


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def gone(processes: Iterable[ProcessIdentity], within: float = 20) -> None:
    """Wait until none of them is left."""
    left = list(processes)
    with anyio.move_on_after(within):
        while left := [process for process in left if is_alive(process)]:
            await anyio.sleep(0.01)
    assert left == []


@asynccontextmanager
async def running(
    *command: str, execution: str | None = None, directory: Path = HERE
) -> AsyncGenerator[GuardedProcess]:
    name = execution or a_name()
    with anyio.fail_after(60):
        async with guarded(command, directory=directory, environment=os.environ, execution=name) as process:
            yield process
    assert marked(name) == []


async def tree_of(process: GuardedProcess) -> Tree:
    return look_at(process.guardian_pid, process.pid, json.loads(await process.stdout.readline()))


@contextmanager
def small_server(execution: str, *command: str) -> Generator[tuple[subprocess.Popen[str], Tree]]:
    words = [sys.executable, str(HERE / "small_server.py"), execution, *command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        told = json.loads(server.stdout.readline())
        try:
            yield server, look_at(told["guardian"], told["agent"], told["tree"])
        finally:
            server.kill()


async def echo(process: GuardedProcess, text: str) -> str:
    process.stdin.write(f"{text}\n".encode())
    return (await process.stdout.readline()).decode().strip()


# ── who dies first ──────────────────────────────────────────────────────────────────────────────────


async def test_nothing_survives_the_servers_death() -> None:
    with small_server(a_name(), *AGENT, "unmarked") as (server, tree):
        server.kill()
        await gone(tree.everyone())


@pytest.mark.parametrize(("victim", "code"), [("outer", -signal.SIGKILL), ("inner", None), ("agent", -signal.SIGKILL)])
async def test_nothing_survives_the_death_of_a_guardian_or_of_the_agent(victim: str, code: int | None) -> None:
    async with running(*AGENT, "unmarked") as process:
        tree = await tree_of(process)
        os.kill(getattr(tree, victim).pid, signal.SIGKILL)
        assert await process.wait() == code
        await gone(tree.everyone())


@pytest.mark.parametrize("victims", [("server", "outer"), ("server", "inner"), ("outer", "agent"), ("inner", "agent")])
async def test_nothing_survives_the_death_of_two_at_once(victims: tuple[str, str]) -> None:
    with small_server(a_name(), *AGENT, "unmarked") as (server, tree):
        slain = [server.pid if name == "server" else getattr(tree, name).pid for name in victims]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in slain:
                os.kill(pid, number)
        await gone(tree.everyone())


async def test_a_living_server_ends_the_tree_when_both_guardians_die() -> None:
    async with running(*AGENT) as process:
        tree = await tree_of(process)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for guardian in (tree.outer, tree.inner):
                os.kill(guardian.pid, number)
        assert await process.wait() is None
        await gone(tree.everyone())


async def test_after_the_death_of_server_and_guardians_the_rest_is_found_by_its_mark() -> None:
    execution = a_name()
    with small_server(execution, *AGENT) as (server, tree), small_server(a_name(), *AGENT) as (_, other):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (tree.outer.pid, tree.inner.pid, server.pid):
                os.kill(pid, number)
        server.wait()
        left = [tree.agent, *tree.rest]
        assert all(is_alive(process) for process in left)
        assert marked(execution) == sorted(process.pid for process in left)
        assert await end_marked(execution) == len(left)
        assert not any(is_alive(process) for process in left)
        assert all(is_alive(process) for process in other.everyone())
    await gone(other.everyone())


async def test_a_part_of_an_execution_is_ended_by_itself_and_with_the_whole() -> None:
    whole = a_name()
    part, other = f"{whole}{PART}one", f"{whole}{PART}two"
    with small_server(part, *AGENT) as (_, first), small_server(other, *AGENT) as (_, second):
        assert set(marked(whole)) == {*marked(part), *marked(other)}
        await end_marked(part)
        assert not is_alive(first.agent) and is_alive(second.agent)
        await end_marked(whole)
        assert not is_alive(second.agent)


async def test_leaving_the_context_ends_the_tree() -> None:
    async with running(*AGENT, "unmarked") as process:
        tree = await tree_of(process)
    assert not any(is_alive(process) for process in tree.everyone())
    assert await process.wait() == -signal.SIGKILL


async def test_a_tree_that_keeps_growing_is_ended() -> None:
    async with running("sh", "-c", "while :; do setsid sleep 7 & echo $!; sleep 0.01; done") as process:
        pids = [int(await process.stdout.readline()) for _ in range(5)]
    assert not set(map(identity, pids)) - {None}


async def test_a_tree_that_was_stopped_is_ended() -> None:
    with small_server(a_name(), *AGENT, "unmarked") as (server, tree):
        for stopped in (tree.inner, tree.agent, *tree.rest):
            os.kill(stopped.pid, signal.SIGSTOP)
        server.kill()
        await gone(tree.everyone())


@pytest.mark.parametrize("way", ["asyncio", "anyio"])
async def test_cancellation_ends_the_tree_before_it_is_raised(way: str) -> None:
    trees: list[Tree] = []
    started = anyio.Event()

    async def work() -> None:
        async with guarded(AGENT, directory=HERE, environment=os.environ, execution=a_name()) as process:
            trees.append(await tree_of(process))
            started.set()
            await anyio.sleep_forever()

    if way == "asyncio":
        task = asyncio.create_task(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await started.wait()
            group.cancel_scope.cancel()
    assert not any(is_alive(process) for process in trees[0].everyone())


async def test_a_second_cancellation_does_not_leave_the_tree_running() -> None:
    execution = a_name()

    async def work() -> None:
        async with guarded(["cat"], directory=HERE, environment=os.environ, execution=execution):
            started.set()
            await anyio.sleep_forever()

    started = anyio.Event()
    task = asyncio.create_task(work())
    await started.wait()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert marked(execution) == []


# ── what the agent sees, and what we see of it ──────────────────────────────────────────────────────


async def test_an_agents_input_and_output_are_connected() -> None:
    async with running("cat") as process:
        assert await echo(process, "hello") == "hello"
        process.stdin.close()
        assert await process.stdout.read() == b""
        assert await process.wait() == 0


async def test_an_agent_runs_in_its_directory_with_its_environment_and_the_mark(tmp_path: Path) -> None:
    name = a_name()
    async with running("sh", "-c", "pwd; echo $SEGUE_EXECUTION $$", execution=name, directory=tmp_path) as process:
        assert (await process.stdout.read()).decode() == f"{tmp_path}\n{name} {process.pid}\n"


async def test_an_agent_inherits_no_descriptor_but_its_own_three() -> None:
    async with running("cat"), running("ls", "/proc/self/fd") as process:
        # The fourth is the directory that is being listed.
        assert (await process.stdout.read()).split() == [b"0", b"1", b"2", b"3"]


async def test_a_later_agent_does_not_delay_the_end_of_an_earlier_one() -> None:
    def cat(execution: str) -> AbstractAsyncContextManager[GuardedProcess]:
        return guarded(["cat"], directory=HERE, environment=os.environ, execution=execution)

    async with AsyncExitStack() as later:
        async with AsyncExitStack() as sooner:
            await sooner.enter_async_context(cat(first := a_name()))
            second = await later.enter_async_context(cat(a_name()))
        assert marked(first) == []
        assert await echo(second, "still here") == "still here"


async def test_signals_from_the_terminal_do_not_reach_the_agent() -> None:
    async with running("cat") as process:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
            for guardian in (process.guardian_pid, parent(process.pid)):
                os.kill(guardian, number)
        assert await echo(process, "hello") == "hello"
        sessions = {os.getsid(pid) for pid in (0, process.guardian_pid, parent(process.pid), process.pid)}
        assert len(sessions) == 4


async def test_an_agent_gets_the_signals_that_its_guardian_ignores() -> None:
    ignored = "import signal; print([s.name for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN])"
    # Python itself ignores the two that it prints.
    async with running(sys.executable, "-c", ignored) as process:
        assert await process.stdout.read() == b"['SIGPIPE', 'SIGXFSZ']\n"
    async with running("sh", "-c", "yes | head -n 1; kill -TERM $$") as process:
        assert await process.stdout.read() == b"y\n"
        assert await process.wait() == -signal.SIGTERM


async def test_very_long_lines_arrive_whole() -> None:
    async with running(sys.executable, "-c", "print('x' * 10_000_000)") as process:
        assert len(await process.stdout.readline()) == 10_000_001


async def test_the_end_of_standard_error_is_kept() -> None:
    async with running("sh", "-c", "seq 1 100000 >&2; exit 4") as process:
        assert await process.wait() == 4
    tail = process.stderr_tail()
    assert tail.endswith("99999\n100000\n") and len(tail) == 64 * 1024


async def test_unread_output_does_not_delay_the_end() -> None:
    async with running("sh", "-c", "echo started; exec yes") as process:
        assert await process.stdout.readline() == b"started\n"


async def test_the_end_of_an_agents_output_is_seen() -> None:
    async with running("sh", "-c", "exec 1>&-; exec sleep 1000") as process:
        assert await process.stdout.read() == b""
        assert is_alive(known(process.pid))


async def test_several_may_wait_for_the_same_end() -> None:
    codes: list[int | None] = []

    async def wait() -> None:
        codes.append(await process.wait())

    async with running("sh", "-c", "read line; exit 3") as process, anyio.create_task_group() as group:
        group.start_soon(wait)
        group.start_soon(wait)
        process.stdin.write(b"go\n")
    assert codes == [3, 3]


async def test_cancelling_the_wait_does_not_end_the_agent() -> None:
    async with running("cat") as process:
        with anyio.move_on_after(0.01):
            await process.wait()
        assert await echo(process, "hello") == "hello"


async def test_a_normal_stop_lets_the_agent_finish() -> None:
    script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    async with running("sh", "-c", script) as process:
        assert await process.stdout.readline() == b"ready\n"
        assert await process.terminate() == 7
        assert await process.stdout.read() == b"bye\n"
        assert await process.terminate() == 7


async def test_an_agent_that_ignores_the_stop_is_killed_after_the_grace() -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 1; done"
    async with running("sh", "-c", script) as process:
        assert await process.stdout.readline() == b"ready\n"
        with anyio.fail_after(30):
            assert await process.terminate() == -signal.SIGKILL


# ── what cannot be started ──────────────────────────────────────────────────────────────────────────


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(AgentMissing, match="The program no-such-agent was not found") as refused:
        async with running("no-such-agent", "--acp"):
            pass
    assert "Install no-such-agent" in refused.value.hint


async def test_a_program_is_looked_for_on_the_path_of_its_own_environment(tmp_path: Path) -> None:
    program = tmp_path / "my-agent"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/bin:/usr/bin"}
    async with guarded(["my-agent"], directory=HERE, environment=environment, execution=a_name()) as process:
        assert await process.stdout.read() == b"found\n"


async def test_a_file_that_is_not_a_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(AgentMissing, match=r"notes\.txt could not be started: Permission denied"):
        async with running(str(tmp_path / "notes.txt")):
            pass


async def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="does not exist"):
        async with running("cat", directory=tmp_path / "gone"):
            pass


# ── commands run to their end, and processes by their names ─────────────────────────────────────────


async def test_a_command_runs_to_its_end_with_all_its_output() -> None:
    execution = a_name()
    done = await run_guarded(
        ["sh", "-c", "echo out; echo err >&2; cat; sleep 1000 & exit 3"],
        directory=HERE,
        environment=os.environ,
        execution=execution,
        timeout=60,
    )
    assert done == CompletedRun(3, "out\nerr\n")
    assert marked(execution) == []


async def test_a_command_that_takes_too_long_is_ended() -> None:
    execution = a_name()
    done = await run_guarded(
        ["sh", "-c", "echo begun; exec sleep 1000"],
        directory=HERE,
        environment=os.environ,
        execution=execution,
        timeout=5,
    )
    assert done == CompletedRun(None, "begun\n", timed_out=True)
    assert marked(execution) == []


async def test_a_process_is_known_by_more_than_its_number() -> None:
    me = known(os.getpid())
    assert is_alive(me)
    assert not is_alive(ProcessIdentity(me.pid, "1", me.boot))
    assert not is_alive(ProcessIdentity(me.pid, me.started, "another boot"))


async def test_a_zombie_process_is_not_alive() -> None:
    with subprocess.Popen(["true"]) as zombie:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        assert identity(zombie.pid) is None


async def test_an_unknown_mark_ends_nothing() -> None:
    assert await end_marked(a_name()) == 0
