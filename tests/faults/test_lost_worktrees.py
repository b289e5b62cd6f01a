"""A server that dies when it has just made a deleted worktree again, and not filled it yet."""

import shutil
from pathlib import Path

import pytest

from segue.model import events as e
from segue.model.errors import NotRunning
from segue.testing.stage import Stage
from tests.equipment.armed_server import CRASH_AT
from tests.faults.plays import PLAN

SCRIPT = """
turns:
  - do: [{write: {path: one.txt, content: "1"}, once: true}, {say: Done.}]
"""


def test_a_server_killed_over_an_empty_worktree_fills_it_the_next_time(stage: Stage) -> None:
    stage.up()
    work = stage.work(SCRIPT)
    work.begin("Build it", PLAN, permissions="all", choices={"pause_after": 1})
    worktree = Path(work.until_status("paused").worktree or "")
    assert (worktree / "one.txt").read_text() == "1"
    stage.down()
    shutil.rmtree(worktree)

    stage.up(**{CRASH_AT: "worktree.held"})
    with pytest.raises(NotRunning):
        work.resume()
        work.until_status("completed")
    assert worktree.is_dir() and not (worktree / "one.txt").exists()
    stage.up()
    assert (stage.deaths, stage.orphans) == (1, set())
    work.resume()
    work.until_status("completed")

    assert (worktree / "one.txt").read_text() == "1"
    warned = [line.event.code for line in work.journal() if isinstance(line.event, e.Warned)]
    assert "worktree_made_again" in warned
    assert work.verify().verified
