"""The guardian: a pair of small processes that keep an agent's process tree and end it, whatever dies first.

Run by its file path, with the standard library only: `guardian.py CONTROL STATUS COMMAND…`, both descriptors by number.

    server ──control pipe──▶ outer ──▶ inner ──▶ agent ──▶ whatever the agent starts
       ◀────status pipe────────┴─────────┘

Both guardians adopt the orphans below them, so that a daemon or a shell in a session of its own stays in the tree.
The server dies: the control pipe ends, and inner ends the tree. The agent dies: inner ends what is left of it.
Inner dies: its orphans fall to outer, which ends them. Outer dies: inner's lifeline ends, and inner ends the tree.
A byte `t` on the control pipe asks for a polite end. The status pipe carries `started PID`, `failed ERRNO` and
`exited CODE`, and its end of file says that both guardians are gone.
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
"""How long an agent that was asked politely may take."""
BACKUP_AFTER = 1.0
"""How long outer leaves the ending of the tree to inner."""
GIVE_UP_AFTER = 10.0
"""How long processes that do not die are pursued."""
LOOK_EVERY = None if ON_LINUX else 0.5
"""Where orphans cannot be adopted, descendants are known only if they were seen before their parent died."""

_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
_ROUNDS = 20
_HANG_UP = 0
"""Asks poll for nothing: it tells the end of the other side unasked."""
_SPAWN_FAILED = 127
_PR_SET_CHILD_SUBREAPER = 36


class ProcessEntry:
    """One line of the system's process table."""

    # Written out: without dataclasses and typing the guardian starts sooner.
    __slots__ = ("ended", "parent", "started")

    def __init__(self, parent: int, started: str, ended: bool) -> None:
        self.parent = parent
        self.started = started
        self.ended = ended


def process_table() -> dict[int, ProcessEntry]:
    """Every process of the machine, by its pid."""
    return _table_from_proc() if ON_LINUX else _table_from_ps()


def read_process(pid: int) -> ProcessEntry | None:
    """One process, from `/proc`."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return ProcessEntry(int(fields[1]), fields[19].decode(), fields[0] in (b"Z", b"X"))


def _table_from_proc() -> dict[int, ProcessEntry]:
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    found = ((pid, read_process(pid)) for pid in pids)
    return {pid: process for pid, process in found if process}


def _table_from_ps() -> dict[int, ProcessEntry]:
    # For macOS, and not yet tried on one.
    import subprocess

    with subprocess.Popen(["ps", "-axo", "pid=,ppid=,stat=,lstart="], stdout=subprocess.PIPE, text=True) as ps:
        lines = [line.split(None, 3) for line in ps.communicate()[0].splitlines()]
    table = {
        int(pid): ProcessEntry(int(up), started.strip(), state.startswith("Z")) for pid, up, state, started in lines
    }
    # Else whoever looks would always find one more process of its own.
    table.pop(ps.pid, None)
    return table


def below(roots: Iterable[int], table: Mapping[int, ProcessEntry]) -> set[int]:
    """The descendants of these processes, without themselves unless one descends from another."""
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
    """Send a signal to each of them; one that is gone, or not ours, is passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


class Guard:
    """One guardian's watch over one child and everything below it."""

    def __init__(self, child: int) -> None:
        self.child = child
        self.code: int | None = None
        self._seen: dict[int, str] = {}
        self._bell = _ring_when_a_child_ends()

    def watch(self, sources: Mapping[int, int], within: float | None = None) -> list[int]:
        """Wait until the child ends, the time is up, or something happens on a source: which ones it was."""
        poll = select.poll()
        for descriptor, events in {self._bell: select.POLLIN, **sources}.items():
            poll.register(descriptor, events)
        deadline = None if within is None else time.monotonic() + within
        while self._still_on(deadline):
            rang = [descriptor for descriptor, _ in poll.poll(_milliseconds_until(deadline))]
            if self._bell in rang:
                rang.remove(self._bell)
                os.read(self._bell, 4096)
            if rang:
                return rang
        return []

    def end_all(self) -> None:
        """Kill everything below, again and again until nothing is left or it is hopeless."""
        hopeless = time.monotonic() + GIVE_UP_AFTER
        while members := self._frozen():
            signal_all(members, signal.SIGKILL)
            self._reap()
            if time.monotonic() > hopeless:
                return
            time.sleep(0.005)
        self._reap()

    def _still_on(self, deadline: float | None) -> bool:
        self._reap()
        if LOOK_EVERY:
            self._members()
        return self.code is None and (deadline is None or time.monotonic() < deadline)

    def _members(self) -> set[int]:
        table = process_table()
        known = {pid for pid, started in self._seen.items() if pid in table and table[pid].started == started}
        members = {pid for pid in known | below({os.getpid(), *known}, table) if not table[pid].ended}
        self._seen = {pid: table[pid].started for pid in members}
        return members

    def _frozen(self) -> set[int]:
        """Stop them first, so that none has children while the others are killed."""
        stopped: set[int] = set()
        for _ in range(_ROUNDS):
            newcomers = self._members() - stopped
            if not newcomers:
                break
            signal_all(newcomers, signal.SIGSTOP)
            stopped |= newcomers
        return stopped

    def _reap(self) -> None:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.child:
                    self.code = os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            return


def _notice(number: int, frame: object) -> None:
    """Without a handler of ours the bell would not ring."""


def _ring_when_a_child_ends() -> int:
    bell, rope = os.pipe()
    os.set_blocking(bell, False)
    os.set_blocking(rope, False)
    signal.signal(signal.SIGCHLD, _notice)
    signal.set_wakeup_fd(rope, warn_on_full_buffer=False)
    return bell


def _milliseconds_until(deadline: float | None) -> int | None:
    waits = [] if deadline is None else [deadline - time.monotonic()]
    if LOOK_EVERY:
        waits.append(LOOK_EVERY)
    return max(1, int(min(waits) * 1000)) if waits else None


def _adopt_orphans() -> None:
    if ON_LINUX:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _let_go_of_the_agents_pipes() -> None:
    # Else the server would not see the agent close them. Standard error is kept: a guardian may have to complain.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


def _report(status: int, line: str) -> None:
    try:
        os.write(status, f"{line}\n".encode())
    except BrokenPipeError:
        return


def _spawn(command: list[str]) -> int:
    return os.posix_spawnp(
        command[0],
        command,
        os.environ,
        setsid=True,  # `kill 0` in the agent's shell must not hit the guardians
        setsigmask=[],
        setsigdef=[*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ],
    )


def _exit_code(code: int | None) -> int:
    """As a shell would say it: a signal counts from 128."""
    return 1 if code is None else 128 - code if code < 0 else code


def _stand_inside(control: int, status: int, lifeline: int, command: list[str]) -> int:
    os.setsid()
    _adopt_orphans()
    try:
        guard = Guard(_spawn(command))
    except OSError as error:
        _report(status, f"failed {error.errno}")
        return _SPAWN_FAILED
    _report(status, f"started {guard.child}")
    _let_go_of_the_agents_pipes()
    if control in guard.watch({control: select.POLLIN, lifeline: _HANG_UP}) and os.read(control, 1) == POLITE:
        signal_all([guard.child], signal.SIGTERM)
        guard.watch({control: _HANG_UP, lifeline: _HANG_UP}, within=GRACE)
    guard.end_all()
    _report(status, f"exited {guard.code}")
    return _exit_code(guard.code)


def _stand_outside(control: int, inner: int) -> int:
    _let_go_of_the_agents_pipes()
    guard = Guard(inner)
    # Only inner reads the control pipe: a byte read by one would be lost to the other.
    guard.watch({control: _HANG_UP})
    guard.watch({}, within=BACKUP_AFTER)
    guard.end_all()
    return _exit_code(guard.code)


def main(arguments: list[str]) -> int:
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
        return _stand_inside(control, status, lifeline, command)
    os.close(lifeline)
    return _stand_outside(control, inner)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
