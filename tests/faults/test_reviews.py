"""A server that dies while a reviewer reads, or between a commit and the word that the task is done."""

from pathlib import Path

import pytest

from segue import client
from segue.testing.stage import Stage
from tests.equipment.armed_server import CRASH_AT
from tests.faults.conftest import CheckAll
from tests.faults.plays import PLAN, REVIEWED, Play, using

READING = """
turns:
  - match: asked for a review
    do:
      - run: until [ -e {signal} ]; do sleep 0.1; done
      - say: '{{"approved": true, "severity": "low", "comments": []}}'
  - match: Task
    do:
      - write: {{path: one.txt, content: "one\\n"}}
"""


def sessions(stage: Stage, workflow: str) -> list[tuple[str, str]]:
    found = client.call("GET", f"/api/workflows/{workflow}/sessions")["sessions"]
    return [(each["role"], each["status"]) for each in found]


def test_a_server_that_is_killed_in_the_middle_of_a_review_takes_the_reviewer_along(
    stage: Stage, tmp_path: Path, check: CheckAll
) -> None:
    signal = tmp_path / "go"
    stage.up()
    work = stage.work(READING.format(signal=signal))
    work.begin("Be reviewed", PLAN, permissions="all", choices={"review": "same"})
    work.until(using("execute"))
    assert len(work.processes()) >= 6
    stage.kill()
    assert stage.orphans == set()
    stage.up()
    view = work.view
    assert (view.status, [task.status for task in view.tasks]) == ("paused", ["pending", "pending"])
    assert sorted(sessions(stage, view.id)) == [("reviewer", "terminated"), ("writer", "suspended")]
    signal.touch()
    work.resume()
    work.until_status("completed")
    work.drain()
    check(stage, work)
    assert [status for role, status in sessions(stage, view.id) if role == "reviewer"] == [
        "terminated",
        "completed",
        "completed",
    ]


@pytest.mark.parametrize("point", ["work.committed", "task.complete.before"])
def test_a_server_killed_after_a_commit_does_not_commit_twice(point: str, stage: Stage, check: CheckAll) -> None:
    stage.up(**REVIEWED.variables, **{CRASH_AT: point})
    play = Play(stage, REVIEWED)
    play.see_through()
    check(stage, play.work)
    assert stage.deaths == 1
    assert play.completed_tasks() == ["one", "two"]
    branch = play.work.view.branch
    titles = stage.git("log", "--format=%s", f"main..{branch}").splitlines()
    assert titles == ["Write the second file", "Write the first file"]
