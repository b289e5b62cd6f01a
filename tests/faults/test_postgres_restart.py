"""A real PostgreSQL is stopped in the middle of the work, as its own emergency stop would do it, and comes back."""

import os
import signal
from typing import Any

import psutil
import pytest

from tests.faults.conftest import CheckAll, SetStage
from tests.faults.plays import Held


@pytest.mark.filterwarnings("ignore::Warning")
def test_work_survives_a_database_that_goes_away_and_comes_back(
    postgres: Any, set_stage: SetStage, check: CheckAll
) -> None:
    postgres.psql("CREATE DATABASE segue_restart;")
    stage = set_stage(settings="sweep_interval = 1\n", SEGUE_DATABASE_URL=postgres.get_uri(database="segue_restart"))
    stage.up()
    held = Held(stage)
    restart(postgres)
    held.let_go()
    held.work.until_status("completed", "paused", "failed")
    held.finish()
    check(stage, held.work, after="a restart of PostgreSQL")


def restart(postgres: Any) -> None:
    """SIGQUIT is PostgreSQL's immediate stop: no client is told anything, and its log is replayed at the next start."""
    pid = postgres.get_pid()
    os.kill(pid, signal.SIGQUIT)
    psutil.wait_procs([psutil.Process(pid)], timeout=30)
    postgres.ensure_postgres_running()
