"""The server is killed with SIGKILL at random moments, again and again, in the middle of the same work."""

import os
from contextlib import suppress
from random import Random
from time import monotonic
from typing import Any

import pytest

from segue.model.errors import ServerError
from segue.model.views import RecordView
from segue.testing.stage import Stage
from tests.equipment.armed_server import CRASH_AFTER
from tests.faults.conftest import CheckAll, SetStage
from tests.faults.plays import Play

SEED = int(os.environ.get("SEGUE_FAULT_SEED", "2024"))
EVENTS_OF_A_LIFE = 45
LONGEST_DELAY = 0.1
LONGEST_START = 0.4


class Assassin:
    """Kills the server after the n-th event that is delivered in its life, and a moment."""

    def __init__(self, stage: Stage, seed: int, kills: int) -> None:
        self._stage = stage
        self._random = Random(seed)
        self._left = kills
        self._choose()

    @property
    def done(self) -> bool:
        return self._left == 0

    def __call__(self, _: RecordView) -> None:
        self._events -= 1
        # The rest of a page that came with its last words is no life.
        if self._events <= 0 and not self.done and self._stage.is_up:
            _let_pass(self._random.uniform(0, LONGEST_DELAY))
            self._stage.kill()
            self._left -= 1
            self._choose()

    def _choose(self) -> None:
        self._events = self._random.randint(1, EVENTS_OF_A_LIFE)


def _let_pass(seconds: float) -> None:
    """A moment too short to be slept exactly."""
    end = monotonic() + seconds
    while monotonic() < end:
        pass


def assassinate(stage: Stage, seed: int, kills: int) -> list[Play]:
    """Play one workflow after the other until so many servers were killed, and finish the last one in peace."""
    assassin = Assassin(stage, seed, kills)
    plays: list[Play] = []
    while not assassin.done:
        plays.append(Play(stage))
        plays[-1].work.listener = assassin
        plays[-1].see_through()
    return plays


@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
def test_work_survives_ten_kills_at_random_moments(seed: int, stage: Stage, check: CheckAll) -> None:
    plays = assassinate(stage, seed, 10)
    assert [play.completed_tasks() for play in plays] == [["one", "two"]] * len(plays)
    check(stage, *(play.work for play in plays), after=f"seed {seed}")


def test_work_recorded_in_postgresql_survives_them_too(postgres: Any, set_stage: SetStage, check: CheckAll) -> None:
    postgres.psql("CREATE DATABASE segue_random_kills;")
    stage = set_stage(SEGUE_DATABASE_URL=postgres.get_uri(database="segue_random_kills"))
    plays = assassinate(stage, SEED, 5)
    assert not (stage.home / "segue.db").exists()
    check(stage, *(play.work for play in plays), after=f"seed {SEED}")


def test_a_server_killed_again_and_again_while_it_starts_for_the_first_time_comes_up_at_last(
    stage: Stage, check: CheckAll
) -> None:
    random = Random(SEED)
    (stage.home / "segue.db").unlink()
    for _ in range(15):
        with suppress(ServerError):
            stage.up(**{CRASH_AFTER: str(random.uniform(0, LONGEST_START))})
    play = Play(stage)
    play.see_through()
    assert stage.deaths == 15
    check(stage, play.work)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEED + 100, SEED + 120))
def test_work_survives_fifty_kills_at_random_moments(seed: int, stage: Stage, check: CheckAll) -> None:
    plays = assassinate(stage, seed, 50)
    check(stage, *(play.work for play in plays), after=f"seed {seed}")
