"""A disk that refuses is an error to whoever asked, never a success; what was acknowledged before is still there."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from segue.model import events as e
from segue.model.errors import StoreError
from segue.testing.process_search import left_over
from segue.testing.reckoning import reckon
from segue.testing.stage import Stage
from segue.testing.work import Work
from tests.faults.plays import HELD, ORDINARY, PLAN, Play

if sys.platform != "linux":
    pytest.skip("only Linux limits the files of another process, and preloads", allow_module_level=True)

import resource

PATIENCE = 30.0
Trouble = Callable[[Stage], AbstractContextManager[None]]

FAILING_FSYNC = r"""
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int refused(void) { const char *f = getenv("FSYNC_FAILS_WHILE"); return f && access(f, F_OK) == 0; }
int fsync(int fd) { if (refused()) { errno = EIO; return -1; } return syscall(SYS_fsync, fd); }
int fdatasync(int fd) { if (refused()) { errno = EIO; return -1; } return syscall(SYS_fdatasync, fd); }
"""


@contextmanager
def no_file_may_grow(stage: Stage) -> Generator[None]:
    pid = stage.server.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def no_fsync_succeeds(stage: Stage) -> Generator[None]:
    flag = stage.root / "fsync-fails"
    flag.touch()
    try:
        yield
    finally:
        flag.unlink()


@pytest.fixture
def with_full_disk(stage: Stage) -> tuple[Stage, Trouble]:
    stage.up()
    return stage, no_file_may_grow


@pytest.fixture
def with_failing_fsync(tmp_path: Path) -> Generator[tuple[Stage, Trouble]]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler to build the failing fsync with")
    library = tmp_path / "fsync.so"
    (tmp_path / "fsync.c").write_text(FAILING_FSYNC)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "fsync.c")], check=True)
    # Preloaded, and so not forked from a process that runs already.
    with Stage(tmp_path / "stage") as stage:
        stage.up(LD_PRELOAD=str(library), FSYNC_FAILS_WHILE=str(stage.root / "fsync-fails"))
        yield stage, no_fsync_succeeds


@pytest.fixture(params=["with_full_disk", "with_failing_fsync"])
def troubled(request: pytest.FixtureRequest) -> tuple[Stage, Trouble]:
    """A stage whose server is up, and a way to make its disk refuse."""
    return request.getfixturevalue(request.param)


def test_nothing_that_could_not_be_written_is_acknowledged(troubled: tuple[Stage, Trouble]) -> None:
    stage, trouble = troubled
    play = Play(stage, ORDINARY)
    play.work.begin(ORDINARY.title, PLAN)
    play.work.until(e.PermissionRequested)
    other = stage.work(ORDINARY.script)
    with trouble(stage):
        for ask in (
            lambda: play.work.answer("approve"),
            play.work.pause,
            play.work.cancel,
            lambda: other.begin("Another work", PLAN),
        ):
            with pytest.raises(StoreError):
                ask()
    stage.works.remove(other)
    stage.kill()
    stage.up()
    assert play.work.view.status == "paused"
    play.see_through()
    assert play.completed_tasks() == ["one", "two"]
    assert reckon(stage, play.work).faults == []


def begin_into_the_void(stage: Stage, trouble: Trouble) -> Work:
    """An agent that ends its task while nothing of that can be written down."""
    signal = stage.root / "go"
    work = stage.work(HELD.format(signal=signal))
    work.begin("Write into the void", PLAN)
    work.until(e.ToolFinished)
    with trouble(stage):
        signal.touch()
        assert left_over(work.processes, PATIENCE) == set()
    return work


def check_it_goes_on(stage: Stage, work: Work) -> None:
    assert work.until_status("paused").tasks_done == 0
    work.resume()
    work.until_status("completed")
    work.drain()
    assert reckon(stage, work).faults == []


def test_work_that_could_not_be_written_down_does_not_count_as_done(troubled: tuple[Stage, Trouble]) -> None:
    stage, trouble = troubled
    work = begin_into_the_void(stage, trouble)
    stage.kill()
    stage.up()
    check_it_goes_on(stage, work)


def test_a_server_whose_disk_has_room_again_goes_on_without_a_restart(set_stage: Callable[..., Stage]) -> None:
    stage = set_stage(settings="sweep_interval = 0.5")
    stage.up()
    check_it_goes_on(stage, begin_into_the_void(stage, no_file_may_grow))
    assert stage.deaths == 0
