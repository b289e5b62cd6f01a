"""Whoever dies in the middle of a task, by whatever hand: the work settles, nothing is lost, and it goes on."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from segue.model.errors import ServerError
from segue.model.events import Event, WorkflowMoved
from segue.testing.process_search import ends_within
from segue.testing.reckoning import reckon
from segue.testing.stage import Stage
from segue.workspace.processes import descendants
from tests.equipment.armed_server import CRASH_AT
from tests.equipment.fork_server import ForkServer
from tests.faults.conftest import CheckAll
from tests.faults.plays import Held

PATIENCE = 20.0
GoesOn = Callable[[Stage, Held], None]


def paused(event: Event) -> bool:
    return isinstance(event, WorkflowMoved) and event.after == "paused"


@pytest.fixture
def check_it_goes_on(check: CheckAll) -> GoesOn:
    def check_it_goes_on(stage: Stage, held: Held) -> None:
        assert held.work.view.status == "paused"
        held.finish()
        check(stage, held.work)

    return check_it_goes_on


@pytest.mark.parametrize("victim", ["agent", "guardian"])
def test_a_killed_agent_or_guardian_leaves_a_workflow_that_goes_on(
    victim: str, stage: Stage, check_it_goes_on: GoesOn
) -> None:
    stage.up()
    held = Held(stage)
    os.kill(held.started.pid if victim == "agent" else held.started.guardian_pid, signal.SIGKILL)
    assert "process ended" in held.work.until_status("paused").reason
    assert held.work.processes() == set()
    check_it_goes_on(stage, held)


def test_a_server_that_is_killed_takes_its_agent_along(stage: Stage, check_it_goes_on: GoesOn) -> None:
    stage.up()
    held = Held(stage)
    assert len(held.work.processes()) >= 3
    stage.kill()
    assert stage.orphans == set()
    stage.up()
    check_it_goes_on(stage, held)


def test_a_server_that_is_killed_with_several_agents_at_work_loses_none_of_their_works(
    stage: Stage, check: CheckAll
) -> None:
    stage.up()
    all_held = [Held(stage) for _ in range(3)]
    stage.kill()
    stage.up()
    for held in all_held:
        assert held.work.view.status == "paused"
        held.let_go()
        held.work.resume()
    for held in all_held:
        held.finish()
    check(stage, *(held.work for held in all_held))


@pytest.mark.parametrize("how", ["SIGTERM", "segue down"])
def test_a_server_that_is_told_to_stop_brings_its_work_to_rest_first(
    how: str, stage: Stage, check_it_goes_on: GoesOn
) -> None:
    pid = stage.up().pid
    held = Held(stage)
    if how == "SIGTERM":
        os.kill(pid, signal.SIGTERM)
    else:
        subprocess.run([sys.executable, "-m", "segue", "down"], check=True, capture_output=True, timeout=PATIENCE)
    assert ends_within(pid, PATIENCE)
    assert held.work.processes() == set()
    ended_at = datetime.now(UTC)
    stage.up()
    assert held.work.until(paused).at < ended_at
    check_it_goes_on(stage, held)


@pytest.mark.parametrize("point", ["settle.before_write", "settle.written"])
def test_a_server_killed_while_it_settles_what_another_left_is_followed_by_one_that_does(
    point: str, stage: Stage, check_it_goes_on: GoesOn
) -> None:
    stage.up()
    held = Held(stage)
    stage.kill()
    with pytest.raises(ServerError, match="exited during its start"):
        stage.up(**{CRASH_AT: point})
    stage.up()
    check_it_goes_on(stage, held)
    assert stage.deaths == 2


def test_what_outlives_its_server_and_its_guardians_is_ended_by_the_next_server(
    stage: Stage, fork_server: ForkServer
) -> None:
    server = stage.up()
    held = Held(stage)
    guardian = held.started.guardian_pid
    (inner,) = [pid for pid in descendants(guardian) if held.started.pid in descendants(pid)]
    # Stopped, the server cannot do the guardians' work before it dies too.
    for pid, number in ((server.pid, signal.SIGSTOP), (guardian, signal.SIGKILL), (inner, signal.SIGKILL)):
        os.kill(pid, number)
    assert ends_within(guardian, PATIENCE) and ends_within(inner, PATIENCE)
    os.kill(server.pid, signal.SIGKILL)
    assert ends_within(server.pid, PATIENCE)
    assert held.work.processes()
    fork_server.start({})
    assert held.work.processes() == set()
    held.finish()
    assert reckon(stage, held.work).faults == []
