"""A server that dies while something waits to be tried again, or is being tried again."""

from contextlib import suppress

import pytest

from segue.model.errors import SegueError
from segue.testing.stage import Stage
from segue.testing.work import Work
from tests.equipment.armed_server import CRASH_AT
from tests.faults.conftest import CheckAll
from tests.faults.plays import PLAN

SCRIPT = """
turns:
  - match: Task 1 of 2
    do:
      - write: {path: one.txt, content: "one\\n"}
      - crash: true
        once: true
"""


def with_retries(work: Work, **more: str) -> dict[str, str]:
    """For a server that tries again by itself, also when whoever called it is gone."""
    own = {name: value for name, value in work.environment.items() if name.startswith("SEGUE_REHEARSAL_")}
    return {"SEGUE_RETRY_ATTEMPTS": "3", **own, **more}


def until_dead(stage: Stage, work: Work) -> None:
    with suppress(SegueError):
        work.until_status("completed")
    stage.mourn()


def test_a_retry_that_waits_when_the_server_is_killed_is_made_by_the_next_one(stage: Stage, check: CheckAll) -> None:
    work = stage.work(SCRIPT)
    stage.up(**with_retries(work, **{CRASH_AT: "settle.written"}))
    with suppress(SegueError):
        work.begin("Try again", PLAN)
    until_dead(stage, work)
    stage.up(**with_retries(work))
    assert work.until_status("completed").runs == 2
    assert len([record for record in work.journal() if record.event.kind == "retry.scheduled"]) == 1
    check(stage, work)


@pytest.mark.parametrize("point", ["resume.after", "prompt.delivered:2"])
def test_a_retry_that_is_under_way_when_the_server_is_killed_is_left_to_a_person(
    stage: Stage, check: CheckAll, point: str
) -> None:
    work = stage.work(SCRIPT)
    stage.up(**with_retries(work, **{CRASH_AT: point}))
    work.begin("Try again", PLAN)
    until_dead(stage, work)
    stage.up(**with_retries(work))
    view = work.view
    assert (view.status, view.retry, view.runs) == ("paused", None, 2)
    work.resume()
    work.until_status("completed")
    check(stage, work)
