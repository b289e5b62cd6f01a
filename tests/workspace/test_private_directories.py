"""Private directories, and their removal after a kill."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from segue.workspace.private import private_directory, write_private

HOLDS = """
import os, signal
from segue.workspace.private import private_directory
with private_directory("segue-test") as place:
    (place / "secret").write_text("s")
    print(place, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_private_directory_is_for_its_owner_only_and_removed_afterwards(place: Path) -> None:
    with private_directory("segue-test") as own:
        write_private(own / "secret", "s")
        assert own.parent == place
        assert (own.stat().st_mode & 0o777, (own / "secret").stat().st_mode & 0o777) == (0o700, 0o600)
    assert not list(place.iterdir())


def test_directories_of_killed_processes_are_removed_and_those_of_living_ones_stay(place: Path) -> None:
    (place / "segue-test-notes").mkdir()
    environment = {**os.environ, "TMPDIR": str(place)}
    words = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        with private_directory("segue-test"):
            assert (held / "secret").exists()
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert (held / "secret").exists()
        with private_directory("segue-test"):
            assert not held.exists()
    assert [each.name for each in place.iterdir()] == ["segue-test-notes"]


def test_a_leftover_directory_is_removed_whatever_its_name(place: Path) -> None:
    (earlier := place / f"segue-amp-{os.getpid()}-00000000-abc").mkdir()
    with private_directory("segue-claude"):
        assert not earlier.exists()


def test_a_later_process_with_the_same_number_does_not_keep_the_directory(place: Path) -> None:
    (earlier := place / f"segue-test-{os.getpid()}-00000000-abc").mkdir()
    with private_directory("segue-test"):
        assert not earlier.exists()
