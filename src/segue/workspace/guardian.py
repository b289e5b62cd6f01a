"""Guardian: a pair of small processes that own an agent's process tree and end it, whichever process dies first.

Run by its file path, with the standard library only: `guardian.py CONTROL STATUS COMMAND…`, both descriptors by number.

    server ──control pipe──▶ outer ──▶ inner ──▶ agent ──▶ descendants of the agent
       ◀────status pipe────────┴─────────┘

Both guardians adopt the orphans below them, so that a daemon or a shell in a session of its own stays in the tree.
If the server dies, the control pipe ends, and inner ends the tree. If the agent dies, inner ends its descendants.
If inner dies, outer adopts its orphans and ends them. If outer dies, inner's lifeline ends, and inner ends the tree.
A byte `t` on the control pipe requests a normal stop. The status pipe carries `started PID`, `failed ERRNO` and
`exited CODE`, and its end of file reports the end of both guardians.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Mapping

ON_LINUX = sys.platform == "linux"
POLITE = b"t"
GRACE = 2.0
"""Seconds in which an agent must end after the request to stop."""
BACKUP_AFTER = 1.0
"""Seconds that outer waits for inner to end the tree."""
GIVE_UP_AFTER = 10.0
"""Seconds after which the attempts to kill a process stop."""
LOOK_EVERY = None if ON_LINUX else 0.5
"""Seconds between two looks at the process table. Where orphans cannot be adopted, descendants are known only if they
were seen before their parent died."""

_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
_ROUNDS = 20
_HANG_UP = 0
"""Event mask of poll for no event: the end of the other side is always reported."""
_SPAWN_FAILED = 127
_PR_SET_CHILD_SUBREAPER = 36


class ProcessEntry:
    """Line of the system's process table."""

    # Not a dataclass: without dataclasses and typing the guardian starts faster.
    __slots__ = ("ended", "parent", "started")

    def __init__(self, parent: int, started: str, ended: bool) -> None:
        self.parent = parent
        self.started = started
        self.ended = ended


def process_table() -> dict[int, ProcessEntry]:
    """Return every process of the machine, by its pid."""
    return _table_from_proc() if ON_LINUX else _table_from_ps()


def read_process(pid: int) -> ProcessEntry | None:
    """Return one process from `/proc`, or None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return ProcessEntry(int(fields[1]), fields[19].decode(), fields[0] in (b"Z", b"X"))


def _table_from_proc() -> dict[int, ProcessEntry]:
    """Return every process from `/proc`, by pid."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    found = ((pid, read_process(pid)) for pid in pids)
    return {pid: process for pid, process in found if process}


def _table_from_ps() -> dict[int, ProcessEntry]:
    """Return every process from the output of `ps`, by pid, without `ps` itself."""
    # For macOS; not tested on one yet.
    import subprocess

    with subprocess.Popen(["ps", "-axo", "pid=,ppid=,stat=,lstart="], stdout=subprocess.PIPE, text=True) as ps:
        lines = [line.split(None, 3) for line in ps.communicate()[0].splitlines()]
    table = {
        int(pid): ProcessEntry(int(up), started.strip(), state.startswith("Z")) for pid, up, state, started in lines
    }
    # Otherwise every look would find our own `ps`.
    table.pop(ps.pid, None)
    return table


def below(roots: Iterable[int], table: Mapping[int, ProcessEntry]) -> set[int]:
    """Return the descendants of these processes, without the processes themselves unless one descends from another."""
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update(new)
        waiting.extend(new)
    return found


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process; those that have ended, or belong to another user, are skipped."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


class Guard:
    """Watch of one guardian over one child and all its descendants."""

    def __init__(self, child: int) -> None:
        """Watch this child; a pipe wakes the guard at the end of any child."""
        self.child = child
        self.code: int | None = None
        self._seen: dict[int, str] = {}
        self._wakeup = _wakeup_at_child_end()

    def watch(self, sources: Mapping[int, int], within: float | None = None) -> list[int]:
        """Wait until the child ends, the time is over, or a source has an event; return the sources with events, or
        none."""
        poll = select.poll()
        for descriptor, events in {self._wakeup: select.POLLIN, **sources}.items():
            poll.register(descriptor, events)
        deadline = None if within is None else time.monotonic() + within
        while self._still_on(deadline):
            ready = [descriptor for descriptor, _ in poll.poll(_milliseconds_until(deadline))]
            if self._wakeup in ready:
                ready.remove(self._wakeup)
                os.read(self._wakeup, 4096)
            if ready:
                return ready
        return []

    def end_all(self) -> None:
        """Kill all descendants repeatedly until none is left or the time limit is reached."""
        hopeless = time.monotonic() + GIVE_UP_AFTER
        while members := self._frozen():
            signal_all(members, signal.SIGKILL)
            self._reap()
            if time.monotonic() > hopeless:
                return
            time.sleep(0.005)
        self._reap()

    def _still_on(self, deadline: float | None) -> bool:
        """Collect ended children, and return True if the child runs and the deadline is not over."""
        self._reap()
        if LOOK_EVERY:
            self._members()
        return self.code is None and (deadline is None or time.monotonic() < deadline)

    def _members(self) -> set[int]:
        """Return the living descendants of this guardian and of the members that it knows, and remember them."""
        table = process_table()
        known = {pid for pid, started in self._seen.items() if pid in table and table[pid].started == started}
        members = {pid for pid in known | below({os.getpid(), *known}, table) if not table[pid].ended}
        self._seen = {pid: table[pid].started for pid in members}
        return members

    def _frozen(self) -> set[int]:
        """Stop all descendants, so that none creates children while others are killed; return their pids."""
        stopped: set[int] = set()
        for _ in range(_ROUNDS):
            newcomers = self._members() - stopped
            if not newcomers:
                break
            signal_all(newcomers, signal.SIGSTOP)
            stopped |= newcomers
        return stopped

    def _reap(self) -> None:
        """Collect the exit codes of all ended children, and keep that of the watched child."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.child:
                    self.code = os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            return


def _notice(number: int, frame: object) -> None:
    """Do nothing: a handler must exist for the wakeup descriptor to work."""


def _wakeup_at_child_end() -> int:
    """Return the read end of a pipe that gets a byte at every SIGCHLD."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, _notice)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _milliseconds_until(deadline: float | None) -> int | None:
    """Return the poll timeout until the deadline or the next look; None means no timeout."""
    waits = [] if deadline is None else [deadline - time.monotonic()]
    if LOOK_EVERY:
        waits.append(LOOK_EVERY)
    return max(1, int(min(waits) * 1000)) if waits else None


def _adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants, on Linux; elsewhere do nothing."""
    if ON_LINUX:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _close_agent_pipes() -> None:
    """Replace standard input and output with /dev/null; standard error stays."""
    # Otherwise the server would not see the agent close them. Standard error is kept for errors of the guardian.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


def _report(status: int, line: str) -> None:
    """Write a line to the server's status pipe; a closed pipe is no error."""
    try:
        os.write(status, f"{line}\n".encode())
    except BrokenPipeError:
        return


def _spawn(command: list[str]) -> int:
    """Start the command in a session of its own with default signals, and return its pid."""
    return os.posix_spawnp(
        command[0],
        command,
        os.environ,
        setsid=True,  # `kill 0` in the agent's shell must not hit the guardians
        setsigmask=[],
        setsigdef=[*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ],
    )


def _exit_code(code: int | None) -> int:
    """Convert an exit code as a shell does: signals count from 128, and an unknown code (None) is 1."""
    return 1 if code is None else 128 - code if code < 0 else code


def _run_inner(control: int, status: int, lifeline: int, command: list[str]) -> int:
    """Run the command until it ends or a pipe closes, kill its tree, report its exit code, and return it."""
    os.setsid()
    _adopt_orphans()
    try:
        guard = Guard(_spawn(command))
    except OSError as error:
        _report(status, f"failed {error.errno}")
        return _SPAWN_FAILED
    _report(status, f"started {guard.child}")
    _close_agent_pipes()
    if control in guard.watch({control: select.POLLIN, lifeline: _HANG_UP}) and os.read(control, 1) == POLITE:
        signal_all([guard.child], signal.SIGTERM)
        guard.watch({control: _HANG_UP, lifeline: _HANG_UP}, within=GRACE)
    guard.end_all()
    _report(status, f"exited {guard.code}")
    return _exit_code(guard.code)


def _run_outer(control: int, inner: int) -> int:
    """Wait until the server or the inner guardian is gone, kill the rest of the tree, and return the inner's exit
    code."""
    _close_agent_pipes()
    guard = Guard(inner)
    # Only inner reads the control pipe: a byte read by one would be lost to the other.
    guard.watch({control: _HANG_UP})
    guard.watch({}, within=BACKUP_AFTER)
    guard.end_all()
    return _exit_code(guard.code)


def main(arguments: list[str]) -> int:
    """Fork into the two guardians, and run the command under the inner one."""
    control, status, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    _adopt_orphans()
    lifeline, held_by_outer = os.pipe()
    inner = os.fork()
    if inner == 0:
        os.close(held_by_outer)
        return _run_inner(control, status, lifeline, command)
    os.close(lifeline)
    return _run_outer(control, inner)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
