"""The ordinary server, which kills itself at a chosen crash point; `fork_server` starts it.

SEGUE_CRASH_AT=prompt.sent.after     the process kills itself where it passes this crash point
SEGUE_CRASH_AT=journal.append:3      … where it passes it for the third time
SEGUE_CRASH_AFTER=0.2                … so many seconds after its start began
SEGUE_CRASH_RECORD=FILE              every crash point it passes is appended to FILE, one name to a line
SEGUE_DROP_APPEND=prompt.sent        the first event of this kind is silently not written

The journal cannot detect the last one by itself; the diaries can.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from segue.model import crash

CRASH_AT = "SEGUE_CRASH_AT"
CRASH_AFTER = "SEGUE_CRASH_AFTER"
CRASH_RECORD = "SEGUE_CRASH_RECORD"
DROP_APPEND = "SEGUE_DROP_APPEND"


def main() -> int:
    """Run the server, armed by its environment variables."""
    arm(os.environ)
    from segue.server.__main__ import main as serve

    return serve()


def arm(environment: Mapping[str, str]) -> None:
    """Install the crash that the variables request."""
    if point := environment.get(CRASH_AT):
        name, _, passes = point.partition(":")
        crash.arm(KillAt(name, int(passes or 1)))
    elif record := environment.get(CRASH_RECORD):
        crash.arm(PassRecorder(Path(record)))
    if delay := environment.get(CRASH_AFTER):
        timer = threading.Timer(float(delay), _die)
        timer.daemon = True
        timer.start()
    if kind := environment.get(DROP_APPEND):
        drop_one_append(kind)


class KillAt:
    """Crash hook that kills this process at the n-th pass of a crash point."""

    def __init__(self, name: str, passes: int) -> None:
        self._name = name
        self._left = passes

    def __call__(self, name: str) -> None:
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                _die()


class PassRecorder:
    """Crash hook that appends each passed crash point to a file."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def __call__(self, name: str) -> None:
        os.write(self._file, f"{name}\n".encode())


def passed(record: Path) -> Counter[str]:
    """Count the passes of each crash point in a recording, in the order of the first pass."""
    return Counter(record.read_text().split())


def drop_one_append(kind: str) -> None:
    """Make the journal omit the first event of this kind."""
    from segue.journal import chain, journal
    from segue.model.ids import Seq, WorkflowId

    append, dropped = chain.append_all_in, False

    def append_all_in(
        connection: chain.Connection, entries: Mapping[WorkflowId, Sequence[chain.Entry]]
    ) -> dict[WorkflowId, Seq]:
        nonlocal dropped
        every = [entry for new in entries.values() for entry in new]
        first = next((entry for entry in every if entry.event.kind == kind and not dropped), None)
        dropped = dropped or first is not None
        return append(connection, {name: [e for e in new if e is not first] for name, new in entries.items()})

    chain.append_all_in = journal.append_all_in = append_all_in


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL did not end the process")
